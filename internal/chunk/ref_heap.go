//go:build !((linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap)

package chunk

import "unsafe"

// OnHeap says that references are pointers in this build: memory is the
// collector's. chunk_other.go, which gets that memory, has the same build line.
const OnHeap = true

// Ref is the address of a chunk or of an index page; its zero value is none. It
// is a pointer that keeps the memory from Memory.Map alive.
type Ref struct{ addr unsafe.Pointer }

// RefOf returns the reference to the bytes of b, which come from Memory.Map.
func RefOf(b []byte) Ref { return Ref{unsafe.Pointer(unsafe.SliceData(b))} }

// Pointer returns the address that r holds.
//
//go:norace
func (r *Ref) Pointer() unsafe.Pointer { return r.addr }
