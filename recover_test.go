package ringcache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/policy"
)

// openFile opens a cache on a file.
func openFile(t testing.TB, path string, maxBytes int) *Cache {
	c, err := NewWithOptions(Options{MaxBytes: maxBytes, File: path})
	require.NoError(t, err)
	return c
}

func TestFile_AfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := openFile(t, path, 64<<20)
	const n = 60000
	for i := range n {
		k := fmt.Appendf(nil, "key %d", i)
		require.NoError(t, c.Set(k, fmt.Appendf(nil, "old %d", i)))
		require.NoError(t, c.Set(k, fmt.Appendf(nil, "value %d", i)))
	}
	for i := 0; i < n; i += 10 {
		c.Del(fmt.Appendf(nil, "key %d", i))
	}
	before := c.Len()
	require.NoError(t, c.Close())
	c = openFile(t, path, 64<<20)
	require.Equal(t, before, c.Len())
	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, before, s.File.RecoveredEntries)
	require.Zero(t, s.File.DiscardedRecords)
	for i := range n {
		v, ok := c.HasGet(nil, fmt.Appendf(nil, "key %d", i))
		require.Equal(t, i%10 != 0, ok, "%d", i)
		if ok {
			require.Equal(t, fmt.Sprintf("value %d", i), string(v))
		}
	}
	require.NoError(t, c.Close())
}

// mustOpen opens a cache of any geometry on a file.
func mustOpen(t testing.TB, g geometry, path string) *Cache {
	t.Helper()
	c, err := openInFile(g, path)
	require.NoError(t, err)
	return c
}

// abandon leaves the cache's file as a process does that dies: nothing is closed.
func abandon(c *Cache) {
	c.each(func(b *bucket) {
		b.mu.Lock()
		b.Closed = true // so that what the test still calls is harmless
		b.Index.Close()
		b.mu.Unlock()
	})
	c.shared.File.Release()
}

// The model of all operations holds for a cache in a file, also where that is closed, or
// left as it is, and opened again on the way.
func TestFile_ModelWithReopening(t *testing.T) {
	for i, mc := range modelCases() {
		if mc.told || mc.g.buckets > 64 {
			continue
		}
		t.Run(fmt.Sprintf("%s/ttl=%v", describe(mc.g), mc.g.ttl), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "cache")
			r := newRunner(t, mc.g, false)
			r.c = mustOpen(t, r.g, path)
			rnd := newRand(uint64(i))
			data := make([]byte, opSize*500)
			recovered := uint64(0)
			for n := range min(12*rounds(), 60) {
				fillRandom(rnd, data)
				if err := r.run(data); err != nil {
					require.NoError(t, err, "round %d:\n%s", n, r.trail())
				}
				require.NoError(t, r.c.validate())
				before := r.c.Len()
				if n%2 == 0 {
					require.NoError(t, r.c.Close())
				} else {
					abandon(r.c)
				}
				g := r.g // whose bound shapes the keys
				g.maxBytes = r.bound
				r.c = mustOpen(t, g, path)
				require.NoError(t, r.c.validate(), "after round %d", n)
				var s Stats
				r.c.UpdateStats(&s)
				require.Zero(t, s.File.DiscardedRecords)
				require.LessOrEqual(t, r.c.Len(), before)
				recovered += s.File.RecoveredEntries
			}
			require.NoError(t, r.finish())
			require.NoError(t, r.c.Close())
			require.Greater(t, recovered, uint64(100))
			require.Greater(t, r.hits, 100)
		})
	}
}

// The first page of an index counts towards the bound as a chunk does. With each of these seeds,
// the first record of an empty bucket once took the cache a chunk above its bound.
func TestFile_StaysWithinItsBound(t *testing.T) {
	seeds := map[string]uint64{ // by geometry, as describe begins
		"policy=FIFO/buckets=1/chunk=256/max=16384/":   2093,
		"policy=S3-FIFO/buckets=1/chunk=64/max=1920/":  2087,
		"policy=S3-FIFO/buckets=2/chunk=256/max=9216/": 2089,
	}
	found := make(map[string]bool)
	for _, mc := range modelCases() {
		for prefix, seed := range seeds {
			if mc.told || !strings.HasPrefix(describe(mc.g), prefix) {
				continue
			}
			found[prefix] = true
			t.Run(fmt.Sprintf("%s/ttl=%v", describe(mc.g), mc.g.ttl), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "cache")
				r := newRunner(t, mc.g, false)
				r.c = mustOpen(t, r.g, path)
				rnd := newRand(seed)
				data := make([]byte, opSize*500)
				for range 9 {
					fillRandom(rnd, data)
					require.NoError(t, r.run(data))
					abandon(r.c)
					g := r.g
					g.maxBytes = r.bound
					r.c = mustOpen(t, g, path)
					require.NoError(t, r.withinBound())
				}
				require.NoError(t, r.c.Close())
			})
		}
	}
	require.Len(t, found, len(seeds))
}

