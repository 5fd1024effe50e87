//go:build linux || darwin

package clock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The bounds hold however long the readings of the clocks are interrupted, so a clock never jumps
// ahead on a machine that does not sleep.
func TestAsleep_InterruptedReadings(t *testing.T) {
	const slept = time.Hour
	awake := time.Minute
	interrupted := func(id int32) time.Duration {
		awake += rand.N(time.Second)
		if id == withSleep {
			return awake + slept
		}
		return awake
	}
	for range 1000 {
		least, most := asleepBy(interrupted)
		require.LessOrEqual(t, least, slept)
		require.GreaterOrEqual(t, most, slept)
	}
	exact := func(id int32) time.Duration { return map[int32]time.Duration{withSleep: slept}[id] }
	least, most := asleepBy(exact)
	require.Equal(t, [2]time.Duration{slept, slept}, [2]time.Duration{least, most})
	c := New(time.Now(), Settings{}, nil)
	require.GreaterOrEqual(t, c.sleep.before, time.Duration(0))
}
