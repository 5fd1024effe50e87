//go:build linux || darwin

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads the clock that continues while the machine sleeps, or returns 0.
func sinceBoot() time.Duration { return read(withSleep) }

// asleep returns how long the machine has slept since it was started, less the time that passes
// between the readings of two clocks.
func asleep() (most time.Duration) {
	for range 3 { // a reading that is not interrupted is exact
		all := read(withSleep)
		most = max(most, all-read(withoutSleep))
	}
	return most
}

// read returns the time of a clock, or 0.
func read(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}
