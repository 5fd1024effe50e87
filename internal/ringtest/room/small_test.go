package room

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func newSmall(t *testing.T, maxBytes int) *ringcache.Cache {
	t.Helper()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// A cache below 32 MB keeps to its bound, and makes use of it.
func TestSmallCache_UsesItsBound(t *testing.T) {
	for _, maxBytes := range []int{256 << 10, 300_000, 1 << 20, 1<<20 + 1, 5 << 20, 31 << 20} {
		c := newSmall(t, maxBytes)
		value := make([]byte, 300)
		for i := range 3 * maxBytes / len(value) {
			require.NoError(t, c.Set(fmt.Appendf(nil, "key %d", i), value))
		}
		s := c.Stats()
		require.LessOrEqual(t, s.ReservedBytes, uint64(maxBytes))
		require.Greater(t, s.BytesSize, uint64(maxBytes)*4/5, "of %d bytes", maxBytes)
		require.NoError(t, c.Set([]byte("longest"), make([]byte, maxBytes/16)))
		require.True(t, c.Has([]byte("longest")), "in %d bytes", maxBytes)
		require.ErrorIs(t, c.Set([]byte("longer"), make([]byte, maxBytes/16+1)), ringcache.ErrTooLarge)
	}
}

// An empty cache takes little of the Go heap, and the less, the lower its bound is.
func TestSmallCache_HeapFollowsTheBound(t *testing.T) {
	if !chunk.OffHeap || ringtest.RaceEnabled {
		t.Skip("the cache lies on the Go heap")
	}
	const caches = 50
	for maxBytes, most := range map[int]uint64{
		256 << 10: 25 << 10, 1 << 20: 40 << 10, 512 << 20: 480 << 10,
	} {
		before := heap()
		var all []*ringcache.Cache
		for range caches {
			all = append(all, newSmall(t, maxBytes))
		}
		require.LessOrEqual(t, (heap()-before)/caches, most, "bytes of heap of a cache of %d", maxBytes)
		runtime.KeepAlive(all)
	}
}

// The documentation states this bound. The tables of chunks grow until the cache is full.
func TestFullCache_HeapIsAsDocumented(t *testing.T) {
	if !chunk.OffHeap || ringtest.RaceEnabled {
		t.Skip("the cache lies on the Go heap")
	}
	const maxBytes = 32 << 20
	before := heap()
	c := newSmall(t, maxBytes)
	key, value := make([]byte, 16), make([]byte, 100)
	for i := range uint64(2 * maxBytes / 120) {
		binary.LittleEndian.PutUint64(key, i)
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
	require.LessOrEqual(t, heap()-before, uint64(800<<10))
	runtime.KeepAlive(c)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
