package ringfile

import (
	"cmp"
	"math"

	"golang.org/x/sys/unix"
)

// room returns how many bytes the disk may have room for. A file system that has no limit, such as
// ramfs, reports no blocks.
func room(fd int) int64 {
	var disk unix.Statfs_t
	if unix.Fstatfs(fd, &disk) != nil || disk.Blocks == 0 {
		return math.MaxInt64
	}
	unit := uint64(cmp.Or(disk.Frsize, disk.Bsize)) // the latter may be the best length of a write
	return int64(min(disk.Bavail, math.MaxInt64/2/max(unit, 1)) * unit)
}

// preallocate allocates disk space for a range of a file, and separate space for blocks that the
// range shares with another file (on XFS). Unless the error is one of space, the bytes can still be
// written: a sandbox may forbid the call (EPERM), and signals may interrupt each attempt (EINTR).
func preallocate(fd int, off, n int64) error {
	err := unix.Fallocate(fd, unix.FALLOC_FL_UNSHARE_RANGE, off, n)
	if err != nil && !IsNoSpace(err) {
		err = unix.Fallocate(fd, 0, off, n)
	}
	return err
}

// punch turns a range of a file into a hole.
func punch(fd int, off, n int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// noCopyOnWrite is FS_NOCOW_FL, which the unix package does not have.
const noCopyOnWrite = 0x00800000

// keepInPlace asks btrfs to write the pages of a file, which is still empty, in place, so that no
// write needs new disk space. Other file systems do not have the flag, and write in place anyway.
func keepInPlace(file disk) {
	fd := int(file.Fd())
	if flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|noCopyOnWrite))
	}
}

// prefault reads mapped bytes from the disk. The error of a read is an error of this call, and not
// a signal. Before Linux 5.14 there is no such call.
func prefault(b []byte) error { return unix.Madvise(b, unix.MADV_POPULATE_READ) }
