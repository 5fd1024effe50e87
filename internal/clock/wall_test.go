package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An expiry that goes to another clock by way of the wall is never later than it was, and
// up to a tick and a millisecond earlier.
func TestWall_NeverLater(t *testing.T) {
	now := time.Date(2026, 11, 25, 1, 2, 3, 456_789_012, time.UTC)
	for _, ages := range [][2]time.Duration{
		{0, 0}, {time.Hour, 0}, {0, time.Hour}, {12345678, 99999999}, {time.Minute + 1, 50 * Tick},
	} {
		from := New(time.Now(), Times{}, func() time.Duration { return ages[0] })
		to := New(time.Now(), Times{}, func() time.Duration { return ages[1] })
		for _, ttl := range []time.Duration{1, Tick - 1, Tick, Tick + 1, time.Second, time.Hour,
			10 * 365 * 24 * time.Hour} {
			tick := from.In(ttl)
			ms := from.Wall(now).Time(tick)
			require.Positive(t, ms)
			left, was := to.Until(to.Wall(now).Tick(ms)), from.Until(tick)
			require.LessOrEqual(t, left, was)
			require.GreaterOrEqual(t, left, was-Tick-time.Millisecond)
		}
		wall := to.Wall(now)
		require.Zero(t, from.Wall(now).Time(0))
		require.Zero(t, from.Wall(now).Time(Never))
		require.Zero(t, wall.Tick(0))
		require.Zero(t, wall.Tick(math.MaxInt64), "beyond the clock's end")
		require.Zero(t, wall.Tick(now.Add(20*365*24*time.Hour).UnixMilli()))
		require.EqualValues(t, 1, wall.Tick(1), "long ago")
	}
}
