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
			b, h := ringtest.BucketOf(c, ringtest.HashOf(c, key(id))), ringtest.HashOf(c, key(id))
			return !b.Find(&f, key(id), h) && f.Presence == store.Ghost &&
				(p == ringcache.PolicyS3FIFO || b.IsNear(f.Slot))
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

// A key that returns twice goes to main for it, although ghosts are not trusted.
func TestPolicy_AGhostThatReturnsTwice(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	b := ringtest.Nth(c, 0)
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	next := uint64(1 << 32)
	set := func(k []byte) { require.NoError(t, c.Set(k, make([]byte, 100))) }
	find := func(k []byte) (f store.Found, live bool) {
		live = b.Find(&f, k, ringtest.HashOf(c, k))
		return f, live
	}
	// returns sets a key, and again when it has been dropped. It reports the ring that the key goes
	// to then, and whether its ghost, of small, was still there, and so recent that it counts.
	returns := func(k []byte) (in policy.Ring, recent bool) {
		f, live := find(k)
		for ; live; f, live = find(k) {
			set(key(next))
			next++
		}
		recent = f.Presence == store.Ghost && index.Ring(f.Slot) == policy.Small && b.IsNear(f.Slot)
		set(k)
		f, live = find(k)
		require.True(t, live)
		return index.Ring(f.Slot), recent
	}
	for id := range uint64(3000) {
		set(key(id))
	}
	first, second, inMain := 0, 0, 0
	for id := range uint64(60) {
		k := key(1<<40 + id)
		ringtest.Shared(c).Distrust()
		set(k)
		if in, recent := returns(k); !recent {
			continue
		} else if first++; in == policy.Main {
			inMain++
			continue
		}
		if in, recent := returns(k); recent {
			require.Equal(t, policy.Main, in, "key %d", id)
			second++
		}
	}
	require.Greater(t, second, 20, "too few for a test")
	require.Less(t, inMain, first/8, "keys that went to main the first time")
}
