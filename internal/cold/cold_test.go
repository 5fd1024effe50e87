package cold_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// goroutinesOfCold counts those that compress.
func goroutinesOfCold() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "ringcache.compressInBackground(") {
			n++
		}
	}
	return n
}

// coldCache returns a cache whose goroutine runs, of one bucket.
func coldCache(by ringcache.Compressor) *ringtest.PackedCache {
	g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), by)
	return &ringtest.PackedCache{Cache: ringtest.NewCache(g), Size: 300}
}

// There is a goroutine only with a Compressor, and it ends with Close.
func TestCold_GoroutineEndsWithClose(t *testing.T) {
	ended := func() bool { return goroutinesOfCold() == 0 }
	require.Eventually(t, ended, ringtest.HangLimit, time.Millisecond) // those of other tests
	c := ringtest.NewCache(ringtest.Tiny(1, 1024, 256))
	require.Zero(t, goroutinesOfCold())
	require.NoError(t, c.Close())
	p := coldCache(ringtest.FlateCompressor{})
	require.Eventually(t, func() bool {
		return goroutinesOfCold() == 1
	}, ringtest.HangLimit, time.Millisecond)
	p.FillUntilPacked(t)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.Eventually(t, ended, ringtest.HangLimit, time.Millisecond)
	require.False(t, p.Has([]byte("filler 1")))
}

// A cache that nobody has any more is collected, and its goroutine ends.
func TestCold_GoroutineEndsWithTheCache(t *testing.T) {
	ref := func() weak.Pointer[ringcache.Cache] {
		p := coldCache(ringtest.FlateCompressor{})
		p.FillUntilPacked(t)
		return weak.Make(p.Cache)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return ref.Value() == nil && goroutinesOfCold() == 0
	}, ringtest.HangLimit, time.Millisecond)
}

// While the Compressor does not return, Sets go on, and the cache can be closed.
func TestCold_NobodyWaitsForTheCompressor(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	by := &funcCompressor{}
	by.compress = func(dst, _ []byte) ([]byte, error) {
		entered <- struct{}{}
		<-release
		return dst, errBad
	}
	p := coldCache(by)
	require.NoError(t, ringtest.InTime(func() error {
		for range 5000 { // more than it holds
			p.Fill(t)
		}
		return nil
	}))
	<-entered
	s := p.Stats()
	require.Greater(t, ringtest.PolicyOf(p.Cache).UncompressedQueueFull, uint64(2000))
	require.Zero(t, s.Compression.Compressed)
	require.Equal(t, 5000, p.Len()+int(s.EvictedEntries))
	require.Greater(t, p.RequireTrue(t), 400)
	require.NoError(t, ringtest.Validate(p.Cache))
	require.NoError(t, ringtest.InTime(p.Close))
	end()
	require.Eventually(t, func() bool {
		return goroutinesOfCold() == 0
	}, ringtest.HangLimit, time.Millisecond)
}

// No lock is held while a function of the Compressor runs: it may call every method.
func TestCold_CompressorMayCallEveryMethod(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	good, err := ringtest.FlateCompressor{}.WithDict(nil)
	require.NoError(t, err)
	for _, place := range []string{"Compress", "Decompress", "BuildDict", "WithDict"} {
		for _, call := range ringtest.EveryCall() {
			by := &funcCompressor{}
			var p *ringtest.PackedCache
			armed, called := false, false
			inner := func(in string) {
				if armed && in == place {
					armed, called = false, true
					call.Do(p.Cache, ringtest.PackedKey, ringtest.PackedValue)
					call.Do(p.Cache, fmt.Appendf(nil, "filler %d", p.Fillers), ringtest.PackedValue)
				}
			}
			by.compress = func(dst, src []byte) ([]byte, error) {
				inner("Compress")
				return good.Compress(dst, src)
			}
			by.decompress = func(dst, src []byte, size int) ([]byte, error) {
				inner("Decompress")
				return good.Decompress(dst, src, size)
			}
			by.build = func(samples [][]byte) []byte {
				inner("BuildDict")
				return by.FlateCompressor.BuildDict(samples)
			}
			by.with = func(dict []byte) (ringcache.ValueCompressor, error) {
				inner("WithDict")
				v, err := by.FlateCompressor.WithDict(dict)
				return &funcValues{v, by}, err
			}
			g := ringtest.WithCold(ringtest.Tiny(1, 1024, 64), by)
			g.ByHand = true
			p = &ringtest.PackedCache{Cache: ringtest.NewCache(g), Size: 300}
			require.NoError(t, ringtest.InTime(func() error {
				p.FillPacked(t, 500)
				armed = true
				for i := 0; i < 2000 && !called; i++ {
					p.Fill(t)
					ringtest.CompressAll(p.Cache)
					_, _ = p.HasGet(nil, fmt.Appendf(nil, "filler %d", max(1, p.Fillers-150)))
				}
				return p.Close()
			}), "%s within %s", call.Name, place)
			require.True(t, called, "%s within %s: the test proves nothing", call.Name, place)
		}
	}
}

