package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// Whatever bit of a packed record flips, its entry is a miss, or as it was; nothing else
// happens.
func TestCompression_DamagedBits(t *testing.T) {
	ringtest.SkipUnderRace(t)
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	b := ringtest.Nth(p.Cache, 0)
	misses, rnd := 0, ringtest.NewRand(1)
	for range 50 {
		p.Del(ringtest.PackedKey) // it begins in small again
		p.SetPacked(t, ringtest.PackedKey, func() error {
			return p.Set(ringtest.PackedKey, ringtest.PackedValue)
		})
		h := ringtest.Shared(p.Cache).Hash(ringtest.PackedKey)
		b.Mu.Lock()
		var f store.Found
		require.True(t, b.Find(&f, ringtest.PackedKey, h))
		at := rnd.IntN(f.ValueLen)
		f.Ring.Run(f.ValuePos() + uint64(at))[0] ^= 1 << rnd.IntN(8)
		b.Mu.Unlock()
		before := p.Stats()
		v, ok := p.HasGet(nil, ringtest.PackedKey)
		if ok {
			require.Equal(t, string(ringtest.PackedValue), string(v), "byte %d", at)
			continue
		}
		misses++
		require.Equal(t, before.Corruptions+1, p.Stats().Corruptions)
	}
	require.Greater(t, misses, 30)
	// A number that no dictionary has, in place of another's, is one count too many, or few.
	require.NoError(t, ringtest.Validate(p.Cache))
}

// A record that the goroutine moves while DeleteExpired is under way is not overlooked.
func TestColdPart_DeleteExpiredFindsWhatMoves(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	require.NoError(t, p.SetWithTTL(ringtest.PackedKey, ringtest.PackedValue, time.Hour))
	p.Queue(t, ringtest.PackedKey)
	p.Now += time.Hour
	b := ringtest.BucketOf(p.Cache, ringtest.Shared(p.Cache).Hash(ringtest.PackedKey))
	b.Mu.Lock()
	b.BeginWalk()
	b.Mu.Unlock()
	ringtest.CompressAll(p.Cache)
	_, in := ringtest.Stored(p.Cache, ringtest.PackedKey)
	require.Equal(t, policy.Cold, in, "it has moved, expired as it is")
	dropped := 0
	for done := false; !done; {
		ringtest.Change(p.Cache, 0, func(b *store.Store) {
			var n int
			n, done = b.DeleteStep(false)
			dropped += n
		})
	}
	require.Equal(t, 1, dropped)
	require.Less(t, b.SoonestExpiry(), uint32(math.MaxUint32))
}

// A record of the cold part for which the bucket has become too small stays there however often it
// is read.
func TestColdPart_KeepsWhatIsTooLong(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	p.SetPacked(t, ringtest.PackedKey, func() error {
		return p.Set(ringtest.PackedKey, ringtest.PackedValue)
	})
	evicted := p.Stats().EvictedEntries
	ringtest.Change(p.Cache, 0, func(b *store.Store) { b.Longest = len(ringtest.PackedValue) })
	for range 5 {
		require.Equal(t, string(ringtest.PackedValue), string(p.Get(nil, ringtest.PackedKey)))
	}
	_, in := ringtest.Stored(p.Cache, ringtest.PackedKey)
	require.Equal(t, policy.Cold, in)
	require.Equal(t, evicted, p.Stats().EvictedEntries)
}
