//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// preallocate says that the bytes have to be written.
func preallocate(int, int64, int64) error { return errors.ErrUnsupported }

// machineBoot returns when the machine was started, or "".
func machineBoot() string {
	at, err := unix.SysctlRaw("kern.boottime")
	if err != nil {
		return ""
	}
	return string(at)
}
