package persist

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/sidefile"
)

func TestFile_AfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.OpenFile(t, path, 64<<20)
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
	c = ringtest.OpenFile(t, path, 64<<20)
	require.Equal(t, before, c.Len())
	var s ringcache.Stats
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

// The model of all operations holds for a cache in a file, also where that is closed, or
// left as it is, and opened again on the way.
func TestFile_ModelWithReopening(t *testing.T) {
	for i, mc := range ringtest.ModelCases() {
		if mc.Told || mc.G.Buckets > 64 {
			continue
		}
		t.Run(fmt.Sprintf("%s/ttl=%v", ringtest.Describe(mc.G), mc.G.TTL), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(ringtest.DirInMemory(t), "cache")
			r := ringtest.NewRunner(t, mc.G, false)
			r.C = ringtest.MustOpen(t, r.G, path)
			rnd := ringtest.NewRand(uint64(i))
			data := make([]byte, ringtest.OpSize*500)
			recovered := uint64(0)
			for n := range min(12*ringtest.Rounds(), 60) {
				ringtest.FillRandom(rnd, data)
				if err := r.Run(data); err != nil {
					require.NoError(t, err, "round %d:\n%s", n, r.Trail())
				}
				require.NoError(t, ringtest.Validate(r.C))
				before := r.C.Len()
				if n%2 == 0 {
					require.NoError(t, r.C.Close())
				} else {
					ringtest.Abandon(r.C)
				}
				g := r.G // whose bound shapes the keys
				g.MaxBytes = r.Bound
				r.C = ringtest.MustOpen(t, g, path)
				require.NoError(t, ringtest.Validate(r.C), "after round %d", n)
				var s ringcache.Stats
				r.C.UpdateStats(&s)
				require.Zero(t, s.File.DiscardedRecords)
				require.LessOrEqual(t, r.C.Len(), before)
				recovered += s.File.RecoveredEntries
			}
			require.NoError(t, r.Finish())
			require.NoError(t, r.C.Close())
			require.Greater(t, recovered, uint64(100))
			require.Greater(t, r.Hits, 100)
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
	for _, mc := range ringtest.ModelCases() {
		for prefix, seed := range seeds {
			if mc.Told || !strings.HasPrefix(ringtest.Describe(mc.G), prefix) {
				continue
			}
			found[prefix] = true
			t.Run(fmt.Sprintf("%s/ttl=%v", ringtest.Describe(mc.G), mc.G.TTL), func(t *testing.T) {
				path := filepath.Join(ringtest.DirInMemory(t), "cache")
				r := ringtest.NewRunner(t, mc.G, false)
				r.C = ringtest.MustOpen(t, r.G, path)
				rnd := ringtest.NewRand(seed)
				data := make([]byte, ringtest.OpSize*500)
				for range 9 {
					ringtest.FillRandom(rnd, data)
					require.NoError(t, r.Run(data))
					ringtest.Abandon(r.C)
					g := r.G
					g.MaxBytes = r.Bound
					r.C = ringtest.MustOpen(t, g, path)
					require.NoError(t, r.WithinBound())
				}
				require.NoError(t, r.C.Close())
			})
		}
	}
	require.Len(t, found, len(seeds))
}

// A snapshot of a cache in a file, loaded into one in memory, and the other way round.
func TestFile_Snapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := ringtest.OpenFile(t, filepath.Join(dir, "one"), 64<<20)
	const n = 20000
	for i := range n {
		require.NoError(t, c.SetWithTTL(fmt.Appendf(nil, "key %d", i), make([]byte, i%3000),
			time.Duration(i%2)*time.Hour))
	}
	require.NoError(t, c.SaveToFile(filepath.Join(dir, "snapshot")))
	require.NoError(t, c.Close())
	c, err := ringcache.LoadFromFile(filepath.Join(dir, "snapshot"))
	require.NoError(t, err)
	other := ringtest.OpenFile(t, filepath.Join(dir, "two"), 64<<20)
	var b bytes.Buffer
	_, err = c.WriteSnapshot(&b)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = other.ReadSnapshot(&b)
	require.NoError(t, err)
	require.NoError(t, ringtest.Validate(other))
	ringtest.Abandon(other)
	other = ringtest.OpenFile(t, filepath.Join(dir, "two"), 64<<20)
	require.NoError(t, ringtest.Validate(other))
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
	ringtest.SkipUnderRace(t)
	for what, harm := range map[string]func(dict string){
		"whole":   func(string) {},
		"deleted": func(dict string) { require.NoError(t, os.Remove(dict)) },
		"damaged": func(dict string) { require.NoError(t, os.Truncate(dict, 12)) },
		"another": func(dict string) {
			f, err := sidefile.Open(dict, cold.Magic, nil)
			require.NoError(t, err)
			id := "\x00" + ringtest.FlateCompressor{}.ID()
			require.Greater(t, len(f.Words()), 1)
			require.Contains(t, f.Words(), id)
			require.NoError(t, f.Set(id, 0))
			require.NoError(t, f.Set("\x00another", 1))
			require.NoError(t, f.Close())
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			g := ringtest.WithCold(ringtest.Tiny(16, 1024, 128), ringtest.FlateCompressor{})
			g.ColdShare, g.ByHand = 0, true
			p := &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path), Size: 300}
			for i := range 20_000 {
				p.Fill(t)
				if i%100 == 0 {
					ringtest.CompressAll(p.Cache)
				}
			}
			ringtest.CompressAll(p.Cache)
			all, packed := p.Len(), ringtest.CountPacked(p.Cache)
			require.Greater(t, packed, uint64(100))
			require.NoError(t, p.Close())
			harm(path + ".dict")
			p.Cache = ringtest.MustOpen(t, g, path)
			if what != "whole" { // also what was packed without a dictionary may be another's
				require.Zero(t, ringtest.CountPacked(p.Cache))
				require.Equal(t, packed, p.Stats().File.DiscardedRecords)
				all -= int(packed)
				packed = 0
			}
			require.Equal(t, packed, ringtest.CountPacked(p.Cache))
			require.Equal(t, all, p.Len())
			require.NoError(t, ringtest.Validate(p.Cache))
			for i := range p.Fillers + 1 {
				if v, ok := p.Peek(nil, fmt.Appendf(nil, "filler %d", i)); ok {
					require.Equal(t, string(ringtest.Text(i, 300)), string(v))
					all--
				}
			}
			require.Zero(t, all)
			for range 250 {
				p.Fill(t)
			}
			if what == "whole" { // else the ratio of what is left is none to go by
				require.GreaterOrEqual(t, ringtest.CountPacked(p.Cache)*10, packed*8)
			}
			require.NoError(t, p.Close())
		})
	}
}