// A snapshot of a cache in a file, loaded into one in memory, and the other way round.
func TestFile_Snapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openFile(t, filepath.Join(dir, "one"), 64<<20)
	const n = 20000
	for i := range n {
		require.NoError(t, c.SetWithTTL(fmt.Appendf(nil, "key %d", i), make([]byte, i%3000),
			time.Duration(i%2)*time.Hour))
	}
	require.NoError(t, c.SaveToFile(filepath.Join(dir, "snapshot")))
	require.NoError(t, c.Close())
	c, err := LoadFromFile(filepath.Join(dir, "snapshot"))
	require.NoError(t, err)
	other := openFile(t, filepath.Join(dir, "two"), 64<<20)
	var b bytes.Buffer
	_, err = c.WriteSnapshot(&b)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = other.ReadSnapshot(&b)
	require.NoError(t, err)
	require.NoError(t, other.validate())
	abandon(other)
	other = openFile(t, filepath.Join(dir, "two"), 64<<20)
	require.NoError(t, other.validate())
	for i := range n {
		v, ok := other.HasGet(nil, fmt.Appendf(nil, "key %d", i))
		require.True(t, ok, "%d", i)
		require.Equal(t, make([]byte, i%3000), append([]byte{}, v...))
		ttl, _ := other.TTL(fmt.Appendf(nil, "key %d", i))
		require.Equal(t, i%2 == 1, ttl > 59*time.Minute)
	}
	require.NoError(t, other.Close())
}

// What is packed is there again, if its dictionary is, and the cold part keeps its share.
func TestFile_ColdPart(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for what, harm := range map[string]func(dict string){
		"whole":   func(string) {},
		"deleted": func(dict string) { require.NoError(t, os.Remove(dict)) },
		"damaged": func(dict string) { require.NoError(t, os.Truncate(dict, 12)) },
		"another": func(dict string) {
			_, dicts, err := dictfile.Read(dict)
			require.NoError(t, err)
			require.NoError(t, dictfile.Write(dict, "another", dicts))
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			g := withCold(tiny(64, 1024, 128), flateCompressor{})
			g.coldShare, g.byHand = 0, true
			p := &packedCache{Cache: mustOpen(t, g, path), size: 300}
			for i := range 80_000 {
				p.fill(t)
				if i%100 == 0 {
					p.compressAll()
				}
			}
			p.compressAll()
			all, packed := p.Len(), p.countPacked()
			require.Greater(t, packed, uint64(100))
			require.NoError(t, p.Close())
			harm(path + ".dict")
			p.Cache = mustOpen(t, g, path)
			if what != "whole" { // also what was packed without a dictionary may be another's
				require.Zero(t, p.countPacked())
				require.Equal(t, packed, p.Stats().File.DiscardedRecords)
				all -= int(packed)
				packed = 0
			}
			require.Equal(t, packed, p.countPacked())
			require.Equal(t, all, p.Len())
			require.NoError(t, p.validate())
			for i := range p.fillers + 1 {
				if v, ok := p.Peek(nil, fmt.Appendf(nil, "filler %d", i)); ok {
					require.Equal(t, string(text(i, 300)), string(v))
					all--
				}
			}
			require.Zero(t, all)
			for range 1000 {
				p.fill(t)
			}
			if what == "whole" { // else the ratio of what is left is none to go by
				require.GreaterOrEqual(t, p.countPacked()*10, packed*8)
			}
			require.NoError(t, p.Close())
		})
	}
}

// A cache that was larger has left longer values than can be set now. Packed or not, they are
// there until they are moved, and what is evicted of them is no corruption.
func TestFile_PackedValuesOfALargerCache(t *testing.T) {
	skipUnderRace(t)
	path := filepath.Join(t.TempDir(), "cache")
	g := withCold(tiny(1, 1024, 256), flateCompressor{})
	g.byHand = true
	p := &packedCache{Cache: mustOpen(t, g, path), size: 50_000}
	require.True(t, p.resize(16*g.maxBytes))
	for range 400 {
		p.fill(t)
		p.compressAll()
	}
	require.NotZero(t, p.countPacked())
	require.NoError(t, p.Close())
	p.Cache = mustOpen(t, g, path)
	require.NotZero(t, p.countPacked())
	require.NotZero(t, p.requireTrue(t))
	require.Zero(t, p.Stats().Corruptions+p.Stats().Compression.DecompressErrors)
	require.NoError(t, p.validate())
	require.NoError(t, p.Close())
}

