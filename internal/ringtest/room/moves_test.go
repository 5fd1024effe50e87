package room_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// Entries of movedSize bytes are large in a cache of movedTo bytes, and small in one of movedFrom.
const (
	movedSize    = 10_000
	movedFrom    = 4 << 20
	movedTo      = movedFrom / 4
	movedBuckets = 16
)

func movedShape() ringtest.Shape {
	return ringtest.Tiny(movedBuckets, 4096, movedFrom/4096/movedBuckets)
}

// bucketOf returns the number of the small bucket of a key.
func bucketOf(c *ringcache.Cache, k []byte) int {
	return int(ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number)
}

// isLarge reports whether a large bucket has the key.
func isLarge(c *ringcache.Cache, k []byte) bool {
	h := ringtest.HashOf(c, k)
	return ringtest.LargeBucketOf(c, h).Find(new(store.Found), k, h)
}

// keyIn returns a key of at least that length, in a bucket that is right.
func keyIn(c *ringcache.Cache, length int, right func(bucket int) bool) []byte {
	for id := uint32(0); ; id++ {
		k := ringtest.TrafficKey(nil, id)
		k = append(k, make([]byte, max(0, length-len(k)))...)
		if right(bucketOf(c, k)) {
			return k
		}
	}
}

// whileMoved calls Resize, and fn once while it moves entry first, with no lock held: when it reads
// the clock because first has an expiry.
func whileMoved(t *testing.T, c *ringcache.Cache, hook *func(), first []byte, fn func()) {
	t.Helper()
	mu, done := ringtest.BucketOf(c, ringtest.HashOf(c, first)).Mu, false
	*hook = func() {
		if done || !ringtest.Arena(c).TryLock() {
			return
		}
		ringtest.Arena(c).Unlock()
		if mu.TryLock() {
			mu.Unlock()
			done = true
			fn()
		}
	}
	require.NoError(t, c.Resize(movedTo))
	*hook = func() {}
	require.True(t, done)
	require.True(t, isLarge(c, first), "it has not moved")
}

// clocked returns a cache whose readings of the clock call *hook.
func clocked(
	t *testing.T, g ringtest.Shape,
) (c *ringcache.Cache, age *time.Duration, hook *func()) {
	age, hook = new(time.Duration), new(func())
	*hook = func() {}
	g.Elapsed = func() time.Duration { (*hook)(); return *age }
	return ringtest.MustCache(t, g), age, hook
}

// Resize moves the value that a Set has stored meanwhile in place of a negative entry.
func TestResize_MovesAValueSetForANegativeEntry(t *testing.T) {
	c, _, hook := clocked(t, movedShape())
	first := keyIn(c, 0, func(int) bool { return true })
	k := keyIn(c, movedSize, func(b int) bool { return b == bucketOf(c, first) })
	require.NoError(t, c.SetWithTTL(first, make([]byte, movedSize), time.Hour))
	_, err := c.GetOrLoad(context.Background(), nil, k,
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			return nil, 0, ringcache.ErrAbsent
		})
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	whileMoved(t, c, hook, first, func() { require.NoError(t, c.Set(k, []byte("value"))) })
	require.True(t, isLarge(c, k))
	require.Equal(t, "value", string(c.Get(nil, k)))
}

// An entry that is read while Resize moves it keeps the idle time that the read has begun.
func TestResize_KeepsTheIdleTimeOfAReadMeanwhile(t *testing.T) {
	const idle = 10 * time.Second
	g := movedShape()
	g.ExpireAfterAccess = idle
	c, age, hook := clocked(t, g)
	first := keyIn(c, 0, func(int) bool { return true })
	k := keyIn(c, len(first)+1, func(b int) bool { return b == bucketOf(c, first) })
	for _, k := range [][]byte{first, k} {
		require.NoError(t, c.Set(k, make([]byte, movedSize)))
	}
	*age = idle * 6 / 10
	left := func(k []byte) time.Duration { d, _ := c.TTL(k); return d }
	whileMoved(t, c, hook, first, func() { require.True(t, c.Has(k)) })
	require.True(t, isLarge(c, k))
	require.Greater(t, left(k), idle*9/10)
	require.Less(t, left(first), idle/2, "a move is no read")
}

// outgrew returns a cache of small entries, and the key of an entry in a large bucket that is small
// by now.
func outgrew(t *testing.T, g ringtest.Shape) (c *ringcache.Cache, k []byte) {
	c = ringtest.MustCache(t, g)
	require.NoError(t, c.Resize(movedTo))
	k = keyIn(c, 0, func(b int) bool { return 0 < b && b < movedBuckets/2 })
	require.NoError(t, c.Set(k, make([]byte, movedSize)))
	require.NoError(t, c.Resize(movedFrom))
	for i := range 300 {
		require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 100)))
	}
	require.True(t, isLarge(c, k))
	return c, k
}

