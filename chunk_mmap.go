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
	return chunk.Memory{
		Map: func(n int) ([]byte, error) {
			return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		},
		Unmap:     unix.Munmap,
		Discard:   discardBytes,
		HugePages: askHugePages,
		Granule:   unix.Getpagesize(),
	}
}

// linuxHugePage is MADV_HUGEPAGE of Linux, the same on all its architectures.
const linuxHugePage = 14

// askHugePages asks for large pages where the operating system knows how to: a
// random access then costs fewer levels of address translation. It is a hint; there
// is nothing to do about a refusal.
func askHugePages(b []byte) {
	if runtime.GOOS == "linux" {
		_ = unix.Madvise(b, linuxHugePage)
	}
}

// discardBytes puts fresh pages over those of b; on Linux a call that does the same
// is cheaper.
func discardBytes(b []byte) {
	if runtime.GOOS == "linux" {
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
		return
	}
	// Sound: the pages are those of b, which is ours, and stay mapped throughout.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
}
