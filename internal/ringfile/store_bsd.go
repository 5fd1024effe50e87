//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import "errors"

// mayFit says that the disk has to be tried.
func mayFit(int, int64) bool { return true }

// keepInPlace does nothing: these systems have no such flag.
func keepInPlace(disk) {}

// punch says that holes cannot be made.
func punch(int, int64, int64) error { return errors.ErrUnsupported }

// mostRuns is not called.
func mostRuns() int64 { return 0 }

// preallocate says that the bytes have to be written.
func preallocate(int, int64, int64) error { return errors.ErrUnsupported }

// isShared says no: these systems do not tell.
func isShared(int, int64, int64) bool { return false }
