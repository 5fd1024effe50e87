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

// mapBytes returns n fresh zero bytes from the operating system, which takes
// no memory for them until they are touched.
func mapBytes(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// unmapBytes gives back what mapBytes returned.
func unmapBytes(b []byte) error { return unix.Munmap(b) }

// askHugePages asks the operating system to back b with large pages where it
// knows how to: a random access then costs fewer levels of address translation.
// It is a hint; there is nothing to do about a refusal.
func askHugePages(b []byte) {
	if runtime.GOOS == "linux" {
		_ = unix.Madvise(b, linuxHugePage)
	}
}

// linuxHugePage is MADV_HUGEPAGE of Linux, the same on all its architectures.
const linuxHugePage = 14

// discardGranule returns what discardBytes works in.
func discardGranule() int { return unix.Getpagesize() }

// discardBytes gives the memory of b back to the operating system. b stays
// mapped, and is zero when it is read again. It puts fresh pages over the old
// ones; on Linux a call that does the same is cheaper.
func discardBytes(b []byte) {
	if runtime.GOOS == "linux" {
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
		return
	}
	// Sound: the pages are those of b, which is ours, and stay mapped throughout.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
}
