//go:build freebsd || netbsd || openbsd || dragonfly

package clock

import "golang.org/x/sys/unix"

// systemBootID returns the time at which the machine was started, or "". The system changes that
// time when its wall clock is set.
func systemBootID() string {
	at, err := unix.SysctlRaw("kern.boottime")
	if err != nil {
		return ""
	}
	return string(at)
}
