//go:build !((linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap)

package ringcache

import (
	"unsafe"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Memory on the Go heap: large pointer-free slices, which the collector marks
// but never scans.

// offHeap tells whether chunks lie outside of the Go heap in this build. That
// this compiles shows that references are pointers in the same builds.
const offHeap = !chunk.OnHeap

// mapBytes returns n fresh zero bytes, aligned for 64-bit words.
func mapBytes(n int) ([]byte, error) {
	words := make([]uint64, (n+7)/8)
	// Sound: the bytes lie inside words and keep it alive.
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), nil
}

// unmapBytes gives back what mapBytes returned: the collector takes it once
// nothing refers to it.
func unmapBytes([]byte) error { return nil }

// askHugePages leaves the Go heap as it is.
func askHugePages([]byte) {}

// discardGranule says that the Go heap gives nothing back while it is referred to.
func discardGranule() int { return 0 }

// discardBytes is not called.
func discardBytes([]byte) {}
