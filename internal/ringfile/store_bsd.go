//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import "errors"

// mayFit returns true: only writing shows whether the disk has room.
func mayFit(int, int64) bool { return true }

// keepInPlace does nothing: these systems have no such flag.
func keepInPlace(disk) {}

// punch returns an error: holes are not made on these systems.
func punch(int, int64, int64) error { return errors.ErrUnsupported }

// preallocate returns an error: the caller has to write the bytes.
func preallocate(int, int64, int64) error { return errors.ErrUnsupported }

// prefault returns an error: the caller has to read the bytes from the file.
func prefault([]byte) error { return errors.ErrUnsupported }
