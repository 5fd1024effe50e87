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
	var b bucket
	require.Zero(t, unsafe.Sizeof(b)%line, "a bucket of %d bytes", unsafe.Sizeof(b))
	require.Less(t, unsafe.Offsetof(b.Form), uintptr(2*line))
	require.Equal(t, uintptr(16), unsafe.Offsetof(b.Store), "lock and sequence come first")
	main := unsafe.Offsetof(b.Rings) + uintptr(policy.Main)*unsafe.Sizeof(b.Rings[0])
	require.Zero(t, main%line, "main begins at %d", main)
}
