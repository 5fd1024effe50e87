//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// mayFit says that the disk has to be tried.
func mayFit(int, int64) bool { return true }

// keepInPlace does nothing: these systems have no such flag.
func keepInPlace(disk) {}

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
