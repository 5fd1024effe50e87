package ringfile

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// mayFit reports whether the disk may have room for n bytes. A file system without a limit
// of its own, such as ramfs, reports no blocks.
func mayFit(fd int, n int64) bool {
	var disk unix.Statfs_t
	known := unix.Fstatfs(fd, &disk) == nil && disk.Blocks > 0
	return !known || disk.Bavail >= uint64(n)/uint64(disk.Bsize)
}

// preallocate gives bytes of a file their place on the disk, and one of their own where they
// share it with another file (of XFS). The error is errors.ErrUnsupported where the file
// system cannot.
func preallocate(fd int, off, n int64) error {
	err := fallocate(fd, unix.FALLOC_FL_UNSHARE_RANGE, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = fallocate(fd, 0, off, n)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// punch makes bytes of a file a hole.
func punch(fd int, off, n int64) error {
	return fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// mostRuns returns how many runs of hidden chunks there may be. Each splits a mapping, so that
// at most half of the mappings that a process may have are used up.
var mostRuns = sync.OnceValue(func() int64 {
	most := int64(65530) // where nothing was configured
	if b, err := os.ReadFile("/proc/sys/vm/max_map_count"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			most = n
		}
	}
	return most / 4
})

func fallocate(fd int, mode uint32, off, n int64) error {
	for {
		err := unix.Fallocate(fd, mode, off, n)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// noCopyOnWrite is FS_NOCOW_FL, which the unix package does not have.
const noCopyOnWrite = 0x00800000

// keepInPlace asks btrfs to write pages of an empty file where they are, so that no page
// needs a new place when it is written. Others do not know the flag, and do so anyway.
func keepInPlace(file disk) {
	fd := int(file.Fd())
	if flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|noCopyOnWrite))
	}
}