// plainCompressor makes two bytes of a value of equal bytes, and nothing of others. It does
// not allocate.
type plainCompressor struct{}

func (plainCompressor) ID() string                { return "runs" }
func (plainCompressor) BuildDict([][]byte) []byte { return nil }
func (plainCompressor) WithDict([]byte) (ringcache.ValueCompressor, error) {
	return plainCompressor{}, nil
}
func (plainCompressor) Compress(dst, src []byte) ([]byte, error) { return append(dst, src[0]), nil }
func (plainCompressor) Decompress(dst, src []byte, n int) ([]byte, error) {
	for range n {
		dst = append(dst, src[0])
	}
	return dst, nil
}

// Lookups of packed entries allocate nothing, nor do Sets that have others demoted.
func TestColdPart_AllocatesNothing(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("the detector lets pools forget")
	}
	g := ringtest.WithCold(ringtest.Tiny(1, 4096, 256), plainCompressor{})
	g.ByHand = true
	c := ringtest.MustCache(t, g)
	v, keys := bytes.Repeat([]byte{7}, 300), make([][]byte, 20_000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key %d", i)
		require.NoError(t, c.Set(keys[i], v))
		if i%16 == 0 {
			ringtest.CompressAll(c)
		}
	}
	dst, next := make([]byte, 0, 512), 0
	before := c.Stats()
	require.Greater(t, before.Compression.Compressed, uint64(1000))
	left := ringtest.PolicyOf(c).Evicted
	for _, tt := range []struct {
		name string
		call func(k []byte)
	}{
		{"Get", func(k []byte) { dst = c.Get(dst[:0], k) }},
		{"Has", func(k []byte) { c.Has(k) }},
		{"Peek", func(k []byte) { dst, _ = c.Peek(dst[:0], k) }},
		{"Update", func(k []byte) { _ = c.Update(k, func(*ringtest.Entry) {}) }},
		{"Set", func(k []byte) { _ = c.Set(k, v) }}, // at last: it has others leave
	} {
		assert.Zero(t, testing.AllocsPerRun(2000, func() {
			tt.call(keys[len(keys)-1-next%len(keys)])
			next++
		}), tt.name)
	}
	after := c.Stats()
	require.Greater(t, after.Compression.ColdHits, before.Compression.ColdHits+1000,
		"lookups in the cold part")
	require.NotZero(t, ringtest.PolicyOf(c).Evicted-left, "none has left it")
}

// An entry of the cold part is there: it is no ghost, from which Stats tell what a larger
// cache would find.
func TestStats_ColdEntriesAreNoGhosts(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	b, ghosts := ringtest.Nth(p.Cache, 0), uint64(0)
	b.Index.Each(func(slot, _ uint64) {
		if !b.Ring(index.Ring(slot)).Live(slot) {
			ghosts++
		}
	})
	s := p.Stats()
	require.NotZero(t, s.Compression.ColdEntries)
	require.Equal(t, ghosts, ringtest.PolicyOf(p.Cache).Ghosts)
}

// Each record is compressed once: the cold ring has room for what waits. (What this Compressor
// makes of values is wrong, but nobody reads them.)
func TestCold_EachRecordIsCompressedOnce(t *testing.T) {
	t.Parallel()
	calls := uint64(0)
	g := ringtest.WithCold(ringtest.Default(ringtest.MinBytes), &funcCompressor{
		compress: func(dst, src []byte) ([]byte, error) { calls++; return append(dst, src[0]), nil },
	})
	g.ByHand = true
	p := &ringtest.PackedCache{Cache: ringtest.MustCache(t, g), Size: 1000}
	var w store.Waiting
	for range 100_000 {
		p.Fill(t)
		select {
		case i := <-ringtest.Shared(p.Cache).Compression.Buckets:
			ringtest.CompressBucket(p.Cache, int(i), &w)
		default:
		}
	}
	s := p.Stats()
	require.Greater(t, s.Compression.Compressed, uint64(10_000))
	require.LessOrEqual(t, calls, ringtest.PolicyOf(p.Cache).Evicted+s.Compression.ColdEntries)
	require.NoError(t, ringtest.Validate(p.Cache))
}

// No dictionary is built after Close.
func TestCold_NoDictionaryAfterClose(t *testing.T) {
	built := 0
	by := &funcCompressor{build: func([][]byte) []byte { built++; return nil }}
	p := ringtest.NewPackedCache(t, by, nil)
	cl := ringtest.Shared(p.Cache).Compression
	gather := func() {
		for i := 0; !cl.Samples.Enough(); i++ {
			cl.Samples.Add(ringtest.Text(i, p.Size))
		}
	}
	gather()
	before := built
	ringtest.RenewDicts(p.Cache)
	require.Equal(t, before+1, built)
	gather()
	require.NoError(t, p.Close())
	ringtest.RenewDicts(p.Cache)
	require.Equal(t, before+1, built)
}

