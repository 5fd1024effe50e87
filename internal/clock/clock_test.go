package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeClock returns a clock that shows what *now says.
func fakeClock(ttl time.Duration, now *time.Duration) Clock {
	return New(0, ttl, func() time.Duration { return *now })
}

// What lives for a time is expired when that is over, and at most a tick before.
func TestClock_ExpiresUpToATickEarlyAndNeverLate(t *testing.T) {
	var now time.Duration
	c := fakeClock(0, &now)
	for _, start := range []time.Duration{0, 1, Tick - 1, Tick, 1234567 * time.Microsecond} {
		for _, ttl := range []time.Duration{1, Tick, Tick + 1, time.Second, time.Hour} {
			now = start
			at := c.In(ttl)
			require.NotZero(t, at)
			require.LessOrEqual(t, c.Until(at), ttl)
			require.Greater(t, c.Until(at)+Tick, ttl)
			now = start + ttl
			require.True(t, c.Expired(at), "%v from %v on", ttl, start)
			if now = start + ttl - Tick; ttl > Tick {
				require.False(t, c.Expired(at), "%v from %v on", ttl, start)
			}
		}
	}
}

func TestClock_FirstTickIsOne(t *testing.T) {
	var now time.Duration
	c := fakeClock(0, &now)
	require.EqualValues(t, 1, c.Now())
	now = Tick
	require.EqualValues(t, 2, c.Now())
	real := New(0, 0, nil)
	require.EqualValues(t, 1, real.Now())
}

// An expiry beyond the clock's end is never, and the clock stops there.
func TestClock_Ends(t *testing.T) {
	var now time.Duration
	c := fakeClock(0, &now)
	require.Zero(t, c.In(math.MaxInt64))
	require.Zero(t, c.In(math.MaxUint32*Tick))
	require.NotZero(t, c.In(math.MaxUint32*Tick-2*Tick))
	now = math.MaxInt64
	require.Equal(t, uint32(math.MaxUint32), c.Now())
	require.Zero(t, c.In(1))
	require.False(t, c.Expired(0), "0 is never")
}

func TestClock_Default(t *testing.T) {
	now := time.Duration(0)
	c := fakeClock(0, &now)
	require.Zero(t, c.Default())
	c = fakeClock(time.Minute, &now)
	require.Equal(t, c.In(time.Minute), c.Default())
}
