package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMoment_TimeThatHasPassed(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	unset := time.Unix(100, 0)
	for name, tt := range map[string]struct {
		from, to Moment
		passed   time.Duration
		known    bool
	}{
		"same boot":              {Moment{now, 5, 1}, Moment{now.Add(3), 8, 1}, 3, true},
		"set ahead":              {Moment{now, 5, 1}, Moment{now.Add(7), 8, 1}, 7, true},
		"set back a little":      {Moment{now, 5, 1}, Moment{now.Add(2), 8, 1}, 3, true},
		"set back":               {Moment{now, 5, 1}, Moment{now.Add(-1), 8, 1}, 3, false},
		"another time namespace": {Moment{now, 5, 1}, Moment{now.Add(7), 2, 1}, 7, true},
		"no boot clock":          {Moment{now, 0, 1}, Moment{now.Add(7), 0, 1}, 7, true},
		"another boot":           {Moment{now, 5, 1}, Moment{now.Add(7), 99, 2}, 7, true},
		"another boot, at once":  {Moment{now, 5, 1}, Moment{now, 9, 2}, 0, true},
		"another boot, set back": {Moment{now, 5, 1}, Moment{now.Add(-1), 9, 2}, -1, false},
		"unset before":           {Moment{unset, 5, 1}, Moment{now, 9, 1}, now.Sub(unset), false},
		"another, unset before":  {Moment{unset, 5, 1}, Moment{now, 9, 2}, now.Sub(unset), false},
		"nothing is known":       {Moment{}, Moment{now, 9, 2}, now.Sub(time.Time{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			passed, known := tt.to.Resume(0, tt.from)
			require.Equal(t, tt.known, known)
			if !known {
				tt.passed = 0
			}
			require.Equal(t, tt.passed, passed)
		})
	}
}

// A clock that is resumed is as old as it was and the time that has passed, unless that leaves
// less than half of its ticks.
func TestMoment_Resume(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	from, to := Moment{now, time.Hour, 1}, Moment{now.Add(4), time.Hour + 5, 1}
	age, ok := to.Resume(7, from)
	require.True(t, ok)
	require.Equal(t, time.Duration(12), age)
	age, ok = to.Resume(maxAge-5, from)
	require.True(t, ok)
	require.Equal(t, time.Duration(maxAge), age)
	for _, old := range []time.Duration{maxAge - 4, maxAge, math.MaxInt64, -1, math.MinInt64} {
		age, ok = to.Resume(old, from)
		require.False(t, ok)
		require.Zero(t, age)
	}
	_, ok = from.Resume(7, to)
	require.False(t, ok)
	_, ok = Moment{now, math.MaxInt64, 1}.Resume(7, from)
	require.False(t, ok)
}
