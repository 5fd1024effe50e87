package ringtest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// LongRun asks the randomised tests for many more rounds. It is a flag and, as
// `go test ./...` hands a flag to packages that do not know it, an environment
// variable too.
var LongRun = flag.Bool("ringcache.long", os.Getenv("RINGCACHE_LONG") != "",
	"run the randomised tests much longer")

// NewRand returns the generator of the randomised tests. Equal seeds give equal
// sequences.
func NewRand(seed uint64) *rand.Rand {
	const stream = 0x9e3779b97f4a7c15 // any constant: PCG wants two words
	return rand.New(rand.NewPCG(seed, stream))
}

// IsBrief reports whether a time to live is below the clock's tick, and so refused.
func IsBrief(ttl time.Duration) bool { return 0 < ttl && ttl < clock.Tick }

// InFile has the caches of tests lie in files. Not all tests are for such caches: those of
// resident memory and of refused memory are not.
var InFile = flag.Bool("ringcache.file", false, "run the tests on caches with Options.File")

// ColdOn has the caches of tests have a cold part.
var ColdOn = flag.Bool("ringcache.cold", false, "run the tests on caches with Options.Compressor")

// Rounds returns how often a randomised test repeats its run.
func Rounds() int {
	if *LongRun {
		return 20
	}
	return 1
}

// TestSeed makes the hash of keys the same in every run.
var TestSeed = [2]uint64{0x243f6a8885a308d3, 0x13198a2e03707345}

// Tiny returns a shape with room for the given chunks in each bucket and
// positions of the default width.
//
// A shape of fewer than LeastBytes would say nothing about the bound on memory.
func Tiny(buckets, chunkSize, chunksPerBucket int) Shape {
	g := Default(MinBytes)
	g.Buckets, g.ChunkSize, g.Seed = buckets, chunkSize, TestSeed
	g.MaxBytes = max(chunkSize*buckets*chunksPerBucket, LeastBytes(g))
	return g
}

// LeastBytes returns the size that a cache of such a shape needs: a few chunks
// for each bucket, large ones among them, for a page of the index and each ring.
func LeastBytes(g Shape) int { return 6 * (g.Buckets + store.LargeBuckets) * g.ChunkSize }

// Narrow returns g with the fewest bits for a position that it can live with:
// a generation of two bits above a ring that holds its bucket's share, or one
// record of the largest size.
func Narrow(g Shape) Shape {
	// opstream.go: keys of up to a quarter of the longest value.
	longest := record.MaxHeader + g.MaxBytes/16*5/4
	ring := max(g.MaxBytes/g.Buckets, longest) + g.ChunkSize
	g.PosBits = uint(bits.Len(uint(ring-1))) + 2
	return g
}

// Describe says how a cache is shaped.
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

// SkipUnderRace skips a test that has one goroutine and much to do.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if RaceEnabled {
		t.Skip("one goroutine: the detector only makes it slow")
	}
}

// MustCache returns a cache that is validated and closed when the test ends.
func MustCache(t testing.TB, g Shape) *ringcache.Cache {
	t.Helper()
	if *ColdOn && g.Compressor == nil {
		g = WithCold(g, FlateCompressor{})
	}
	var c *ringcache.Cache
	if *InFile && testhook.OffHeap {
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

// CloseCache closes a cache.
func CloseCache(t testing.TB, c *ringcache.Cache) {
	t.Helper()
	assert.NoError(t, c.Close())
	CollectClosed()
}

// FillCache sets entries of 8 bytes and a value with ids from first on.
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

// Stamp is what a test value says about itself: whose it is, which write of
// that key made it, and how long it is. The bytes follow from it, so that a
// mixture of two values is recognised.
type Stamp struct {
	ID      uint32
	Version uint64
	Size    int
}

// Values from stampSize on begin with their stamp; from SelfSize on they can be
// judged by themselves, as at least 8 bytes of filler follow. Shorter ones are
// only the first bytes of the filler.
const (
	stampSize = 16
	SelfSize  = stampSize + 8
)

// String describes the stamp.
func (s Stamp) String() string {
	return fmt.Sprintf("key %d version %d, %d bytes", s.ID, s.Version, s.Size)
}

// Value returns the bytes of s in buf, which is grown when it is too small.
func (s Stamp) Value(buf []byte) []byte { return s.filled(buf, s.mask()) }

// filled is value with those bits of the filler that mask has.
func (s Stamp) filled(buf []byte, mask uint64) []byte {
	b := slices.Grow(buf[:0], s.Size)[:s.Size]
	rest := b
	if s.Size >= stampSize {
		binary.LittleEndian.PutUint64(b, s.Version)
		binary.LittleEndian.PutUint32(b[8:], s.ID)
		binary.LittleEndian.PutUint32(b[12:], uint32(s.Size))
		rest = b[stampSize:]
	}
	x := s.filler()
	for ; len(rest) >= 8; rest = rest[8:] {
		binary.LittleEndian.PutUint64(rest, x&mask)
		x += fillerStep
	}
	for i := range rest {
		rest[i] = byte(x >> (8 * i))
	}
	return b
}

// Wrote reports whether b is exactly the value of s.
func (s Stamp) Wrote(b []byte) bool {
	if len(b) != s.Size {
		return false
	}
	if s.Size >= stampSize {
		if binary.LittleEndian.Uint64(b) != s.Version ||
			binary.LittleEndian.Uint32(b[8:]) != s.ID ||
			binary.LittleEndian.Uint32(b[12:]) != uint32(s.Size) {
			return false
		}
		b = b[stampSize:]
	}
	x := s.filler()
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != x&s.mask() {
			return false
		}
		x += fillerStep
	}
	for i := range b {
		if b[i] != byte(x>>(8*i)) {
			return false
		}
	}
	return true
}

const fillerStep = 0x9e3779b97f4a7c15

// mask returns the bits of filler that are used: of long values not all, so that they can be
// compressed.
func (s Stamp) mask() uint64 {
	if s.Size < 64 {
		return math.MaxUint64
	}
	return 0x0f0f0f0f0f0f0f0f
}

func (s Stamp) filler() uint64 {
	x := s.Version*0xbf58476d1ce4e5b9 ^ (uint64(s.ID)<<32|uint64(s.Size))*0x94d049bb133111eb
	return x ^ x>>29
}

// ReadStamp returns the stamp that the value b carries, or an error if not all
// of b is what that stamp says.
func ReadStamp(b []byte) (Stamp, error) {
	if len(b) < SelfSize {
		return Stamp{}, fmt.Errorf("%d bytes are too few for a stamp: %x", len(b), b)
	}
	s := Stamp{
		ID:      binary.LittleEndian.Uint32(b[8:]),
		Version: binary.LittleEndian.Uint64(b),
		Size:    int(binary.LittleEndian.Uint32(b[12:])),
	}
	if !s.Wrote(b) {
		return Stamp{}, fmt.Errorf("a mixture of %d bytes that calls itself %v: %.64x", len(b), s, b)
	}
	return s, nil
}
