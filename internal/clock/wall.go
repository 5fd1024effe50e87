package clock

import (
	"math"
	"time"
)

// Never is the tick of what has an expiry and lives for ever.
const Never = math.MaxUint32

// Wall knows when the ticks of a clock begin by the wall clock, as it was set when the
// Wall was made.
type Wall struct{ origin int64 } // when the clock was made, in ns

// Wall returns the Wall of a clock; now is the time.
func (c *Clock) Wall(now time.Time) Wall { return Wall{now.UnixNano() - int64(c.Age())} }

// Time returns the Unix time in milliseconds at which a tick begins, rounded down; 0 is
// that of what does not expire.
func (w Wall) Time(tick uint32) int64 {
	if tick == 0 || tick == Never {
		return 0
	}
	return max(1, (w.origin+int64(tick-1)*int64(Tick))/int64(time.Millisecond))
}

// Tick returns the tick of such a time, or of one up to a tick before; the first one if
// it was over before the clock was made, and 0 if it is too far away for the clock.
func (w Wall) Tick(ms int64) uint32 {
	if ms == 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	after := ms*int64(time.Millisecond) - w.origin
	if after < 0 {
		return 1
	}
	if tick := after/int64(Tick) + 1; tick < Never {
		return uint32(tick)
	}
	return 0
}
