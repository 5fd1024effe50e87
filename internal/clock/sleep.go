package clock

import (
	"sync/atomic"
	"time"
)

// Go's monotonic clock stops while the machine sleeps, on Linux and macOS, and expiries must
// not. The system's clock that goes on takes ten times as long to read, so a Clock reads the
// cheap one, and asks for the difference every sleepCheck.

// sleepCheck is how long a clock may not know yet that the machine has slept, after it woke up.
const sleepCheck = 10 * time.Millisecond

// sleep is how long the machine has slept since a clock was made.
type sleep struct {
	source func() time.Duration // how long it has slept at all; never more than it has
	before time.Duration        // of that, before the clock was made
	known  atomic.Int64         // of that, since then
	next   atomic.Int64         // awake time at which to ask again
}

// until returns the sleep up to a time that the machine has been awake.
func (s *sleep) until(awake time.Duration) time.Duration {
	if int64(awake) >= s.next.Load() {
		s.look(awake)
	}
	return time.Duration(s.known.Load())
}

// look asks the system. Differences of less than a millisecond are those of two clocks that
// are not read at once.
func (s *sleep) look(awake time.Duration) {
	s.next.Store(int64(awake + sleepCheck))
	slept := int64(s.source() - s.before)
	for known := s.known.Load(); slept >= known+int64(time.Millisecond); known = s.known.Load() {
		if s.known.CompareAndSwap(known, slept) {
			return
		}
	}
}
