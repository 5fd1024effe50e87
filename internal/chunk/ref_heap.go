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
