package cold_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// funcCompressor is one of three functions; a nil one is FlateCompressor's.
type funcCompressor struct {
	ringtest.FlateCompressor
	build      func(samples [][]byte) []byte
	with       func(dict []byte) (ringcache.ValueCompressor, error)
	compress   func(dst, src []byte) ([]byte, error)
	decompress func(dst, src []byte, size int) ([]byte, error)
}

func (f *funcCompressor) BuildDict(samples [][]byte) []byte {
	if f.build != nil {
		return f.build(samples)
	}
	return f.FlateCompressor.BuildDict(samples)
}

func (f *funcCompressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	if f.with != nil {
		return f.with(dict)
	}
	v, err := f.FlateCompressor.WithDict(dict)
	return &funcValues{v, f}, err
}

type funcValues struct {
	ringcache.ValueCompressor
	f *funcCompressor
}

func (v *funcValues) Compress(dst, src []byte) ([]byte, error) {
	if v.f.compress != nil {
		return v.f.compress(dst, src)
	}
	return v.ValueCompressor.Compress(dst, src)
}

func (v *funcValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	if v.f.decompress != nil {
		return v.f.decompress(dst, src, size)
	}
	return v.ValueCompressor.Decompress(dst, src, size)
}

var errBad = errors.New("bad compressor")

// Whatever Compress does, the value stays as it is, or is a miss, and the goroutine goes on.
func TestCompression_BadCompress(t *testing.T) {
	t.Parallel()
	var kept []byte
	for name, bad := range map[string]func(dst, src []byte) ([]byte, error){
		"error":             func(dst, _ []byte) ([]byte, error) { return dst, errBad },
		"panic":             func([]byte, []byte) ([]byte, error) { panic("bad") },
		"panic of an error": func([]byte, []byte) ([]byte, error) { panic(errBad) },
		"nil":               func([]byte, []byte) ([]byte, error) { return nil, nil },
		"nothing":           func(dst, _ []byte) ([]byte, error) { return dst, nil },
		"more": func(dst, src []byte) ([]byte, error) {
			return append(append(dst, src...), src...), nil
		},
		"as it is": func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil },
		"not appended": func(_, src []byte) ([]byte, error) {
			b := make([]byte, len(src)/2)
			for i := range b {
				b[i] = 0xff // no dictionary has this number
			}
			return b, nil
		},
		"another's array": func(_, src []byte) ([]byte, error) { return src[:len(src)/2], nil },
		"writes before dst": func(dst, src []byte) ([]byte, error) {
			for i := range dst {
				dst[i] = 0xff
			}
			return append(dst, src[:len(src)/3]...), nil
		},
		"keeps dst": func(dst, src []byte) ([]byte, error) {
			for i := range kept[:cap(kept)] {
				kept[:cap(kept)][i] = 0xff
			}
			if cap(dst) > cap(kept) {
				kept = dst
			}
			return append(dst, src[:len(src)/2]...), nil
		},
		"other bytes": func(dst, src []byte) ([]byte, error) { return append(dst, src[:40]...), nil },
	} {
		t.Run(name, func(t *testing.T) {
			by := &funcCompressor{}
			p := ringtest.NewPackedCache(t, by, nil)
			good := p.Stats()
			by.compress = bad
			p.FillPacked(t, 300)
			require.NoError(t, ringtest.Validate(p.Cache))
			s := p.Stats()
			z, was := &s.Compression, &good.Compression
			moved := z.Compressed - was.Compressed + z.Errors - was.Errors
			switch name {
			case "error", "panic", "panic of an error", "nil", "nothing":
				require.Greater(t, s.Compression.Errors, good.Compression.Errors+100)
				require.Equal(t, good.Compression.Compressed, s.Compression.Compressed)
			case "more", "as it is":
				require.Equal(t, good.Compression.Compressed, s.Compression.Compressed)
			default:
				require.Greater(t, moved, uint64(100))
			}
			require.Greater(t, p.RequireTrue(t), 300)
			by.compress = nil
			p.FillPacked(t, 1000)
			require.Greater(t, p.Stats().Compression.Compressed, s.Compression.Compressed, "it works again")
			p.RequireTrue(t)
		})
	}
}

