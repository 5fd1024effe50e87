//go:build linux || darwin

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads the clock that continues while the machine sleeps.
func sinceBoot() (time.Duration, bool) { return read(withSleep) }

// asleep returns how long the machine has slept since it was started, less the time that passes
// between the readings of two clocks.
func asleep() (most time.Duration) {
	for range 3 { // a reading that is not interrupted is exact
		all, ok := read(withSleep)
		awake, ok2 := read(withoutSleep)
		if ok && ok2 {
			most = max(most, all-awake)
		}
	}
	return most
}

func read(id int32) (time.Duration, bool) {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