// Touch stores an entry again where it is, whatever the size of large ones is by now.
func TestTouch_MovesNothing(t *testing.T) {
	t.Run("large", func(t *testing.T) {
		c, k := outgrew(t, movedShape())
		require.True(t, c.Touch(k, time.Hour))
		require.True(t, isLarge(c, k))
		left, ok := c.TTL(k)
		require.True(t, ok && left > 0)
		changed, err := c.CompareAndSwap(k, make([]byte, movedSize), make([]byte, movedSize))
		require.True(t, changed && err == nil)
		require.False(t, isLarge(c, k), "a Set moves it: the test proves nothing")
	})
	t.Run("small", func(t *testing.T) {
		c := ringtest.MustCache(t, movedShape())
		k, v := []byte("k"), make([]byte, movedSize/2)
		require.NoError(t, c.Set(k, v))
		for i := range 50 {
			require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 3*movedSize)))
		}
		require.False(t, isLarge(c, k))
		require.True(t, c.Touch(k, time.Hour))
		require.False(t, isLarge(c, k))
		changed, err := c.CompareAndSwap(k, v, v)
		require.True(t, changed && err == nil)
		require.True(t, isLarge(c, k), "a Set moves it: the test proves nothing")
	})
}

// A loop sees an entry that is touched meanwhile.
func TestAll_SeesATouchedEntryOnce(t *testing.T) {
	c, k := outgrew(t, movedShape())
	touched, seen := false, 0
	for other := range c.Keys() {
		if string(other) == string(k) {
			seen++
		} else if !touched && bucketOf(c, other) > bucketOf(c, k) {
			touched = c.Touch(k, time.Hour)
			require.True(t, touched)
		}
	}
	require.True(t, touched)
	require.Equal(t, 1, seen)
}

// Reset of a view removes an entry that is touched meanwhile.
func TestTypedReset_RemovesATouchedEntry(t *testing.T) {
	g := movedShape()
	var c *ringcache.Cache
	var k []byte
	touched := false
	g.OnRemove = func(gone ringcache.Removal) {
		if k != nil && !touched && bucketOf(c, gone.Key) > bucketOf(c, k) {
			touched = c.Touch(k, time.Hour)
			require.True(t, touched)
		}
	}
	c, k = outgrew(t, g)
	ringcache.NewTyped[string](c, codec.String[string](), ringcache.TypedOptions{}).Reset()
	require.True(t, touched)
	require.False(t, c.Has(k))
	require.Zero(t, c.Len())
}

// OnRemove is told once of an entry that Touch stores again while others evict it. These hold the
// lock of the large bucket so long that it goes to those who wait, in their order: if Touch took it
// once for the condition and once for the record, one of them would come in between.
func TestTouch_OfAnEntryThatIsEvicted(t *testing.T) {
	g := movedShape()
	var mu sync.Mutex
	told := map[uint64]int{} // by version
	var evicted atomic.Int64
	g.OnRemove = func(gone ringcache.Removal) {
		mu.Lock()
		defer mu.Unlock()
		told[binary.LittleEndian.Uint64(gone.Value)]++
		if gone.Reason == ringcache.RemovedEvicted {
			evicted.Add(1)
		}
	}
	c := ringtest.MustCache(t, g)
	k, v := []byte("k"), make([]byte, 4*movedSize)
	large := int(ringtest.LargeBucketOf(c, ringtest.HashOf(c, k)).Number)
	var stop atomic.Bool
	var evictors sync.WaitGroup
	for range 3 {
		evictors.Add(1)
		go func() {
			defer evictors.Done()
			for !stop.Load() {
				ringtest.Change(c, large, func(s *store.Store) {
					if rand.IntN(8) == 0 {
						s.Give(s.Sizes().Held, 0)
						s.EndWrite()
					}
					time.Sleep(time.Millisecond)
				})
			}
		}()
	}
	touched := 0
	for version := uint64(0); evicted.Load() < 80*int64(ringtest.Rounds()); version++ {
		binary.LittleEndian.PutUint64(v, version)
		require.NoError(t, c.Set(k, v))
		if c.Touch(k, time.Hour) {
			touched++
		}
	}
	stop.Store(true)
	evictors.Wait()
	require.NotZero(t, touched)
	for version, n := range told {
		require.Equal(t, 1, n, "version %d", version)
	}
}
