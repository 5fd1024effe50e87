//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"errors"
	"math"
)

// room returns the most: only writing shows whether the disk has room.
func room(int) int64 { return math.MaxInt64 }

// keepInPlace does nothing: these systems have no such flag.
func keepInPlace(disk) {}

// punch returns an error: holes are not made on these systems.
func punch(int, int64, int64) error { return errors.ErrUnsupported }

// preallocate returns an error: the caller has to write the bytes.
func preallocate(int, int64, int64) error { return errors.ErrUnsupported }

// prefault returns an error: the caller has to read the bytes from the file.
func prefault([]byte) error { return errors.ErrUnsupported }
