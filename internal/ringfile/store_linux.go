package ringfile

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// preallocate gives bytes of a file their place on the disk. The error is
// errors.ErrUnsupported where the file system cannot.
func preallocate(fd int, off, n int64) error {
	// Where it does not fit, the call below fills the disk first, which takes time.
	// A file system without a limit of its own, such as ramfs, reports no blocks.
	var disk unix.Statfs_t
	known := unix.Fstatfs(fd, &disk) == nil && disk.Blocks > 0
	if known && disk.Bavail < uint64(n)/uint64(disk.Bsize) {
		return unix.ENOSPC
	}
	for {
		switch err := unix.Fallocate(fd, 0, off, n); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP):
			return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		default:
			return err
		}
	}
}
