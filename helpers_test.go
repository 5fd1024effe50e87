package ringcache

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// longRun asks the randomised tests for many more rounds. It is a flag and, as
// `go test ./...` hands a flag to packages that do not know it, an environment
// variable too.
var longRun = flag.Bool("ringcache.long", os.Getenv("RINGCACHE_LONG") != "",
	"run the randomised tests much longer")

// newRand returns the generator of the randomised tests. Equal seeds give equal
// sequences.
func newRand(seed uint64) *rand.Rand {
	const stream = 0x9e3779b97f4a7c15 // any constant: PCG wants two words
	return rand.New(rand.NewPCG(seed, stream))
}

// isBrief reports whether a time to live is below the clock's tick, and so refused.
func isBrief(ttl time.Duration) bool { return 0 < ttl && ttl < clock.Tick }

// InFile has the caches of tests lie in files. Not all tests are for such caches: those of
// resident memory and of refused memory are not.
var inFile = flag.Bool("ringcache.file", false, "run the tests on caches with Options.File")

// coldOn has the caches of tests have a cold part.
var coldOn = flag.Bool("ringcache.cold", false, "run the tests on caches with Options.Compressor")

// rounds returns how often a randomised test repeats its run.
func rounds() int {
	if *longRun {
		return 20
	}
	return 1
}

// testSeed makes the hash of keys the same in every run.
var testSeed = [2]uint64{0x243f6a8885a308d3, 0x13198a2e03707345}

// tiny returns a geometry with room for the given chunks in each bucket and
// positions of the default width.
//
// A shape of fewer than leastBytes would say nothing about the bound on memory.
func tiny(buckets, chunkSize, chunksPerBucket int) geometry {
	g := defaultGeometry(minMaxBytes)
	g.buckets, g.chunkSize, g.seed = buckets, chunkSize, testSeed
	g.maxBytes = max(chunkSize*buckets*chunksPerBucket, leastBytes(g))
	return g
}

// leastBytes returns the size that a cache of such a shape needs: a few chunks
// for each bucket, large ones among them, for a page of the index and each ring.
func leastBytes(g geometry) int { return 6 * (g.buckets + store.LargeBuckets) * g.chunkSize }

// narrow returns g with the fewest bits for a position that it can live with:
// a generation of two bits above a ring that holds its bucket's share, or one
// record of the largest size.
func narrow(g geometry) geometry {
	// helpers_opstream_test.go: keys of up to a quarter of the longest value.
	longest := record.MaxHeader + g.maxBytes/16*5/4
	ring := max(g.maxBytes/g.buckets, longest) + g.chunkSize
	g.posBits = uint(bits.Len(uint(ring-1))) + 2
	return g
}

// describe says how a cache is shaped.
func describe(g geometry) string {
	s := fmt.Sprintf("policy=%s/buckets=%d/chunk=%d/max=%d/pos=%d/seed=%x",
		g.policy, g.buckets, g.chunkSize, g.maxBytes, g.posBits, g.seed)
	if g.compressor != nil {
		s += "/cold=" + g.compressor.ID()
	}
	if g.expected > 0 {
		s += fmt.Sprintf("/expected=%d", g.expected)
	}
	return s
}

// skipUnderRace skips a test that has one goroutine and much to do.
func skipUnderRace(t testing.TB) {
	t.Helper()
	if raceEnabled {
		t.Skip("one goroutine: the detector only makes it slow")
	}
}

// mustCache returns a cache that is validated and closed when the test ends.
func mustCache(t testing.TB, g geometry) *Cache {
	t.Helper()
	if *coldOn && g.compressor == nil {
		g = withCold(g, flateCompressor{})
	}
	var c *Cache
	if *inFile && offHeap {
		c = mustOpen(t, g, filepath.Join(t.TempDir(), "cache"))
	} else {
		c = newCache(g)
	}
	t.Cleanup(func() {
		if !c.buckets[0].Closed { // there is nothing left to validate
			assert.NoError(t, c.validate(), "at the end")
		}
		closeCache(t, c)
	})
	return c
}

// closeCache closes a cache.
func closeCache(t testing.TB, c *Cache) {
	t.Helper()
	assert.NoError(t, c.Close())
	collectClosed()
}

