//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import "testing"

// Copies on a processor that has no 32-byte registers.
func TestGlance_LengthsSSE(t *testing.T) {
	defer func(has bool) { hasAVX = has }(hasAVX)
	hasAVX = false
	testLengths(t)
}
