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

// osMemory returns the memory of the platform. It gives nothing back as long as
// anything refers to it.
func osMemory() chunk.Memory {
	return chunk.Memory{
		Map: func(n int) ([]byte, error) {
			words := make([]uint64, (n+7)/8) // aligned for words
			// Sound: the bytes lie inside words and keep it alive.
			return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), nil
		},
		Unmap:   func([]byte) error { return nil },
		Discard: func([]byte) {},
	}
}