// TestMain collects what examples close, which call no helper (see collectClosed).
func TestMain(m *testing.M) {
	if strconv.IntSize == 32 {
		go func() {
			for range time.Tick(20 * time.Millisecond) {
				runtime.GC()
			}
		}()
	}
	os.Exit(m.Run())
}

var closedCaches atomic.Int32

// collectClosed is called after a cache was closed. Where addresses have 32 bits there
// is no room for many caches that wait for the collector, which they do not hurry: now
// and then it runs.
func collectClosed() {
	if n := closedCaches.Add(1); strconv.IntSize == 32 && n%4 == 0 {
		runtime.GC()
	}
}

// fillCache sets entries of 8 bytes and a value with ids from first on.
func fillCache(t *testing.T, c *Cache, first, n, valueSize int) {
	t.Helper()
	key, value := make([]byte, 8), make([]byte, valueSize)
	for id := range n {
		binary.LittleEndian.PutUint64(key, uint64(first+id))
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
}

// stamp is what a test value says about itself: whose it is, which write of
// that key made it, and how long it is. The bytes follow from it, so that a
// mixture of two values is recognised.
type stamp struct {
	id      uint32
	version uint64
	size    int
}

// Values from stampSize on begin with their stamp; from selfSize on they can be
// judged by themselves, as at least 8 bytes of filler follow. Shorter ones are
// only the first bytes of the filler.
const (
	stampSize = 16
	selfSize  = stampSize + 8
)

// String describes the stamp.
func (s stamp) String() string {
	return fmt.Sprintf("key %d version %d, %d bytes", s.id, s.version, s.size)
}

// value returns the bytes of s in buf, which is grown when it is too small.
func (s stamp) value(buf []byte) []byte { return s.filled(buf, s.mask()) }

// filled is value with those bits of the filler that mask has.
func (s stamp) filled(buf []byte, mask uint64) []byte {
	b := slices.Grow(buf[:0], s.size)[:s.size]
	rest := b
	if s.size >= stampSize {
		binary.LittleEndian.PutUint64(b, s.version)
		binary.LittleEndian.PutUint32(b[8:], s.id)
		binary.LittleEndian.PutUint32(b[12:], uint32(s.size))
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

// wrote reports whether b is exactly the value of s.
func (s stamp) wrote(b []byte) bool {
	if len(b) != s.size {
		return false
	}
	if s.size >= stampSize {
		if binary.LittleEndian.Uint64(b) != s.version ||
			binary.LittleEndian.Uint32(b[8:]) != s.id ||
			binary.LittleEndian.Uint32(b[12:]) != uint32(s.size) {
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
func (s stamp) mask() uint64 {
	if s.size < 64 {
		return math.MaxUint64
	}
	return 0x0f0f0f0f0f0f0f0f
}

func (s stamp) filler() uint64 {
	x := s.version*0xbf58476d1ce4e5b9 ^ (uint64(s.id)<<32|uint64(s.size))*0x94d049bb133111eb
	return x ^ x>>29
}

// readStamp returns the stamp that the value b carries, or an error if not all
// of b is what that stamp says.
func readStamp(b []byte) (stamp, error) {
	if len(b) < selfSize {
		return stamp{}, fmt.Errorf("%d bytes are too few for a stamp: %x", len(b), b)
	}
	s := stamp{
		id:      binary.LittleEndian.Uint32(b[8:]),
		version: binary.LittleEndian.Uint64(b),
		size:    int(binary.LittleEndian.Uint32(b[12:])),
	}
	if !s.wrote(b) {
		return stamp{}, fmt.Errorf("a mixture of %d bytes that calls itself %v: %.64x", len(b), s, b)
	}
	return s, nil
}

// The stamps must bite, or no test that rests on them does.
func TestStamp_FindsMixtures(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 15, 16, 17, 100, 1000} {
		s := stamp{id: 7, version: 3, size: size}
		b := s.value(nil)
		require.True(t, s.wrote(b), "size %d", size)
		for i := range b {
			b[i] ^= 1
			require.False(t, s.wrote(b), "size %d, byte %d has changed", size, i)
			_, err := readStamp(b)
			require.Error(t, err, "size %d, byte %d has changed", size, i)
			b[i] ^= 1
		}
		if size > 0 {
			next := stamp{id: 7, version: 4, size: size}
			require.False(t, next.wrote(b), "size %d: another version", size)
			require.False(t, s.wrote(b[:size-1]), "size %d: a byte less", size)
		}
	}
}
