//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap

package chunk

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory outside the Go heap. heap.go takes the place of this file on other systems, with the tag
// ringcache_heap, and under the race detector and the sanitizers, which do not track memory from
// mmap.

// OffHeap says whether chunks lie outside the Go heap in this build.
const OffHeap = true

// Ref is the address of a chunk or of an index page; its zero value is none. It
// is a number, so a table of them holds nothing for the collector to follow. The
// memory behind it never moves, and stays mapped until the pool is unmapped.
type Ref struct{ addr uintptr }

// RefOf returns the reference to the bytes of b, which come from Memory.Map.
func RefOf(b []byte) Ref { return Ref{uintptr(unsafe.Pointer(unsafe.SliceData(b)))} }

// Pointer returns the address that r holds.
func (r *Ref) Pointer() unsafe.Pointer {
	// Sound: no address of the Go heap is ever stored in a Ref of this build, and
	// the collector ignores a pointer that leads elsewhere.
	return *(*unsafe.Pointer)(unsafe.Pointer(&r.addr))
}

// SystemMemory returns memory of mmap, outside the Go heap.
func SystemMemory() Memory {
	m := Memory{
		Map: func(n int) ([]byte, error) {
			return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		},
		Unmap:    unix.Munmap,
		Discard:  discardBytes,
		Granule:  unix.Getpagesize(),
		Headroom: headroom,
	}
	if runtime.GOOS == "linux" {
		m.Large = wantLarge
	}
	return m
}

// headroom is the step by which the Go heap grows: 64 MB, or 4 MB where addresses have 32 bits.
const headroom = 4 << 20 << (^uint(0) >> 63 * 4)

// MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE and MADV_DONTNEED_LOCKED of Linux, the same on all
// architectures.
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
// without it, they are unlocked for good.
func discardBytes(b []byte) {
	if runtime.GOOS == "linux" {
		if len(b) < BlockSize {
			_ = unix.Madvise(b, linuxFree)
		}
		if unix.Madvise(b, unix.MADV_DONTNEED) == nil || unix.Madvise(b, linuxDropLocked) == nil {
			return
		}
		_ = unix.Munlock(b)
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
		return
	}
	// Sound: the pages are those of b, which is ours, and stay mapped throughout.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
}