// A cache that was larger has left longer values than can be set now. Packed or not, they are
// there until they are moved, and what is evicted of them is no corruption.
func TestFile_PackedValuesOfALargerCache(t *testing.T) {
	ringtest.SkipUnderRace(t)
	path := filepath.Join(t.TempDir(), "cache")
	g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), ringtest.FlateCompressor{})
	g.ByHand = true
	p := &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path), Size: 50_000}
	require.True(t, ringtest.Resize(p.Cache, 16*g.MaxBytes))
	p.FillPacked(t, 400)
	require.NotZero(t, ringtest.CountPacked(p.Cache))
	require.NoError(t, p.Close())
	p.Cache = ringtest.MustOpen(t, g, path)
	require.NotZero(t, ringtest.CountPacked(p.Cache))
	require.NotZero(t, p.RequireTrue(t))
	require.Zero(t, p.Stats().Corruptions+p.Stats().Compression.Errors)
	require.NoError(t, ringtest.Validate(p.Cache))
	require.NoError(t, p.Close())
}

// Without a Compressor, what the cold part holds is given up, and all else is there.
func TestFile_NoCompressorAnyMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	g := ringtest.Tiny(4, 1024, 128)
	with := ringtest.WithCold(g, ringtest.FlateCompressor{})
	with.ByHand = true
	p := &ringtest.PackedCache{Cache: ringtest.MustOpen(t, with, path), Size: 300}
	p.FillPacked(t, 6000)
	hot := p.Len()
	ringtest.EachBucket(p.Cache, func(b ringtest.Bucket) { hot -= b.Sizes().Cold })
	require.Less(t, hot, p.Len())
	require.NoError(t, p.Close())
	c := ringtest.MustOpen(t, g, path)
	require.Equal(t, hot, c.Len())
	require.NotZero(t, c.Stats().File.DiscardedRecords)
	require.NoError(t, ringtest.Validate(c))
	require.NoError(t, c.Close())
}

