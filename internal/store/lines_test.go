package store_test

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Buckets lie side by side in a Cache. A lookup touches the first two cache lines of one, and
// in the main ring one more.
func TestLayout_BucketLines(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("the layout is for 64-bit platforms")
	}
	const line = 64
	c := ringtest.MustCache(t, ringtest.Tiny(64, 1024, 64))
	b, next := ringtest.Nth(c, 0), ringtest.Nth(c, 1)
	first := uintptr(unsafe.Pointer(&b.Index)) - 16 // after lock and sequence
	bytes := uintptr(unsafe.Pointer(&next.Index)) - 16 - first
	require.Zero(t, first%line)
	require.Zero(t, bytes%line, "a bucket of %d bytes", bytes)
	require.Less(t, uintptr(unsafe.Pointer(&b.Form))-first, uintptr(2*line))
	require.Equal(t, first, uintptr(unsafe.Pointer(b.Mu)), "lock and sequence come first")
	require.Equal(t, first+8, uintptr(unsafe.Pointer(b.Seq)))
	main := uintptr(unsafe.Pointer(&b.Rings[policy.Main])) - first
	require.Zero(t, main%line, "main begins at %d", main)
}
