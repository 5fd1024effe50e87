package store_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// Each lookup of a ghost is a near miss, and nothing else is.
func TestStats_NearMisses(t *testing.T) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(1, 1024, 64)
		g.Policy = p
		c := ringtest.MustCache(t, g)
		key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
		isNear := func(id uint64) bool { // as the index and the rings say it
			var f store.Found
			b, h := ringtest.BucketOf(c, ringtest.Shared(c).Hash(key(id))), ringtest.Shared(c).Hash(key(id))
			return !b.Find(&f, key(id), h) && f.Ghost && (p == ringcache.PolicyS3FIFO || b.IsNear(f.Slot))
		}
		for id := range uint64(3000) {
			require.NoError(t, c.Set(key(id), make([]byte, 100)))
		}
		near, far := uint64(0), uint64(0)
		for id := range uint64(6000) { // half of them were never set
			want := c.Stats().EvictedMisses
			c.TTL(key(id))
			c.Peek(nil, key(id))
			require.Equal(t, want, c.Stats().EvictedMisses, "%v: what is no lookup", p)
			calls := uint64(4)
			c.Get(nil, key(id))
			c.HasGet(nil, key(id))
			c.Has(key(id))
			c.GetBatch(nil, [][]byte{key(id)}, make([][]byte, 1))
			if isNear(id) {
				want += calls
				near++
			} else {
				far++
			}
			s := c.Stats()
			require.Equal(t, want, s.EvictedMisses, "%v: key %d", p, id)
			require.LessOrEqual(t, s.EvictedMisses, s.Misses)
		}
		require.Greater(t, near, uint64(100), "%v: too few for a test", p)
		require.Greater(t, far, uint64(3000), "%v: too few for a test", p)
		n := ringtest.Nth(c, 0).Ghosts()
		require.EqualValues(t, n[policy.Small]+n[policy.Main], ringtest.PolicyOf(c).Ghosts)
		require.NotZero(t, ringtest.PolicyOf(c).Ghosts)
	}
}

// A lookup that finds a ghost counts once, until its key is set again.
func TestPolicy_AGhostCountsOnce(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 16))
	b := ringtest.Nth(c, 0)
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(1000) {
		require.NoError(t, c.Set(key(id), make([]byte, 100)))
	}
	lookups := map[string]func(id uint64){
		"Get":            func(id uint64) { c.Get(nil, key(id)) },
		"GetBatch":       func(id uint64) { c.GetBatch(nil, [][]byte{key(id)}, make([][]byte, 1)) },
		"under the lock": func(id uint64) { k := key(id); c.HasGet(k[:0], k) }, // they overlap
	}
	for name, lookup := range lookups {
		n := 0
		for id := range uint64(1000) {
			before := b.Sought()
			for range 3 {
				lookup(id)
			}
			require.LessOrEqual(t, b.Sought()-before, uint32(1), "%s: key %d", name, id)
			n += int(b.Sought() - before)
		}
		require.GreaterOrEqual(t, n, 10, "%s: ghosts that were found", name)
		for id := range uint64(1000) {
			require.NoError(t, c.Set(key(id), make([]byte, 100)))
		}
	}
	before := b.Sought()
	for id := range uint64(1000) {
		c.TTL(key(id))
		c.Peek(nil, key(id))
	}
	require.Equal(t, before, b.Sought(), "calls that are no reads")
}

// Of the first pair of small buckets, one admits every recent ghost to main, and the other only a
// few of them.
func TestPolicy_BucketsTakeSeatsInTheDuel(t *testing.T) {
	const number, value = 512, 100
	c := ringtest.MustCache(t, ringtest.Tiny(number, 1024, 16))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	var ghosts, inMain [2]int
	for id := uint64(0); ghosts[0] < 500 || ghosts[1] < 500; id++ {
		var f store.Found
		k := key(id % (number * 200))
		h := ringtest.Shared(c).Hash(k)
		b := ringtest.BucketOf(c, h)
		n := b.Number
		if n > 1 || b.Find(&f, k, h) {
			continue
		}
		recent := f.Ghost && b.IsNear(f.Slot)
		require.NoError(t, c.Set(k, make([]byte, value)))
		if !recent {
			continue
		}
		ghosts[n]++
		if require.True(t, b.Find(&f, k, h)); index.Ring(f.Slot) == policy.Main {
			inMain[n]++
		}
	}
	require.Equal(t, ghosts[0], inMain[0], "the bucket that trusts ghosts")
	require.Less(t, inMain[1], ghosts[1]/4, "the bucket that does not")
}
