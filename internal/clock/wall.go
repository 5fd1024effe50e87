package clock

import (
	"math"
	"time"
)

// Never is the tick of an entry that has an expiry and lives forever.
const Never = math.MaxUint32

// Wall converts between the ticks of a clock and the wall clock, as that was set when the Wall was
// made.
type Wall struct{ origin int64 } // when the clock was made, in ns

// Wall returns the Wall of a clock; now is the time.
func (c *Clock) Wall(now time.Time) Wall { return Wall{now.UnixNano() - int64(c.Age())} }

// Time returns the Unix time in milliseconds at which a tick begins, rounded down, or 0 for an
// entry that does not expire.
func (w Wall) Time(tick uint32) int64 {
	if tick == 0 || tick == Never {
		return 0
	}
	return max(1, (w.origin+int64(tick-1)*int64(Tick))/int64(time.Millisecond))
}

// Tick is the inverse of Time: it returns the tick that contains the given Unix time in
// milliseconds, the first tick for a time before the clock was made, and 0 for a time that is too
// far away for the clock.
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
