package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
)

// All homes have moved before the index is crowded again, whatever it has grown by.
// Meanwhile new keys go to those that have not moved, too, which must not be too full.
func TestBucketIndex_HomesMoveBeforeTheNextGrowth(t *testing.T) {
	const groups, slots = 16, 7
	require.LessOrEqual(t, growFilling/16.+1./slots/homesPerSet, 0.79)
	for pages := 1; pages <= 200; pages++ {
		for _, at := range []int{growFilling, growFull, growFIFO, growRoomy} {
			crowded := func(pages int) int { return (pages*groups*slots*at + 15) / 16 }
			sets := crowded(pages+max(1, pages/growthPart)) - crowded(pages)
			require.GreaterOrEqual(t, homesPerSet*sets, pages*groups, "%d pages, grown at %d", pages, at)
		}
	}
}

// What the slots of an index may cost follows what they are for, and a cache that is not
// full pays for entries alone.
func TestBucketIndex_GrowsAtWhatTheRecordsAreLike(t *testing.T) {
	for _, c := range []struct {
		mean                int
		filling, full, fifo int
	}{
		{0, growFilling, growFilling, growFilling},
		{fullRecord - 1, growFilling, growFilling, growFilling},
		{fullRecord, growFilling, growFull, growFIFO},
		{roomyRecord - 1, growFilling, growFull, growFIFO},
		{roomyRecord, growRoomy, growRoomy, growRoomy},
	} {
		for kind, full := range map[policy.Kind]int{policy.S3FIFO: c.full, policy.FIFO: c.fifo} {
			what := fmt.Sprintf("policy %d, records of %d bytes", kind, c.mean)
			require.Equal(t, c.filling, growAt(kind, c.mean, false), what)
			require.Equal(t, full, growAt(kind, c.mean, true), what)
		}
	}
}
