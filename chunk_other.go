//go:build !((linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race && !asan && !msan && !ringcache_heap)

package ringcache

import "unsafe"

// offHeap tells whether chunks lie outside the Go heap in this build: here
// they are large pointer-free slices of it, which the collector marks but
// never scans.
const offHeap = false

// chunkRef is the address of a chunk or of an index page, as a pointer that
// keeps the slice from mapBytes alive.
type chunkRef struct{ addr unsafe.Pointer }

// refOf returns the reference to the bytes of b, which come from mapBytes.
func refOf(b []byte) chunkRef { return chunkRef{unsafe.Pointer(unsafe.SliceData(b))} }

// pointer returns the address that r holds.
func (r *chunkRef) pointer() unsafe.Pointer { return r.addr }

// mapBytes returns n fresh zero bytes, aligned for 64-bit words.
func mapBytes(n int) ([]byte, error) {
	words := make([]uint64, (n+7)/8)
	// Sound: the bytes lie inside words and keep it alive.
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), nil
}

// unmapBytes gives back what mapBytes returned: the collector takes it once
// nothing refers to it.
func unmapBytes([]byte) error { return nil }

// useHugePages leaves the Go heap as it is.
func useHugePages([]byte) {}

// canCool reports that the Go heap gives nothing back while it is referred to.
func canCool(int) bool { return false }

// coolBytes is not called.
func coolBytes([]byte) {}
