package ringfile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory's word has room for the number of each ring, and no two have the same.
func TestRingID_FitsTheDirectory(t *testing.T) {
	const buckets = 512 + 4 // the most, large ones among them
	seen := map[uint64]bool{}
	for bucket := range buckets {
		for ring := range 4 {
			id := ringID(bucket, ring)
			require.False(t, seen[id], "bucket %d, ring %d", bucket, ring)
			require.Less(t, id, uint64(1)<<(valueBits-slotBits))
			require.Equal(t, ring >= 2, id > 2*buckets, "an older library takes it for its own")
			seen[id] = true
		}
	}
}
