package clock

import "golang.org/x/sys/unix"

const (
	withSleep    = unix.CLOCK_MONOTONIC_RAW
	withoutSleep = unix.CLOCK_UPTIME_RAW // what Go reads
)
