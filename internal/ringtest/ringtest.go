package ringtest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// LongRun makes the randomised tests run many more rounds. It is also an environment variable,
// since `go test ./...` would pass a flag to packages that do not define it.
var LongRun = flag.Bool("ringcache.long", os.Getenv("RINGCACHE_LONG") != "",
	"run the randomised tests much longer")

// NewRand returns the generator of the randomised tests. Equal seeds give equal sequences.
func NewRand(seed uint64) *rand.Rand {
	const stream = 0x9e3779b97f4a7c15 // any constant: PCG wants two words
	return rand.New(rand.NewPCG(seed, stream))
}

// IsBrief reports whether a TTL is shorter than the clock's tick, so that writes refuse it.
func IsBrief(ttl time.Duration) bool { return 0 < ttl && ttl < clock.Tick }

// InFile makes MustCache open caches in files. Tests of resident memory and of refused memory do
// not work with it.
var InFile = flag.Bool("ringcache.file", false, "run the tests on caches with Options.File")

// ColdOn makes MustCache give caches a cold part.
var ColdOn = flag.Bool("ringcache.cold", false, "run the tests on caches with Options.Compressor")

// Rounds returns the number of runs of a randomised test.
func Rounds() int {
	if *LongRun {
		return 4
	}
	return 1
}

// TestSeed is a seed that gives keys the same hashes in every run.
var TestSeed = [2]uint64{0x243f6a8885a308d3, 0x13198a2e03707345}

// Tiny returns a shape with that number of chunks for each bucket, or LeastBytes if that is more,
// and positions of the default width.
func Tiny(buckets, chunkSize, chunksPerBucket int) Shape {
	g := Default(MinBytes)
	g.Buckets, g.ChunkSize, g.Seed = buckets, chunkSize, TestSeed
	g.MaxBytes = max(chunkSize*buckets*chunksPerBucket, LeastBytes(g))
	return g
}

// LeastBytes returns the smallest bound that a cache of that shape can keep: a few chunks for each
// small and large bucket, which hold a page of the index and the rings.
func LeastBytes(g Shape) int { return 6 * (g.Buckets + store.LargeBuckets) * g.ChunkSize }

// Narrow returns g with the fewest bits of a position that work: two bits of generation above
// a ring that holds its bucket's share or one record of the largest size.
func Narrow(g Shape) Shape {
	// opstream.go: keys of up to a quarter of the longest value.
	longest := record.MaxHeader + g.MaxBytes/16*5/4
	ring := max(g.MaxBytes/g.Buckets, longest) + g.ChunkSize
	g.PosBits = uint(bits.Len(uint(ring-1))) + 2
	return g
}

// Describe returns a shape as text, for the name of a subtest.
func Describe(g Shape) string {
	s := fmt.Sprintf("policy=%s/buckets=%d/chunk=%d/max=%d/pos=%d/seed=%x",
		g.Policy, g.Buckets, g.ChunkSize, g.MaxBytes, g.PosBits, g.Seed)
	if g.Compressor != nil {
		s += "/cold=" + g.Compressor.ID()
	}
	if g.ExpectedEntries > 0 {
		s += fmt.Sprintf("/expected=%d", g.ExpectedEntries)
	}
	return s
}

// SkipUnderRace skips a long test of a single goroutine under the race detector.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if RaceEnabled {
		t.Skip("one goroutine: the detector only makes it slow")
	}
}

// MustCache returns a cache that is validated and closed when the test ends. InFile and ColdOn
// change its shape.
func MustCache(t testing.TB, g Shape) *ringcache.Cache {
	t.Helper()
	if *ColdOn && g.Compressor == nil {
		g = WithCold(g, FlateCompressor{})
	}
	var c *ringcache.Cache
	if *InFile && chunk.OffHeap {
		c = MustOpen(t, g, filepath.Join(t.TempDir(), "cache"))
	} else {
		c = NewCache(g)
	}
	t.Cleanup(func() {
		if !Nth(c, 0).Closed { // there is nothing left to validate
			assert.NoError(t, Validate(c), "at the end")
		}
		CloseCache(t, c)
	})
	return c
}

// CloseCache closes a cache and calls CollectClosed.
func CloseCache(t testing.TB, c *ringcache.Cache) {
	t.Helper()
	assert.NoError(t, c.Close())
	CollectClosed()
}

// FillCache sets n entries with keys of 8 bytes, the ids from first on, and values of that size.
func FillCache(t *testing.T, c *ringcache.Cache, first, n, valueSize int) {
	t.Helper()
	key, value := make([]byte, 8), make([]byte, valueSize)
	for id := range n {
		binary.LittleEndian.PutUint64(key, uint64(first+id))
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
}
