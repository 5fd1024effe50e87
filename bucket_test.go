package ringcache

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
)

// Buckets lie side by side in a Cache. A lookup touches the first two cache lines of one, and
// in the main ring one more.
func TestLayout_BucketLines(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("the layout is for 64-bit platforms")
	}
	const line = 64
	c := mustCache(t, tiny(2, 1024, 64))
	b, next := c.nth(0), c.nth(1)
	first := uintptr(unsafe.Pointer(&b.Index)) - 16 // after lock and sequence
	bytes := uintptr(unsafe.Pointer(&next.Index)) - 16 - first
	require.Zero(t, first%line)
	require.Zero(t, bytes%line, "a bucket of %d bytes", bytes)
	require.Less(t, uintptr(unsafe.Pointer(&b.Form))-first, uintptr(2*line))
	require.Equal(t, first, uintptr(unsafe.Pointer(&b.mu)), "lock and sequence come first")
	require.Equal(t, first+8, uintptr(unsafe.Pointer(&b.seq)))
	main := uintptr(unsafe.Pointer(&b.Rings[policy.Main])) - first
	require.Zero(t, main%line, "main begins at %d", main)
}
