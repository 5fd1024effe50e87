//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap

package ringcache

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Memory outside of the Go heap. The race detector and the sanitizers do not see
// memory of mmap, so builds with them take the heap (chunk_other.go).

// offHeap tells whether chunks lie outside of the Go heap in this build. That
// this compiles shows that references are numbers in the same builds.
const offHeap = chunk.OffHeap

// osMemory returns the memory of the platform.
func osMemory() chunk.Memory {
	m := chunk.Memory{
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

// headroom is what the Go heap grows by: 64 MB, or 4 MB where addresses
// have 32 bits.
const headroom = 4 << 20 << (^uint(0) >> 63 * 4)

// What Linux calls MADV_FREE and so on, the same on all its architectures.
const (
	linuxFree       = 8
	linuxHugePage   = 14
	linuxNoHugePage = 15
	linuxDropLocked = 24 // MADV_DONTNEED_LOCKED, since Linux 5.18
)

// wantLarge asks for large pages, or for none. It is a hint; there is nothing to do
// about a refusal.
func wantLarge(b []byte, want bool) {
	if want {
		_ = unix.Madvise(b, linuxHugePage)
	} else {
		_ = unix.Madvise(b, linuxNoHugePage)
	}
}

// discardBytes puts fresh pages over those of b. On Linux a call that does the same
// is cheaper; but a part of a large page would stay as long as the rest of it, so a
// call before splits that. Pages that are locked (mlockall) need a separate call; where there
// is none, they are unlocked for good.
func discardBytes(b []byte) {
	if runtime.GOOS == "linux" {
		if len(b) < chunk.BlockSize {
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
