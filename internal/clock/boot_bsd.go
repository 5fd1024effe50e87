//go:build freebsd || netbsd || openbsd || dragonfly

package clock

import "golang.org/x/sys/unix"

// systemBootID returns when the machine was started, or "". The system changes that when its
// wall clock is set.
func systemBootID() string {
	at, err := unix.SysctlRaw("kern.boottime")
	if err != nil {
		return ""
	}
	return string(at)
}
