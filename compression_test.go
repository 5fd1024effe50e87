package ringcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/pack"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// funcCompressor is one of three functions; a nil one is flateCompressor's.
type funcCompressor struct {
	flateCompressor
	build      func(samples [][]byte) []byte
	with       func(dict []byte) (ValueCompressor, error)
	compress   func(dst, src []byte) ([]byte, error)
	decompress func(dst, src []byte, size int) ([]byte, error)
}

func (f *funcCompressor) BuildDict(samples [][]byte) []byte {
	if f.build != nil {
		return f.build(samples)
	}
	return f.flateCompressor.BuildDict(samples)
}

func (f *funcCompressor) WithDict(dict []byte) (ValueCompressor, error) {
	if f.with != nil {
		return f.with(dict)
	}
	v, err := f.flateCompressor.WithDict(dict)
	return &funcValues{v, f}, err
}

type funcValues struct {
	ValueCompressor
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

// requireTrue fails if the cache has another value for a key than the one that was set.
func (p *packedCache) requireTrue(t *testing.T) (hits int) {
	t.Helper()
	for id := 1; id <= p.fillers; id++ {
		if v, ok := p.HasGet(nil, fmt.Appendf(nil, "filler %d", id)); ok {
			require.Equal(t, string(text(id, p.size)), string(v), "filler %d", id)
			hits++
		}
	}
	return hits
}

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
			p := newPackedCache(t, by, nil)
			good := p.Stats()
			by.compress = bad
			for range 300 {
				p.fill(t)
				p.compressAll()
			}
			require.NoError(t, p.validate())
			s := p.Stats()
			z, was := &s.Compression, &good.Compression
			moved := z.Compressed - was.Compressed + z.CompressErrors - was.CompressErrors
			switch name {
			case "error", "panic", "panic of an error", "nil", "nothing":
				require.Greater(t, s.Compression.CompressErrors, good.Compression.CompressErrors+100)
				require.Equal(t, good.Compression.Compressed, s.Compression.Compressed)
			case "more", "as it is":
				require.Equal(t, good.Compression.Compressed, s.Compression.Compressed)
			default:
				require.Greater(t, moved, uint64(100))
			}
			require.Greater(t, p.requireTrue(t), 300)
			by.compress = nil
			for range 1000 {
				p.fill(t)
				p.compressAll()
			}
			require.Greater(t, p.Stats().Compression.Compressed, s.Compression.Compressed, "it works again")
			p.requireTrue(t)
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
			p := newPackedCache(t, by, nil)
			p.setPacked(t, packedKey, func() error { return p.Set(packedKey, packedValue) })
			by.decompress = bad
			before := p.Stats()
			_, ok := p.HasGet(nil, packedKey)
			require.False(t, ok)
			s := p.Stats()
			require.Equal(t, before.Misses+1, s.Misses)
			require.Equal(t, before.Compression.DecompressErrors+1, s.Compression.DecompressErrors)
			require.Equal(t, before.Corruptions+1, s.Corruptions)
			require.Equal(t, before.Compression.ColdHits, s.Compression.ColdHits)
			_, in := p.stored(packedKey)
			require.Equal(t, policy.Ring(noRing), in, "it is gone")
			require.NoError(t, p.validate())
			require.NoError(t, p.Append(packedKey, []byte("anew")))
			require.Equal(t, "anew", string(p.Get(nil, packedKey)))
			by.decompress = nil
			p.requireTrue(t)
		})
	}
}

// A Compressor that cannot do without a dictionary is refused.
func TestCompression_WithDictFailsAtFirst(t *testing.T) {
	for name, with := range map[string]func([]byte) (ValueCompressor, error){
		"error": func([]byte) (ValueCompressor, error) { return nil, errBad },
		"nil":   func([]byte) (ValueCompressor, error) { return nil, nil },
		"panic": func([]byte) (ValueCompressor, error) { panic("bad") },
	} {
		_, err := NewWithOptions(Options{MaxBytes: 32 << 20, Compressor: &funcCompressor{with: with}})
		require.ErrorIs(t, err, ErrInvalidOptions, name)
		require.ErrorContains(t, err, "Compressor", name)
	}
}

