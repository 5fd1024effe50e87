package clock

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the machine has slept counts once the clock has looked again, and what it slept before
// the clock was made does not. Differences of less than a millisecond are none.
func TestSleep_CountsOnceItIsKnown(t *testing.T) {
	slept := time.Hour
	s := sleep{source: func() (least, most time.Duration) { return slept, slept }, before: slept}
	require.Zero(t, s.until(0))
	slept += time.Millisecond - 1
	require.Zero(t, s.until(sleepCheck))
	slept += time.Minute
	require.Zero(t, s.until(2*sleepCheck-1))
	require.Equal(t, time.Minute+time.Millisecond-1, s.until(2*sleepCheck))
	slept -= time.Second // two clocks that were not read at once
	require.Equal(t, time.Minute+time.Millisecond-1, s.until(3*sleepCheck))
}

func TestClock_GoesOnWhileTheMachineSleeps(t *testing.T) {
	c := New(time.Now().Add(-time.Minute), Settings{}, nil)
	slept := c.sleep.before
	c.sleep.source = func() (least, most time.Duration) { return slept, slept }
	at := c.In(time.Hour)
	require.False(t, c.Expired(at))
	slept += time.Hour
	c.sleep.next.Store(0) // as the clock does every 10 ms
	require.True(t, c.Expired(at))
}

// A clock that several goroutines read never goes back.
func TestSleep_OnlyGrows(t *testing.T) {
	var mu sync.Mutex
	slept := time.Duration(0)
	s := sleep{source: func() (least, most time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		slept += time.Millisecond
		return slept, slept
	}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			last := time.Duration(0)
			for i := range 1000 {
				now := s.until(time.Duration(i) * sleepCheck)
				if now < last {
					t.Errorf("%v after %v", now, last)
				}
				last = now
			}
		}()
	}
	wg.Wait()
}

// The system's clocks agree with Go's, and a process that does not sleep has not slept.
func TestSystem_Moments(t *testing.T) {
	before := System.Moment()
	passed, ok := System.Moment().Resume(0, before)
	require.True(t, ok)
	require.GreaterOrEqual(t, passed, time.Duration(0))
	require.NotZero(t, before.ID)
	require.WithinDuration(t, time.Now(), before.Wall, time.Hour)
	least, most := asleep()
	require.GreaterOrEqual(t, least, time.Duration(0))
	require.GreaterOrEqual(t, most, least)
}
