//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap

package chunk

import "unsafe"

// References to memory outside the Go heap. ref_heap.go replaces this file on other systems, with
// the tag ringcache_heap, and under the race detector and the sanitizers, which do not track memory
// from mmap. The memory itself comes from chunk_mmap.go and chunk_other.go of the root package,
// which have the same build tags.

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
