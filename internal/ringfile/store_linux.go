package ringfile

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mayFit reports whether the disk may have room for n bytes. A file system that has no limit,
// such as ramfs, reports no blocks.
func mayFit(fd int, n int64) bool {
	var disk unix.Statfs_t
	known := unix.Fstatfs(fd, &disk) == nil && disk.Blocks > 0
	return !known || disk.Bavail >= uint64(n)/uint64(disk.Bsize)
}

// preallocate allocates disk space for a range of a file, and separate space for blocks that the
// range shares with another file (on XFS). The error is errors.ErrUnsupported if that cannot be
// done.
func preallocate(fd int, off, n int64) error {
	err := unix.Fallocate(fd, unix.FALLOC_FL_UNSHARE_RANGE, off, n)
	if err != nil && !isNoSpace(err) {
		err = unix.Fallocate(fd, 0, off, n)
	}
	return asSpace(err)
}

// asSpace returns nil, an error that says that there is no space, or errors.ErrUnsupported for any
// other error: a sandbox may forbid the call (EPERM), and signals may interrupt each attempt
// (EINTR), and the bytes can still be written.
func asSpace(err error) error {
	if err == nil || isNoSpace(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
}

func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// punch turns a range of a file into a hole.
func punch(fd int, off, n int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// mostRuns returns how many runs of hidden chunks there may be. Each splits a mapping and so adds
// two, so that at most half of the mappings that a process may have are used.
var mostRuns = sync.OnceValue(func() int64 {
	most := int64(65530) // the default of Linux
	if b, err := os.ReadFile("/proc/sys/vm/max_map_count"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			most = n
		}
	}
	return most / 4
})

// fiemap and fiemapExtent are struct fiemap and struct fiemap_extent of linux/fiemap.h, which the
// unix package does not have.
type fiemap struct {
	start, length      uint64
	_, mapped, most, _ uint32
	extents            [64]fiemapExtent
}

type fiemapExtent struct {
	logical, _, length uint64
	_                  [2]uint64
	flags              uint32
	_                  [3]uint32
}

const (
	fsIOCFiemap    = 0xc020660b // FS_IOC_FIEMAP
	extentIsShared = 0x2000     // FIEMAP_EXTENT_SHARED
)

// ownsBlocks reports whether all of the n bytes of a file from off on have disk space that they
// share with no other file. known is false if the file system cannot tell.
func ownsBlocks(fd int, off, n int64) (owns, known bool) {
	for end := off + n; off < end; {
		m := fiemap{start: uint64(off), length: uint64(end - off)}
		m.most = uint32(len(m.extents))
		// Sound: the kernel writes no more extents than there are, and only during the call.
		_, _, errno := unix.Syscall(unix.SYS_IOCTL,
			uintptr(fd), fsIOCFiemap, uintptr(unsafe.Pointer(&m)))
		if errno != 0 {
			return false, false
		}
		extents := m.extents[:m.mapped]
		for _, e := range extents {
			if e.logical > uint64(off) || e.flags&extentIsShared != 0 {
				return false, true
			}
			off = int64(e.logical + e.length)
		}
		if len(extents) == 0 { // a hole up to the end
			return false, true
		}
	}
	return true, true
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
