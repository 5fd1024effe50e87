package clock

import "golang.org/x/sys/unix"

const (
	withSleep    = unix.CLOCK_MONOTONIC_RAW
	withoutSleep = unix.CLOCK_UPTIME_RAW // what Go reads
)

// bootID returns the kernel's name for this boot, or "".
func bootID() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}
