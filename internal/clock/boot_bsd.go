//go:build freebsd || netbsd || openbsd || dragonfly

package clock

import "golang.org/x/sys/unix"

// bootID returns the time at which the machine was started, or "". The system changes that
// time when its wall clock is set.
func bootID() string {
	at, _ := unix.SysctlRaw("kern.boottime")
	return string(at)
}
