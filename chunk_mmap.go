//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap

package ringcache

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offHeap tells whether chunks lie outside the Go heap in this build. The race
// detector and the sanitizers do not see memory of mmap, so builds with them
// take the heap (chunk_other.go).
const offHeap = true

// chunkRef is the address of a chunk or of an index page. It is an integer, so
// a table of them holds nothing for the garbage collector to follow; the
// memory behind it is not Go's, never moves, and stays mapped until the pool
// closes, which happens under every bucket's lock.
type chunkRef struct{ addr uintptr }

// refOf returns the reference to the bytes of b, which come from mapBytes.
func refOf(b []byte) chunkRef {
	return chunkRef{uintptr(unsafe.Pointer(unsafe.SliceData(b)))}
}

// pointer returns the address that r holds. Reading the word as a pointer is
// sound because no address of the Go heap is ever stored in a chunkRef: the
// collector ignores a pointer that leads elsewhere.
func (r *chunkRef) pointer() unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&r.addr))
}

// mapBytes returns n fresh zero bytes from the operating system, which takes
// no memory for them until they are touched.
func mapBytes(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// unmapBytes gives back what mapBytes returned.
func unmapBytes(b []byte) error { return unix.Munmap(b) }

// useHugePages asks the operating system to back b with large pages where it
// knows how to: a random access then costs fewer levels of address
// translation. It is a hint; there is nothing to do about a refusal.
func useHugePages(b []byte) {
	if runtime.GOOS == "linux" {
		_ = unix.Madvise(b, linuxHugePage)
	}
}

// canCool reports whether chunks of that size can be given back one by one.
func canCool(chunkSize int) bool { return chunkSize%unix.Getpagesize() == 0 }

// coolBytes gives the memory of b back to the operating system, at once on
// Linux, elsewhere as soon as it is short of it. b stays mapped; what it holds is
// lost. It is a hint as well.
func coolBytes(b []byte) {
	advice := unix.MADV_FREE
	if runtime.GOOS == "linux" {
		advice = unix.MADV_DONTNEED
	}
	_ = unix.Madvise(b, advice)
}

// linuxHugePage is MADV_HUGEPAGE of Linux, the same on all its architectures.
const linuxHugePage = 14
