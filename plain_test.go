package ringcache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeEntries returns how many entries the large buckets have.
func (c *Cache) largeEntries() (n int) {
	for i := range c.region.buckets {
		b := &c.region.buckets[i]
		b.hold()
		n += b.liveLocked()
		b.mu.release()
	}
	return n
}

// A Set is a plain one only if its record belongs into the small bucket.
func TestPlain_LargeRecords(t *testing.T) {
	const few, many = 100, 1000
	for name, tt := range map[string]struct {
		older, size int
		sparse      bool
		large       int
	}{
		"new":                         {older: -1, size: many},
		"new, sparse":                 {older: -1, size: many, sparse: true, large: 1},
		"new and short, sparse":       {older: -1, size: few, sparse: true},
		"replaced, sparse":            {older: few, size: many, sparse: true, large: 1},
		"replaced and short, sparse":  {older: few, size: few, sparse: true},
		"replaced by a shorter":       {older: many, size: few},
		"replaced by a much longer":   {older: few, size: 50_000, large: 1},
		"a large one, by a short one": {older: 50_000, size: few},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCache(t, tiny(4, 4096, 64))
			k := []byte("key")
			if tt.older >= 0 {
				require.NoError(t, c.Set(k, make([]byte, tt.older)))
			}
			c.shared.flow.sparse.Store(tt.sparse)
			require.NoError(t, c.Set(k, []byte(strings.Repeat("v", tt.size))))
			require.Equal(t, 1, c.Len())
			require.Equal(t, tt.large, c.largeEntries())
			require.Equal(t, strings.Repeat("v", tt.size), string(c.Get(nil, k)))
		})
	}
}

// A record that is longer than its bucket takes is not put aside.
func TestPlain_LongerThanTheBucketTakes(t *testing.T) {
	c := mustCache(t, tiny(64, 64, 8))
	k, v := []byte("key"), make([]byte, 200)
	require.Less(t, c.shared.longest(false), len(v))
	require.NoError(t, c.Set(k, []byte("older")))
	require.NoError(t, c.Set(k, v))
	require.False(t, isPutAside(c, "key"))
	require.Equal(t, 1, c.Len())
	require.Equal(t, 1, c.largeEntries())
	require.Equal(t, v, c.Get(nil, k))
}

// Every plain Set is counted, however it is made.
func TestPlain_Counts(t *testing.T) {
	for from := range 2 {
		g := tiny(1, 4096, 64)
		g.asideFrom = from
		c := mustCache(t, g)
		for i, v := range []string{"new", "old", "older", "longer and longer", strings.Repeat("v", 900), strings.Repeat("w", 900), ""} {
			require.NoError(t, c.Set([]byte("key"), []byte(v)))
			var s Stats
			c.UpdateStats(&s)
			require.EqualValues(t, i+1, s.SetCalls)
		}
		require.NoError(t, c.SetBatch([][]byte{{1}, {1}}, [][]byte{{2}, {3}}))
		require.Error(t, c.Set([]byte("key"), make([]byte, c.shared.maxValue()+1)))
		var s Stats
		c.UpdateStats(&s)
		require.EqualValues(t, 10, s.SetCalls)
		require.EqualValues(t, 1, s.EntriesCount)
	}
}

// Where all hashes are equal, a short value takes the place of a large one as well, and
// not only that of another key.
func TestPlain_StrayOfEqualHash(t *testing.T) {
	g := tiny(4, 4096, 64)
	g.seed = [2]uint64{}
	c := mustCache(t, g)
	k := []byte("two")
	require.NoError(t, c.Set([]byte("one"), []byte("1")))
	require.NoError(t, c.Set(k, make([]byte, 50_000)))
	require.Equal(t, 1, c.largeEntries())
	require.NoError(t, c.Set(k, []byte("2")))
	require.Equal(t, 2, c.Len())
	require.Equal(t, "2", string(c.Get(nil, k)))
	require.True(t, c.Del(k))
	require.False(t, c.Has(k))
	require.Zero(t, c.largeEntries())
}
