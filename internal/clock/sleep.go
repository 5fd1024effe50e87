package clock

import (
	"sync/atomic"
	"time"
)

// On Linux and macOS, Go's monotonic clock stops while the machine sleeps, and expiries must not.
// The system's clock that continues takes ten times as long to read, so a Clock reads Go's clock,
// and determines the difference every sleepCheck.

// sleepCheck is how long after the machine wakes up a clock may not yet include the sleep.
const sleepCheck = 10 * time.Millisecond

// sleep is how long the machine has slept since a clock was made.
type sleep struct {
	source func() time.Duration // total time asleep, never too long
	before time.Duration        // part of the total before the clock was made
	known  atomic.Int64         // time asleep since then, as last determined
	next   atomic.Int64         // awake time at which to check again
}

// until returns the time asleep until the clock's awake time is awake. Differences of less than a
// millisecond are ignored: they arise because the two clocks are not read at the same instant.
func (s *sleep) until(awake time.Duration) time.Duration {
	known := s.known.Load()
	if int64(awake) >= s.next.Load() {
		s.next.Store(int64(awake + sleepCheck))
		slept := int64(s.source() - s.before)
		for slept >= known+int64(time.Millisecond) && !s.known.CompareAndSwap(known, slept) {
			known = s.known.Load()
		}
		known = s.known.Load()
	}
	return time.Duration(known)
}