// Whatever Decompress does, the entry is a miss, and counted.
func TestCompression_BadDecompress(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(dst, src []byte, size int) ([]byte, error){
		"error": func(dst, _ []byte, _ int) ([]byte, error) { return dst, errBad },
		"value and error": func(dst, _ []byte, size int) ([]byte, error) {
			return append(dst, make([]byte, size)...), errBad
		},
		"panic": func([]byte, []byte, int) ([]byte, error) { panic("bad") },
		"nil":   func([]byte, []byte, int) ([]byte, error) { return nil, nil },
		"less": func(dst, _ []byte, size int) ([]byte, error) {
			return append(dst, make([]byte, size-1)...), nil
		},
		"more": func(dst, _ []byte, size int) ([]byte, error) {
			return append(dst, make([]byte, size+1)...), nil
		},
		"other bytes": func(dst, _ []byte, size int) ([]byte, error) {
			return append(dst, make([]byte, size)...), nil
		},
		"src": func(_, src []byte, _ int) ([]byte, error) { return src, nil },
		"changes src": func(dst, src []byte, size int) ([]byte, error) {
			clear(src)
			return append(dst, src...), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			by := &funcCompressor{}
			p := ringtest.NewPackedCache(t, by, nil)
			p.SetPacked(t, ringtest.PackedKey, func() error {
				return p.Set(ringtest.PackedKey, ringtest.PackedValue)
			})
			by.decompress = bad
			before := p.Stats()
			_, ok := p.HasGet(nil, ringtest.PackedKey)
			require.False(t, ok)
			s := p.Stats()
			require.Equal(t, before.Misses+1, s.Misses)
			require.Equal(t, before.Compression.Errors+1, s.Compression.Errors)
			require.Equal(t, before.Corruptions+1, s.Corruptions)
			require.Equal(t, before.Compression.ColdHits, s.Compression.ColdHits)
			_, in := ringtest.Stored(p.Cache, ringtest.PackedKey)
			require.Equal(t, policy.Ring(ringtest.NoRing), in, "it is gone")
			require.NoError(t, ringtest.Validate(p.Cache))
			require.NoError(t, p.Update(ringtest.PackedKey, ringtest.Append([]byte("anew"))))
			require.Equal(t, "anew", string(p.Get(nil, ringtest.PackedKey)))
			by.decompress = nil
			p.RequireTrue(t)
		})
	}
}

// A Compressor that cannot do without a dictionary is refused.
func TestCompression_WithDictFailsAtFirst(t *testing.T) {
	for name, with := range map[string]func([]byte) (ringcache.ValueCompressor, error){
		"error": func([]byte) (ringcache.ValueCompressor, error) { return nil, errBad },
		"nil":   func([]byte) (ringcache.ValueCompressor, error) { return nil, nil },
		"panic": func([]byte) (ringcache.ValueCompressor, error) { panic("bad") },
	} {
		_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20,
			Compressor: &funcCompressor{with: with}})
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions, name)
		require.ErrorContains(t, err, "Compressor", name)
	}
}

