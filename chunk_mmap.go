//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap

package ringcache

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/chunk"
)

// The system's memory, outside the Go heap: how a cache maps it, gives it back, and asks for large
// pages. Package chunk divides it into chunks and pages. chunk_other.go is for other builds.

// A key occurs twice, which does not compile, unless internal/chunk has the same build tags.
var _ = map[bool]struct{}{chunk.OffHeap: {}, false: {}}

// systemMemory returns memory of mmap, outside the Go heap.
func systemMemory() chunk.Memory {
	m := chunk.Memory{
		Map: func(n int) ([]byte, error) {
			return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		},
		Unmap:    unix.Munmap,
		Discard:  discardBytes,
		Granule:  unix.Getpagesize(),
		Headroom: headroom,
		Probe:    probe,
	}
	if runtime.GOOS == "linux" {
		m.Large = wantLarge
	}
	return m
}

// headroom is the usual step by which the Go heap grows: 64 MB, or 4 MB where an int has 32 bits.
const headroom = 4 << 20 << (^uint(0) >> 63 * 4)

// probe returns an error if the system would not map n bytes. They become writable, which a limit
// on data counts, only once they are unlocked: else mlockall(MCL_FUTURE) would fill them.
func probe(n int) error {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	_ = unix.Munlock(b)
	err = unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE)
	_ = unix.Munmap(b) // else the addresses stay mapped, and take no memory
	return err
}

// MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE and MADV_DONTNEED_LOCKED of Linux.
const (
	linuxFree       = 8
	linuxHugePage   = 14
	linuxNoHugePage = 15
	linuxDropLocked = 24 // since Linux 5.18
)

// wantLarge asks for large pages, or for none. This is a hint, so errors are ignored.
func wantLarge(b []byte, want bool) {
	if want {
		_ = unix.Madvise(b, linuxHugePage)
	} else {
		_ = unix.Madvise(b, linuxNoHugePage)
	}
}

// discardBytes replaces the pages of b by fresh ones. On Linux, MADV_DONTNEED does the same and is
// cheaper. But it would keep a part of a large page as long as the rest of that page is in use, so
// MADV_FREE splits the page first. Locked pages (mlockall) need MADV_DONTNEED_LOCKED; on kernels
// without it, they are unlocked for good. A sandbox may forbid all advice.
func discardBytes(b []byte) {
	if runtime.GOOS == "linux" {
		if len(b) < chunk.BlockSize {
			_ = unix.Madvise(b, linuxFree)
		}
		if unix.Madvise(b, unix.MADV_DONTNEED) == nil || unix.Madvise(b, linuxDropLocked) == nil {
			return
		}
		_ = unix.Munlock(b)
		if unix.Madvise(b, unix.MADV_DONTNEED) == nil {
			return
		}
	}
	// Sound: the pages are those of b, which is ours, and stay mapped throughout.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
}