// Without a dictionary, because that fails or is not needed, values are packed nonetheless.
func TestCompression_BadDictionaries(t *testing.T) {
	with := func(v ValueCompressor, err error) func(dict []byte) (ValueCompressor, error) {
		return func(dict []byte) (ValueCompressor, error) {
			if dict == nil {
				return flateCompressor{}.WithDict(nil)
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
		"WithDict panics": {with: func(dict []byte) (ValueCompressor, error) {
			if dict != nil {
				panic("bad")
			}
			return flateCompressor{}.WithDict(nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPackedCache(t, by, nil)
			before := p.Stats()
			require.Equal(t, name != "none needed", before.Compression.CompressErrors > 0)
			for range 300 {
				p.fill(t)
				p.compressAll()
			}
			require.Greater(t, p.Stats().Compression.Compressed, before.Compression.Compressed)
			require.Greater(t, p.requireTrue(t), 300)
		})
	}
}

// A result that is long is not kept, nor what it lies in.
func TestCompression_LongResultIsNotKept(t *testing.T) {
	by := &funcCompressor{}
	p := newPackedCache(t, by, nil)
	by.compress = func(dst, _ []byte) ([]byte, error) {
		return append(dst, make([]byte, 4*cold.MostRoom)...), nil
	}
	var batch store.ColdBatch
	before := p.Stats()
	for p.Stats().Compression.UncompressedNoGain == before.Compression.UncompressedNoGain {
		p.fill(t)
		testhook.CompressQueue(p.Cache, 0, &batch)
	}
	require.LessOrEqual(t, cap(batch.Packed), cold.MostRoom)
	require.LessOrEqual(t, cap(p.shared.Compression.Room), cold.MostRoom)
	require.Equal(t, before.Compression.Compressed, p.Stats().Compression.Compressed)
	by.compress = func(dst, src []byte) ([]byte, error) {
		return append(append(make([]byte, 0, 4*cold.MostRoom), dst...), src[:len(src)/2]...), nil
	}
	for p.Stats().Compression.Compressed == before.Compression.Compressed {
		p.fill(t)
		p.compressAll()
	}
	require.LessOrEqual(t, cap(p.shared.Compression.Room), cold.MostRoom)
}

// Values that become longer are not worth it, and soon few are tried.
func TestCompression_WhatGrowsIsTriedSeldom(t *testing.T) {
	calls := 0
	by := &funcCompressor{}
	p := newPackedCache(t, by, nil)
	cl := &p.shared.Compression.Classes[pack.ClassOf(p.size)]
	cl.Ratio, cl.Best = pack.Ratio{}, 0 // as after another dictionary
	by.compress = func(dst, src []byte) ([]byte, error) {
		calls++
		return append(append(dst, src...), "more"...), nil
	}
	for range 2 * cold.ClassKnown / p.size {
		p.fill(t)
		p.compressAll()
	}
	require.InDelta(t, 1, cl.Ratio.Value(), 0.01)
	require.Less(t, calls, 3*cold.ClassKnown/p.size/2)
}

// A dictionary's number is not given to another one while records need it, however many
// are made.
func TestCompression_NumbersOfDictionariesAreUsedAgain(t *testing.T) {
	skipUnderRace(t)
	var built atomic.Int32
	by := &funcCompressor{}
	by.build = func(samples [][]byte) []byte {
		built.Add(1)
		return by.flateCompressor.BuildDict(samples)
	}
	p := newPackedCache(t, by, nil)
	s := p.shared.Compression
	for i := range 40 {
		for range 200 {
			p.fill(t)
			p.compressAll()
		}
		cl := &s.Classes[pack.ClassOf(p.size)]
		for j := range 1000 { // as if values were of another kind now
			cl.Samples.Add(fmt.Appendf(nil, "%d %d %d %d", i, j, i*j, i^j))
		}
		before := cl.Dict
		p.renewDicts()
		require.NotEqual(t, before, cl.Dict, "round %d: there is one that no record needs", i)
		require.NoError(t, p.validate())
	}
	require.Greater(t, built.Load(), int32(35))
	require.Greater(t, p.requireTrue(t), 300)
	require.Zero(t, p.Stats().Compression.DecompressErrors)
}

// OnRemove gets a packed value even if the number of its dictionary, which no record needs any
// more, is given to another dictionary before the value is unpacked.
func TestCompression_OnRemoveHasTheDictionary(t *testing.T) {
	heard := ""
	p := newPackedCache(t, flateCompressor{}, func(g *geometry) {
		g.onRemove = func(_, v []byte, _ RemovalReason) { heard = string(v) }
	})
	p.setPacked(t, packedKey, func() error { return p.Set(packedKey, packedValue) })
	require.Positive(t, countUses(&p.buckets[0])[1], "packed with a dictionary")
	testhook.Change(p.Cache, 0, func(b *store.Store) {
		h := p.shared.Hash(packedKey)
		require.True(t, b.Delete(&store.Write{Key: packedKey, Hash: h, Reason: store.Deleted}, nil))
		for i := 1; i < pack.Dicts; i++ { // as renew does
			d, err := p.shared.Compression.Open(fmt.Appendf(nil, "another dictionary %d", i))
			require.NoError(t, err)
			p.shared.Compression.Dicts[i].Store(d)
		}
	})
	require.Equal(t, string(packedValue), heard)
}

// Whatever bit of a packed record flips, its entry is a miss, or as it was; nothing else
// happens.
func TestCompression_DamagedBits(t *testing.T) {
	skipUnderRace(t)
	p := newPackedCache(t, flateCompressor{}, nil)
	b := &p.buckets[0]
	misses, rnd := 0, newRand(1)
	for range 50 {
		p.Del(packedKey) // it begins in small again
		p.setPacked(t, packedKey, func() error { return p.Set(packedKey, packedValue) })
		h := p.shared.Hash(packedKey)
		b.mu.Lock()
		var f store.Found
		require.True(t, b.Find(&f, packedKey, h))
		at := rnd.IntN(f.ValueLen)
		f.Ring.Run(f.ValuePos() + uint64(at))[0] ^= 1 << rnd.IntN(8)
		b.mu.Unlock()
		before := p.Stats()
		v, ok := p.HasGet(nil, packedKey)
		if ok {
			require.Equal(t, string(packedValue), string(v), "byte %d", at)
			continue
		}
		misses++
		require.Equal(t, before.Corruptions+1, p.Stats().Corruptions)
	}
	require.Greater(t, misses, 30)
	// A number that no dictionary has, in place of another's, is one count too many, or few.
	b.Cold.Uses = countUses(b)
	require.NoError(t, p.validate())
}

// countUses counts what coldPart.uses is.
func countUses(b *bucket) (n cold.Uses) {
	_ = validateRing(b.Cold.Store(), func(pos uint64, hd record.Header) error {
		if hd.Kind == record.Packed && !hd.Dead {
			if dict := b.Cold.DictNumber(pos, hd); dict < pack.Dicts {
				n[dict]++
			}
		}
		return nil
	})
	return n
}

// The memory of the cold part may be written to by somebody else: no call hangs or panics.
func TestCompression_DamagedRing(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for seed := range uint64(20) {
		rnd := newRand(seed)
		g := withCold(tiny(1, 1024, 256), flateCompressor{})
		g.byHand = true
		c := newCache(g)
		p := &packedCache{Cache: c, size: 300}
		for range 2000 {
			p.fill(t)
			p.compressAll()
		}
		b := &c.buckets[0]
		for range 20 {
			b.mu.Lock()
			r := b.Cold.Store()
			if rnd.IntN(4) == 0 {
				r = b.Cold.Queue()
			}
			if r.Size > 0 {
				pos := r.Tail + rnd.Uint64N(r.Size)
				r.Run(pos)[0] ^= 1 << rnd.IntN(8)
			}
			b.mu.Unlock()
			for range 50 {
				p.fill(t)
				p.compressAll()
			}
			for id := p.fillers - 1500; id < p.fillers; id += 7 {
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
	p := newPackedCache(t, flateCompressor{}, nil)
	s := p.shared.Compression
	packed := pack.Prefix{Dict: 0, Check: 1, Size: 1 << 30}.Append(nil)
	_, err := s.Unpack(nil, packed, s.DictOf(packed))
	require.ErrorIs(t, err, pack.ErrDamaged)
	packed = append(packed[:5], binary.AppendUvarint(nil, 1<<63)...)
	_, err = s.Unpack(nil, packed, s.DictOf(packed))
	require.ErrorIs(t, err, pack.ErrDamaged)
	if !raceEnabled {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, _ = s.Unpack(nil, packed, s.DictOf(packed))
		}))
	}
}

// namedCompressor has an ID of a test's.
type namedCompressor struct {
	flateCompressor
	id func() string
}

// ID returns what the test says.
func (n namedCompressor) ID() string { return n.id() }

func TestCompression_IDsHaveABound(t *testing.T) {
	for name, id := range map[string]func() string{
		"long":  func() string { return strings.Repeat("x", 65) },
		"panic": func() string { panic("no name") },
	} {
		_, err := NewWithOptions(Options{MaxBytes: 32 << 20, Compressor: namedCompressor{id: id}})
		require.ErrorIs(t, err, ErrInvalidOptions, name)
		require.ErrorContains(t, err, "ID", name)
	}
}

// A class that finds no number for its dictionary gathers samples anew: it must not search all
// buckets after each batch, nor keep others from theirs.
func TestCompression_NoNumberIsFree(t *testing.T) {
	p := newPackedCache(t, flateCompressor{}, nil)
	s, b := p.shared.Compression, &p.buckets[0]
	had := b.Cold.Uses
	s.Highest = pack.Dicts - 1
	for i := range b.Cold.Uses {
		b.Cold.Uses[i]++
	}
	cl := &s.Classes[0]
	for i := range 1000 {
		cl.Samples.Add(text(i, 200))
	}
	dict := cl.Dict
	p.renewDicts()
	require.Equal(t, dict, cl.Dict)
	require.False(t, cl.Samples.Enough())
	b.Cold.Uses = had
}