// Without a dictionary, because that fails or is not needed, values are packed nonetheless.
func TestCompression_BadDictionaries(t *testing.T) {
	with := func(
		v ringcache.ValueCompressor, err error,
	) func(dict []byte) (ringcache.ValueCompressor, error) {
		return func(dict []byte) (ringcache.ValueCompressor, error) {
			if dict == nil {
				return ringtest.FlateCompressor{}.WithDict(nil)
			}
			return v, err
		}
	}
	for name, by := range map[string]*funcCompressor{
		"none needed":      {build: func([][]byte) []byte { return nil }},
		"a long one":       {build: func([][]byte) []byte { return make([]byte, cold.MostDict+1) }},
		"BuildDict panics": {build: func([][]byte) []byte { panic("bad") }},
		"WithDict fails":   {with: with(nil, errBad)},
		"WithDict is nil":  {with: with(nil, nil)},
		"WithDict panics": {with: func(dict []byte) (ringcache.ValueCompressor, error) {
			if dict != nil {
				panic("bad")
			}
			return ringtest.FlateCompressor{}.WithDict(nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := ringtest.NewPackedCache(t, by, nil)
			before := p.Stats()
			require.Equal(t, name != "none needed", before.Compression.Errors > 0)
			p.FillPacked(t, 300)
			require.Greater(t, p.Stats().Compression.Compressed, before.Compression.Compressed)
			require.Greater(t, p.RequireTrue(t), 300)
		})
	}
}

// A result that is long is not kept, nor what it lies in.
func TestCompression_LongResultIsNotKept(t *testing.T) {
	by := &funcCompressor{}
	p := ringtest.NewPackedCache(t, by, nil)
	calls := 0
	by.compress = func(dst, _ []byte) ([]byte, error) {
		calls++
		return append(dst, make([]byte, 4*cold.MostRoom)...), nil
	}
	var w store.Waiting
	before := p.Stats()
	for range 100 {
		p.Fill(t)
		ringtest.CompressQueue(p.Cache, 0, &w)
	}
	require.Positive(t, calls)
	require.Nil(t, w.Packed)
	require.LessOrEqual(t, cap(ringtest.Shared(p.Cache).Compression.Room), cold.MostRoom)
	require.Equal(t, before.Compression.Compressed, p.Stats().Compression.Compressed)
	by.compress = func(dst, src []byte) ([]byte, error) {
		return append(append(make([]byte, 0, 4*cold.MostRoom), dst...), src[:len(src)/2]...), nil
	}
	for p.Stats().Compression.Compressed == before.Compression.Compressed {
		p.Fill(t)
		ringtest.CompressAll(p.Cache)
	}
	require.LessOrEqual(t, cap(ringtest.Shared(p.Cache).Compression.Room), cold.MostRoom)
}

// Values that become longer are not worth it, and soon few are tried.
func TestCompression_WhatGrowsIsTriedSeldom(t *testing.T) {
	calls := 0
	by := &funcCompressor{}
	p := ringtest.NewPackedCache(t, by, nil)
	cl := ringtest.Shared(p.Cache).Compression
	cl.Ratio, cl.Best = cold.Ratio{}, 0 // as after another dictionary
	by.compress = func(dst, src []byte) ([]byte, error) {
		calls++
		return append(append(dst, src...), "more"...), nil
	}
	for range 2 * cold.Known / p.Size {
		p.Fill(t)
		ringtest.CompressAll(p.Cache)
	}
	require.InDelta(t, 1, cl.Ratio.Value(), 0.01)
	require.Less(t, calls, 3*cold.Known/p.Size/2)
}

// However often values become of another kind, there are only so many dictionaries, whose
// numbers are not used again: all values stay readable.
func TestCompression_NumbersOfDictionariesEnd(t *testing.T) {
	ringtest.SkipUnderRace(t)
	var built atomic.Int32
	by := &funcCompressor{}
	by.build = func(samples [][]byte) []byte {
		built.Add(1)
		return by.FlateCompressor.BuildDict(samples)
	}
	p := ringtest.NewPackedCache(t, by, nil)
	s := ringtest.Shared(p.Cache).Compression
	numbers := map[uint8]bool{s.Dict: true}
	for i := range 20 {
		s.Ratio, s.Best = cold.Ratio{}, 1000 // as if values were of another kind now
		s.Ratio.Add(cold.Known, cold.Known/2)
		for range 2000 {
			p.Fill(t)
			ringtest.CompressAll(p.Cache)
			s.Best = 1000
			numbers[s.Dict] = true
		}
		require.NoError(t, ringtest.Validate(p.Cache), "round %d", i)
	}
	require.Len(t, numbers, int(built.Load()))
	require.Len(t, numbers, cold.Dicts-1)
	require.False(t, s.Samples.Enough())
	require.Greater(t, p.RequireTrue(t), 300)
	require.Zero(t, p.Stats().Compression.Errors)
}

// The share follows the ratio: it is full until that is known, none where nothing is gained, and
// full again once it pays. A scout always has the full one.
func TestCompression_ShareFollowsTheRatio(t *testing.T) {
	g := ringtest.WithCold(ringtest.Default(ringtest.MinBytes), ringtest.FlateCompressor{})
	g.ColdShare, g.ByHand = 0, true
	s := ringtest.Shared(ringtest.MustCache(t, g)).Compression
	require.Equal(t, cold.FullShare, s.ShareOf(false))
	random := make([]byte, 1000)
	for range 10_000 {
		ringtest.FillRandom(ringtest.NewRand(1), random)
		require.Empty(t, s.Pack(random, len(random)))
	}
	require.Zero(t, s.ShareOf(false))
	require.Equal(t, cold.FullShare, s.ShareOf(true))
	for i := range 20_000 {
		v := ringtest.Text(i, 1000)
		require.NotEmpty(t, s.Pack(v, len(v)))
	}
	require.Equal(t, cold.FullShare, s.ShareOf(false))
}

// The memory of the cold part may be written to by somebody else: no call hangs or panics.
func TestCompression_DamagedRing(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	seeds := uint64(5)
	if *ringtest.LongRun {
		seeds = 20
	}
	for seed := range seeds {
		rnd := ringtest.NewRand(seed)
		g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), ringtest.FlateCompressor{})
		g.ByHand = true
		c := ringtest.NewCache(g)
		p := &ringtest.PackedCache{Cache: c, Size: 300}
		p.FillPacked(t, 2000)
		b := ringtest.Nth(c, 0)
		for range 20 {
			b.Mu.Lock()
			r := b.Ring(policy.Cold)
			if rnd.IntN(4) == 0 {
				r = b.Ring(policy.Queue)
			}
			if r.Size > 0 {
				pos := r.Tail + rnd.Uint64N(r.Size)
				r.Run(pos)[0] ^= 1 << rnd.IntN(8)
			}
			b.Mu.Unlock()
			p.FillPacked(t, 50)
			for id := p.Fillers - 1500; id < p.Fillers; id += 7 {
				_ = c.Get(nil, fmt.Appendf(nil, "filler %d", id))
			}
			for range c.All() {
			}
			c.DeleteExpired()
		}
		assert.NotPanics(t, c.Reset)
		require.NoError(t, c.Close())
	}
}

// What a damaged record says of its length takes no memory beyond the bound.
func TestCompression_HugeLengthAllocatesNothing(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	s := ringtest.Shared(p.Cache).Compression
	packed := binary.AppendUvarint([]byte{0, 1, 2, 3, 4}, 1<<30)
	_, err := s.Unpack(nil, packed)
	require.ErrorIs(t, err, cold.ErrDamaged)
	packed = append(packed[:5], binary.AppendUvarint(nil, 1<<63)...)
	_, err = s.Unpack(nil, packed)
	require.ErrorIs(t, err, cold.ErrDamaged)
	if !ringtest.RaceEnabled {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, _ = s.Unpack(nil, packed)
		}))
	}
}

func TestCompression_IDsHaveABound(t *testing.T) {
	for name, id := range map[string]func() string{
		"long":  func() string { return strings.Repeat("x", 65) },
		"panic": func() string { panic("no name") },
	} {
		_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20,
			Compressor: ringtest.NamedCompressor{Name: id}})
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions, name)
		require.ErrorContains(t, err, "ID", name)
	}
}
