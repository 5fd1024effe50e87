package room

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// What was deleted, or has expired, is not remembered: no larger cache would have it.
func TestStats_EvictedMisses_NotOfWhatWasRemoved(t *testing.T) {
	c, age := ringtest.TimedCache(t, ringtest.Tiny(1, 1024, 64))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(100) {
		require.NoError(t, c.SetWithTTL(key(id), nil, time.Second*time.Duration(id%2)))
	}
	for id := range uint64(50) {
		c.Del(key(id))
	}
	*age += time.Minute
	c.DeleteExpired()
	for id := range uint64(100) {
		c.Has(key(id))
	}
	s := c.Stats()
	require.EqualValues(t, 75, s.Misses)
	require.Zero(t, s.EvictedMisses)
	require.Zero(t, ringtest.PolicyOf(c).Ghosts)
}

// A key that is loaded is looked for twice, and missed once.
func TestStats_EvictedMisses_OfLoads(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(3000) {
		require.NoError(t, c.Set(key(id), make([]byte, 100)))
	}
	load, _ := ringtest.Gives("value")
	near := uint64(0)
	for id := range uint64(3000) {
		var f store.Found
		h := ringtest.HashOf(c, key(id))
		if !ringtest.BucketOf(c, h).Find(&f, key(id), h) && f.Presence == store.Ghost {
			near++
		}
		var err error
		if id%2 == 0 {
			_, err = c.GetOrLoad(t.Context(), nil, key(id), load)
		} else {
			_, _, err = c.GetOrLoadBatch(t.Context(), nil, [][]byte{key(id)}, make([][]byte, 1),
				new(ringtest.Echo).Load)
		}
		require.NoError(t, err)
		require.Equal(t, near, c.Stats().EvictedMisses, "key %d", id)
	}
	require.NotZero(t, near)
}

// A hit is no near miss, though the small bucket still has a ghost of the key: its value has
// become a large one.
func TestStats_EvictedMisses_NotOfHits(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(8, 1024, 64))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(20_000) {
		require.NoError(t, c.Set(key(id), make([]byte, 100)))
	}
	ghosts := 0
	for id := range uint64(20_000) {
		var f store.Found
		h := ringtest.HashOf(c, key(id))
		if b := ringtest.BucketOf(c, h); b.Find(&f, key(id), h) || f.Presence != store.Ghost {
			continue
		}
		ghosts++
		require.NoError(t, c.Set(key(id), make([]byte, 20_000)))
		before := c.Stats()
		require.True(t, c.Has(key(id)))
		_, hits := c.GetBatch(nil, [][]byte{key(id)}, make([][]byte, 1))
		require.Equal(t, 1, hits)
		s := c.Stats()
		require.Equal(t, before.Misses, s.Misses)
		require.Equal(t, before.EvictedMisses, s.EvictedMisses)
	}
	require.Greater(t, ghosts, 10, "too few for a test")
}
