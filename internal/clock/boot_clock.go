//go:build linux || darwin

package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads the clock that continues while the machine sleeps, or returns 0.
func sinceBoot() time.Duration { return read(withSleep) }

// asleep returns bounds of the time that the machine has slept since it was started: time may pass
// between the readings of two clocks. Readings that are not interrupted are exact.
func asleep() (least, most time.Duration) { return asleepBy(read) }

func asleepBy(read func(id int32) time.Duration) (least, most time.Duration) {
	most = math.MaxInt64
	for range 3 {
		first := read(withoutSleep)
		all := read(withSleep)
		least, most = max(least, all-read(withoutSleep)), min(most, all-first)
	}
	return least, most
}

// read returns the time of a clock, or 0.
func read(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}