// Without a Compressor, what the cold part holds is given up, and all else is there.
func TestFile_NoCompressorAnyMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	g := tiny(4, 1024, 128)
	with := withCold(g, flateCompressor{})
	with.byHand = true
	p := &packedCache{Cache: mustOpen(t, with, path), size: 300}
	for range 6000 {
		p.fill(t)
		p.compressAll()
	}
	hot := p.Len()
	p.each(func(b *bucket) { hot -= b.Cold.Entries() })
	require.Less(t, hot, p.Len())
	require.NoError(t, p.Close())
	c := mustOpen(t, g, path)
	require.Equal(t, hot, c.Len())
	require.NotZero(t, c.Stats().File.DiscardedRecords)
	require.NoError(t, c.validate())
	require.NoError(t, c.Close())
}

// With another policy, what small has goes to main, and the cold part keeps what it has.
func TestFile_OtherPolicyKeepsTheColdPart(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.5, 0} { // fixed, and as learned
		path := filepath.Join(t.TempDir(), "cache")
		g := withCold(tiny(64, 1024, 128), flateCompressor{})
		g.coldShare, g.byHand = share, true
		p := &packedCache{Cache: mustOpen(t, g, path), size: 300}
		for i := range 80_000 {
			p.fill(t)
			if i%100 == 0 {
				p.compressAll()
			}
		}
		entries := func() (small, cold int) {
			p.each(func(b *bucket) {
				small += b.Rings[policy.Small].Entries
				cold += b.Cold.Entries()
			})
			return small, cold
		}
		small, cold := entries()
		require.Greater(t, small, 100)
		require.Greater(t, cold, 500)
		all := p.Len()
		require.NoError(t, p.Close())
		g.policy = PolicyFIFO
		p.Cache = mustOpen(t, g, path)
		require.NoError(t, p.validate())
		nowSmall, nowCold := entries()
		require.Zero(t, nowSmall)
		require.Greater(t, nowCold*100, cold*95)
		require.Greater(t, p.Len()*100, all*95)
		p.requireTrue(t)
		require.NoError(t, p.Close())
	}
}

// After Close the file of dictionaries may be another cache's: nothing is written to it.
func TestFile_ClosedCacheWritesNoDictionary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	g := withCold(tiny(1, 1024, 256), flateCompressor{})
	g.byHand = true
	c := mustOpen(t, g, path)
	cl := &c.shared.Compression.Classes[0]
	samples := func() {
		for i := range 1000 {
			cl.Samples.Add(text(i, 200))
		}
	}
	samples()
	c.renewDicts()
	before, err := os.ReadFile(path + ".dict")
	require.NoError(t, err)
	require.NotZero(t, cl.Dict)
	require.NoError(t, c.Close())
	samples()
	c.renewDicts()
	after, err := os.ReadFile(path + ".dict")
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "written after Close")
}

// What a Compressor has packed in the file of another one is there again when it comes back,
// also if it makes no dictionaries.
func TestFile_AnotherCompressorStays(t *testing.T) {
	skipUnderRace(t)
	for name, removed := range map[string]bool{"entries too": false, "dictionaries only": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			open := func(id string) *packedCache {
				by := namedCompressor{id: func() string { return id }}
				g := withCold(tiny(1, 1024, 256), by)
				g.byHand = true
				return &packedCache{Cache: mustOpen(t, g, path), size: 300}
			}
			fill := func(p *packedCache) {
				for range 900 { // too few for a dictionary
					p.fill(t)
					p.compressAll()
				}
				require.NotZero(t, p.countPacked())
			}
			p := open("one")
			fill(p)
			require.NoError(t, p.Close())
			if removed {
				require.NoError(t, os.Remove(path))
			}
			p = open("two")
			require.Zero(t, p.countPacked())
			fill(p)
			packed := p.countPacked()
			require.NoError(t, p.Close())
			p = open("two")
			require.Equal(t, packed, p.countPacked())
			require.NoError(t, p.Close())
		})
	}
}
