//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap

package chunk

import "unsafe"

// OffHeap says that references are numbers in this build: memory is not the
// collector's. chunk_mmap.go, which gets that memory, has the same build line.
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
