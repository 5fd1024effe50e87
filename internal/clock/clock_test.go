package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeClock returns a clock that shows what *now says.
func fakeClock(now *time.Duration) Clock {
	return New(time.Now(), Settings{}, func() time.Duration { return *now })
}

// What lives for a time is expired when that is over, and at most a tick before.
func TestClock_ExpiresUpToATickEarlyAndNeverLate(t *testing.T) {
	var now time.Duration
	c := fakeClock(&now)
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
	c := fakeClock(&now)
	require.EqualValues(t, 1, c.Now())
	now = Tick
	require.EqualValues(t, 2, c.Now())
	real := New(time.Now(), Settings{}, nil)
	require.EqualValues(t, 1, real.Now())
}

// An expiry beyond the clock's end is never, and the clock stops there.
func TestClock_Ends(t *testing.T) {
	var now time.Duration
	c := fakeClock(&now)
	require.Zero(t, c.In(math.MaxInt64))
	require.Zero(t, c.In(math.MaxUint32*Tick))
	require.NotZero(t, c.In(math.MaxUint32*Tick-2*Tick))
	now = math.MaxInt64
	require.Equal(t, uint32(math.MaxUint32), c.Now())
	require.Zero(t, c.In(1))
	require.False(t, c.Expired(0), "0 is never")
}

// A jittered time lies between the whole one and what the fraction leaves, anywhere, and
// is a tick at least; what is below a tick stays as it is.
func TestClock_Jitter(t *testing.T) {
	var now time.Duration
	c := New(time.Now(), Settings{Jitter: 0.5}, func() time.Duration { return now })
	least, most := time.Hour, time.Duration(0)
	for range 2000 {
		ttl := c.Jittered(time.Minute)
		require.Greater(t, ttl, 30*time.Second)
		require.LessOrEqual(t, ttl, time.Minute)
		least, most = min(least, ttl), max(most, ttl)
		require.Equal(t, Tick, c.Jittered(Tick))
		require.GreaterOrEqual(t, c.Jittered(Tick+1), Tick)
		require.Positive(t, c.Jittered(math.MaxInt64))
	}
	require.Less(t, least, 32*time.Second)
	require.Greater(t, most, 58*time.Second)
	for _, ttl := range []time.Duration{-1, 0, 1, Tick - 1} {
		require.Equal(t, ttl, c.Jittered(ttl))
	}
	c = fakeClock(&now)
	require.Equal(t, time.Minute, c.Jittered(time.Minute))
}

// What is expired is kept until its grace is over, and if that is beyond the clock's end,
// until then.
func TestClock_Grace(t *testing.T) {
	for _, tt := range []struct {
		grace        time.Duration
		expiry, want uint32
	}{
		{0, 5, 5}, {Tick, 5, 6}, {2*Tick - 1, 5, 6}, {time.Minute, 1, 601},
		{Tick, math.MaxUint32 - 1, math.MaxUint32}, {Tick, math.MaxUint32, math.MaxUint32},
		{math.MaxInt64, 5, math.MaxUint32}, {math.MaxInt64, 1, math.MaxUint32},
	} {
		c := New(time.Now(), Settings{Grace: tt.grace}, nil)
		require.Equal(t, tt.want, c.KeptUntil(tt.expiry), "%+v", tt)
	}
}
