//go:build !((linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap)

package chunk

import "unsafe"

// OffHeap says whether chunks lie outside the Go heap in this build.
const OffHeap = false

// Ref is the address of a chunk or of an index page; its zero value is none. It is a pointer, which
// keeps the memory from Memory.Map alive.
type Ref struct{ addr unsafe.Pointer }

// RefOf returns the reference to the bytes of b, which come from Memory.Map.
func RefOf(b []byte) Ref { return Ref{unsafe.Pointer(unsafe.SliceData(b))} }

// Pointer returns the address that r holds.
//
//go:norace
func (r *Ref) Pointer() unsafe.Pointer { return r.addr }

// SystemMemory returns memory of the Go heap: large pointer-free slices, which the collector marks
// but never scans. Memory is given back once nothing refers to it any more.
func SystemMemory() Memory {
	return Memory{
		Map: func(n int) ([]byte, error) {
			words := make([]uint64, (n+7)/8) // aligned for words
			// Sound: the bytes lie inside words and keep it alive.
			return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), nil
		},
		Unmap:   func([]byte) error { return nil },
		Discard: func([]byte) {},
	}
}
