package room_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Reset removes an entry that moves to the large buckets and back while it runs: by Resize, and by
// a write after another one.
func TestReset_EntryThatMoves(t *testing.T) {
	const bound, buckets = 4 << 20, 16
	g := ringtest.Tiny(buckets, 4096, bound/4096/buckets)
	var c *ringcache.Cache
	var k []byte
	at := func(k []byte) int { return int(ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number) }
	moved, back := false, false
	g.OnRemove = func(gone ringcache.Removal) {
		switch {
		case gone.Reason != ringcache.RemovedReset:
		case !moved: // the first bucket is empty
			moved = true
			require.NoError(t, c.Resize(bound/4))
			require.True(t, c.Has(k), "Resize has evicted it: the test proves nothing")
		case !back && at(gone.Key) > buckets/2:
			back = true
			require.NoError(t, c.Resize(bound))
			_, err := c.CompareAndSwap(k, make([]byte, 10_000), make([]byte, 10_000))
			require.NoError(t, err)
		}
	}
	c = ringtest.MustCache(t, g)
	for id := range uint32(500) {
		other := ringtest.TrafficKey(nil, id)
		require.NoError(t, c.Set(other, make([]byte, 100)))
		if n := at(other); k == nil && n > 0 && n < buckets/2 {
			k = other
		}
	}
	require.NoError(t, c.Set(k, make([]byte, 10_000)))
	c.Reset()
	require.True(t, moved && back)
	require.False(t, c.Has(k))
	require.Zero(t, c.Len())
}

// Reset ends even if OnRemove sets each entry again, a large one too.
func TestReset_EndsWhileOnRemoveSetsLargeEntriesAgain(t *testing.T) {
	const bound, buckets, most = 16 << 20, 16, 10_000
	g := ringtest.Tiny(buckets, 4096, bound/4096/buckets)
	var c *ringcache.Cache
	calls := 0
	g.OnRemove = func(gone ringcache.Removal) {
		if calls++; calls < most && gone.Reason == ringcache.RemovedReset {
			require.NoError(t, c.Set(gone.Key, gone.Value))
		}
	}
	c = ringtest.MustCache(t, g)
	for i := range 3 {
		require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 200_000)))
	}
	c.Reset()
	require.Positive(t, calls)
	require.Less(t, calls, most)
}
