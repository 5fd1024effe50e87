//go:build !((linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap)

package ringcache

import (
	"unsafe"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Memory of the Go heap, in builds without chunk_mmap.go.

// A key occurs twice, which does not compile, unless internal/chunk has the same build tags.
var _ = map[bool]struct{}{chunk.OffHeap: {}, true: {}}

// systemMemory returns memory of the Go heap: large pointer-free slices, which the collector marks
// but never scans. Memory is given back once nothing refers to it any more.
func systemMemory() chunk.Memory {
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
