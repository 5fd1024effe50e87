//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import (
	"testing"
	"unsafe"
)

// Copies on a processor that has no 32-byte registers.
func TestGlance_LengthsSSE(t *testing.T) {
	defer func(has bool) { hasAVX = has }(hasAVX)
	hasAVX = false
	testLengths(t)
}

// The assembly finds a bucket's rings by a shift.
func TestGlance_RingShift(t *testing.T) {
	if got := unsafe.Sizeof(ring{}); got != 1<<ringShift {
		t.Errorf("a ring has %d bytes, want %d", got, 1<<ringShift)
	}
}
