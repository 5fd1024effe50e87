package store_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
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
		h := ringtest.HashOf(p.Cache, ringtest.PackedKey)
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
	b := ringtest.BucketOf(p.Cache, ringtest.HashOf(p.Cache, ringtest.PackedKey))
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

// onDecompress is FlateCompressor that calls a function before it decompresses.
type onDecompress struct {
	ringtest.FlateCompressor
	fn *func()
}

func (o onDecompress) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	v, err := o.FlateCompressor.WithDict(dict)
	return onDecompressValues{v, o.fn}, err
}

type onDecompressValues struct {
	ringcache.ValueCompressor
	fn *func()
}

func (o onDecompressValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	(*o.fn)()
	return o.ValueCompressor.Decompress(dst, src, size)
}

// An entry that expires while its value is decompressed is a hit, as it was when it was found.
func TestColdPart_ExpiresWhileItIsDecompressed(t *testing.T) {
	k, v := ringtest.PackedKey, ringtest.PackedValue
	for name, get := range map[string]func(t *testing.T, c *ringcache.Cache) []byte{
		"HasGet": func(t *testing.T, c *ringcache.Cache) []byte {
			v, ok := c.HasGet(nil, k)
			require.True(t, ok)
			return v
		},
		"GetBatch": func(t *testing.T, c *ringcache.Cache) []byte {
			vals := make([][]byte, 1)
			_, hits := c.GetBatch(nil, [][]byte{k}, vals)
			require.Equal(t, 1, hits)
			return vals[0]
		},
		"GetOrLoad": func(t *testing.T, c *ringcache.Cache) []byte {
			v, err := c.GetOrLoad(t.Context(), nil, k, ringtest.NeverLoads)
			require.NoError(t, err)
			return v
		},
		"Update": func(t *testing.T, c *ringcache.Cache) (v []byte) {
			require.NoError(t, c.Update(k, func(e *ringcache.Entry[[]byte]) {
				require.True(t, e.Present)
				v = bytes.Clone(e.Value)
			}))
			return v
		},
	} {
		t.Run(name, func(t *testing.T) {
			during := func() {}
			p := ringtest.NewPackedCache(t, onDecompress{fn: &during}, nil)
			p.SetPacked(t, k, func() error { return p.SetWithTTL(k, v, time.Hour) })
			before := p.Stats()
			during = func() { p.Now += 2 * time.Hour }
			require.Equal(t, string(v), string(get(t, p.Cache)))
			require.Equal(t, before.Misses, p.Stats().Misses)
			require.False(t, p.Has(k))
		})
	}
}

// A record of the queue whose key is damaged is dropped. OnRemove is not told of it.
func TestColdPart_DamagedKeyInTheQueue(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	require.NoError(t, p.Set(ringtest.PackedKey, ringtest.PackedValue))
	p.Queue(t, ringtest.PackedKey)
	b := ringtest.Nth(p.Cache, 0)
	var f store.Found
	b.Mu.Lock()
	h := ringtest.HashOf(p.Cache, ringtest.PackedKey)
	require.True(t, b.Find(&f, ringtest.PackedKey, h))
	f.Ring.Run(f.Pos + uint64(f.Size))[0] ^= 1
	b.Mu.Unlock()
	before, told, entries := p.Stats(), len(p.Left), p.Len()
	ringtest.CompressAll(p.Cache)
	require.Equal(t, before.Corruptions+1, p.Stats().Corruptions)
	require.Equal(t, before.EvictedEntries, p.Stats().EvictedEntries)
	require.Len(t, p.Left, told)
	require.Equal(t, entries-1, p.Len())
	require.False(t, p.Has(ringtest.PackedKey))
}

// A bucket that gives one chunk loses no more than that, and perhaps a second one that its moves
// have emptied, whatever becomes of the cold part's share.
func TestColdPart_GiveOneTakesOne(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	ringtest.Change(p.Cache, 0, func(b *store.Store) {
		chunks := func() (n int) {
			for _, in := range []policy.Ring{policy.Small, policy.Main, policy.Queue, policy.Cold} {
				n += b.Ring(in).Held()
			}
			return n
		}
		for n := chunks(); n > 4; n = chunks() {
			for f := (store.Fit{Evicts: true, Loss: math.MaxInt}); !f.Done; f.Step(b) {
				b.Removals = nil // OnRemove is not called in this test
			}
			b.Removals = nil
			require.Less(t, chunks(), n)
			require.GreaterOrEqual(t, chunks(), n-2)
		}
	})
}