// With another policy, what small has goes to main, and the cold part keeps what it has.
func TestFile_OtherPolicyKeepsTheColdPart(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.5, 0} { // fixed, and as learned
		path := filepath.Join(t.TempDir(), "cache")
		g := ringtest.WithCold(ringtest.Tiny(16, 1024, 128), ringtest.FlateCompressor{})
		g.ColdShare, g.ByHand = share, true
		p := &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path), Size: 300}
		for i := range 20_000 {
			p.Fill(t)
			if i%100 == 0 {
				ringtest.CompressAll(p.Cache)
			}
		}
		entries := func() (small, cold int) {
			ringtest.EachBucket(p.Cache, func(b ringtest.Bucket) {
				small += b.Rings[policy.Small].Entries
				cold += b.Sizes().Cold
			})
			return small, cold
		}
		small, cold := entries()
		require.Greater(t, small, 25)
		require.Greater(t, cold, 125)
		all := p.Len()
		require.NoError(t, p.Close())
		g.Policy = ringcache.PolicyFIFO
		p.Cache = ringtest.MustOpen(t, g, path)
		require.NoError(t, ringtest.Validate(p.Cache))
		nowSmall, nowCold := entries()
		require.Zero(t, nowSmall)
		require.Greater(t, nowCold*100, cold*95)
		require.Greater(t, p.Len()*100, all*95)
		p.RequireTrue(t)
		require.NoError(t, p.Close())
	}
}

// After Close the file of dictionaries may be another cache's: nothing is written to it.
func TestFile_ClosedCacheWritesNoDictionary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), ringtest.FlateCompressor{})
	g.ByHand = true
	c := ringtest.MustOpen(t, g, path)
	cl := ringtest.Shared(c).Compression
	samples := func() {
		for i := range 1000 {
			cl.Samples.Add(ringtest.Text(i, 200))
		}
	}
	samples()
	ringtest.RenewDicts(c)
	before, err := os.ReadFile(path + ".dict")
	require.NoError(t, err)
	require.NotZero(t, cl.Dict)
	require.NoError(t, c.Close())
	samples()
	ringtest.RenewDicts(c)
	after, err := os.ReadFile(path + ".dict")
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "written after Close")
}

// What a Compressor has packed in the file of another one is there again when it comes back,
// also if it makes no dictionaries.
func TestFile_AnotherCompressorStays(t *testing.T) {
	ringtest.SkipUnderRace(t)
	for name, removed := range map[string]bool{"entries too": false, "dictionaries only": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			open := func(id string) *ringtest.PackedCache {
				by := ringtest.NamedCompressor{Name: func() string { return id }}
				g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), by)
				g.ByHand = true
				return &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path), Size: 300}
			}
			fill := func(p *ringtest.PackedCache) {
				p.FillPacked(t, 900) // too few for a dictionary
				require.NotZero(t, ringtest.CountPacked(p.Cache))
			}
			p := open("one")
			p.MakeDict(t)
			fill(p)
			require.NoError(t, p.Close())
			if removed {
				require.NoError(t, os.Remove(path))
			}
			p = open("two")
			require.Zero(t, ringtest.CountPacked(p.Cache))
			fill(p)
			packed := ringtest.CountPacked(p.Cache)
			require.NoError(t, p.Close())
			p = open("two")
			require.Equal(t, packed, ringtest.CountPacked(p.Cache))
			require.NoError(t, p.Close())
		})
	}
}

// A process that dies while it makes a file leaves rings without a span. What the next process
// sets there must survive its death, too.
func TestFile_DeathWhileItIsMade(t *testing.T) {
	const spansAt = 4096 // where they begin in the head
	path := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, ringtest.OpenFile(t, path, 32<<20).Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, ringfile.HeadSize-spansAt), spansAt)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	const entries = 1000
	c := ringtest.OpenFile(t, path, 32<<20)
	ringtest.FillCache(t, c, 0, entries, 100)
	ringtest.Abandon(c)
	c = ringtest.OpenFile(t, path, 32<<20)
	require.Equal(t, entries, c.Len())
	require.NoError(t, c.Close())
}

// Opening a file takes time in proportion to its chunks, also if one ring has them all: with each
// of them compared with all others, this test would take half an hour.
func TestFile_ManyChunksOfOneRing(t *testing.T) {
	if !*ringtest.LongRun {
		t.Skip("it takes some seconds")
	}
	const chunks = 1 << 20
	g := ringtest.Tiny(1, 64, chunks)
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.MustOpen(t, g, path)
	ringtest.FillCache(t, c, 0, chunks, 40)
	n := c.Len()
	ringtest.Abandon(c)
	c = ringtest.MustOpen(t, g, path)
	require.Equal(t, n, c.Len())
	require.Greater(t, n, chunks*3/4)
	ringtest.Abandon(c)
}