// What has been damaged in the queue does not keep others from being compressed.
func TestCold_DamagedQueueGoesOn(t *testing.T) {
	for name, at := range map[string]uint64{"header": 0, "key": 5} {
		p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
		b := ringtest.Nth(p.Cache, 0)
		q := b.Ring(policy.Queue)
		for q.Size == 0 {
			p.Fill(t)
		}
		before, full := p.Stats(), ringtest.PolicyOf(p.Cache).UncompressedQueueFull
		q.Run(q.Tail + at)[0] ^= 0x41 // another key, or a header of no known kind
		p.FillPacked(t, 500)
		after := p.Stats()
		require.Greater(t, after.Compression.Compressed, before.Compression.Compressed+200, name)
		require.Equal(t, full, ringtest.PolicyOf(p.Cache).UncompressedQueueFull, name)
		require.NotEqual(t, before.Corruptions, after.Corruptions, name)
	}
}

// With FIFO too, what has just left the cold part is what a larger cache would find.
func TestStats_NearMisses_BehindTheColdPart(t *testing.T) {
	for kind := range ringcache.PolicyFIFO + 1 {
		p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, func(g *ringtest.Shape) {
			g.Policy = kind
		})
		p.Left = nil
		for len(p.Left) < 200 {
			p.Fill(t)
			ringtest.CompressAll(p.Cache)
		}
		for _, d := range p.Left {
			require.False(t, p.Has([]byte(d.K)))
		}
		s := p.Stats()
		require.EqualValues(t, 200, s.Misses)
		require.Greater(t, s.EvictedMisses, uint64(150), "%v", kind) // some have lost their slot
	}
}

// A header of main or small that says "packed" is damaged: calls that need the value end.
func TestCold_DamagedKindElsewhereEndsCalls(t *testing.T) {
	for _, by := range []ringcache.Compressor{nil, ringtest.FlateCompressor{}} {
		g := ringtest.Tiny(1, 1024, 256)
		if by != nil {
			g = ringtest.WithCold(g, by)
		}
		g.OnRemove = func(ringcache.Removal) {}
		c := ringtest.NewCache(g) // which the validator would not like
		for name, call := range map[string]func(k []byte){
			"CompareAndSwap": func(k []byte) { _, _ = c.CompareAndSwap(k, []byte("old"), []byte("new")) },
			"SetIfChanged":   func(k []byte) { _, _ = c.SetIfChanged(k, []byte("old")) },
			"GetAndDel":      func(k []byte) { _, _ = c.GetAndDel(nil, k) },
			"HasGet":         func(k []byte) { _, _ = c.HasGet(nil, k) },
			"Del":            func(k []byte) { c.Del(k) },
		} {
			k := append([]byte(name), bytes.Repeat([]byte("k"), 64)...) // a long header
			require.NoError(t, c.Set(k, []byte("value")))
			b := ringtest.Nth(c, 0)
			b.Mu.Lock()
			var f store.Found
			require.True(t, b.Find(&f, k, ringtest.HashOf(c, k)))
			at := f.Ring.Run(f.Pos)
			was := at[0]
			at[0] |= 0x08
			b.Mu.Unlock()
			require.EqualValues(t, 0x40, was, name)
			require.NotPanics(t, func() { call(k) }, name)
		}
		require.NoError(t, c.Close())
	}
}

// changingValues are of a Compressor that changes the values it is to compress, and compresses
// what it has made of them.
type changingValues struct{ ringcache.ValueCompressor }

func (v changingValues) Compress(dst, src []byte) ([]byte, error) {
	if len(src) > 0 {
		src[len(src)-1]++
	}
	return v.ValueCompressor.Compress(dst, src)
}

// A Compressor must not change its source. One that does loses the entry: its value is never
// taken for the one that was set.
func TestCold_CompressorThatChangesItsSource(t *testing.T) {
	by := &funcCompressor{}
	by.with = func(dict []byte) (ringcache.ValueCompressor, error) {
		v, err := by.FlateCompressor.WithDict(dict)
		clear(dict) // nor this
		return changingValues{v}, err
	}
	p := ringtest.NewPackedCache(t, by, nil)
	p.RequireTrue(t)
	require.Positive(t, ringtest.PolicyOf(p.Cache).DecompressErrors)
	require.NoError(t, ringtest.Validate(p.Cache))
}

// A Compressor that needs no dictionary any more gets none.
func TestCompression_DictionaryIsGivenUp(t *testing.T) {
	by := &funcCompressor{build: func([][]byte) []byte { return nil }}
	p := ringtest.NewPackedCache(t, by, nil)
	cl := ringtest.Shared(p.Cache).Compression
	cl.Dict = 7
	for i := range 1000 {
		cl.Samples.Add(ringtest.Text(i, 200))
	}
	ringtest.RenewDicts(p.Cache)
	require.Zero(t, cl.Dict)
}
