package clock

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	withSleep    = unix.CLOCK_BOOTTIME
	withoutSleep = unix.CLOCK_MONOTONIC // what Go reads
)

// bootID returns the kernel's name for this boot, or "".
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
}
