package ringcache

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/store"
)

// chunksPerBucket is the least number of chunks of a bucket, which keeps the loss from rounding its
// share small. Caches below 1 GB have smaller chunks to reach it.
const chunksPerBucket = 32

// geometry is everything that shapes a cache. Tests make tiny ones.
type geometry struct {
	settings
	options   Options
	maxBytes  int // bound on off-heap memory
	buckets   int // power of two, at most store.BucketCount
	chunkSize int // power of two, at least 64
	policy    Policy
	now       func() time.Duration // time since the cache was made; nil: the real one
	expected  int                  // Options.ExpectedEntries
	posBits   uint                 // width of a position: generation and offset
	seed      [2]uint64            // {0, 0}: all hashes are 0
	mem       chunk.Memory
	file      *ringfile.Store // nil: the cache is in memory only
	born      time.Time       // when the clock began; zero: now

	compressor   Compressor // nil: there is no cold part
	compressorID string
	withoutDict  ValueCompressor // Compressor without a dictionary
	coldShare    float64         // the cold part's share of the memory; 0: as learned
	byHand       bool            // no goroutine: a test compresses
	dictFile     string          // where dictionaries are kept; empty: in memory only
	dicts        []string        // that were found there
	foreign      bool            // none were, or those of another Compressor
}

// defaultGeometry returns the geometry of a cache of maxBytes.
func defaultGeometry(maxBytes int) geometry {
	buckets := min(1<<(bits.Len(uint(maxBytes/minBucketBytes))-1), store.BucketCount)
	share := maxBytes / buckets / chunksPerBucket
	return geometry{
		settings:  settings{machine: &clock.System, timeout: defaultRefreshTimeout, least: minMaxBytes},
		maxBytes:  maxBytes,
		buckets:   buckets,
		chunkSize: min(max(1<<(bits.Len(uint(share))-1), chunk.MinSize), chunk.MaxSize),
		posBits:   index.PosBits,
		seed:      newSecret(),
		mem:       systemMemory(),
	}
}

// newSecret returns a random secret, which is mixed into every hash so that outsiders cannot choose
// keys that share a bucket. Each cache draws its own, because files and snapshots reveal it; only a
// cache that is loaded from a snapshot has the secret of that snapshot.
func newSecret() (s [2]uint64) {
	for !isSecret(s) {
		var b [16]byte
		rand.Read(b[:]) // never fails
		s = [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]) | 1}
	}
	return s
}

// isSecret reports whether s is usable as a secret: the second word, a multiplier, must be odd, and
// must have neither too few bits set nor too many, as fewer than one random word in ten thousand
// has. With all bits set, for example, all hashes would be equal.
func isSecret(s [2]uint64) bool {
	n := bits.OnesCount64(s[1])
	return s[1]&1 == 1 && 15 < n && n < 49
}

// newShared returns the state that the buckets of a cache of this geometry share.
func (g *geometry) newShared() *store.Shared {
	mem := g.mem
	mem.Map = orNoMemory(mem.Map)
	if g.file != nil {
		mem.Rings = fileMemory(g.file.Memory())
	}
	born := g.born
	if born.IsZero() {
		born = time.Now()
	}
	c := store.Config{
		Seed:     g.seed,
		Policy:   policy.Kind(g.policy),
		Buckets:  g.buckets,
		PosBits:  g.posBits,
		Expected: g.expected,
		File:     g.file,
		Notifies: g.onRemove != nil,
		Times:    clock.Times{TTL: g.ttl, Jitter: g.jitter, Grace: g.stale, Idle: g.idle},
		Born:     born,
		Elapsed:  g.now,
	}
	if g.compressor != nil {
		z := cold.Config{
			By:          valuesOf{g.compressor},
			ID:          g.compressorID,
			WithoutDict: g.withoutDict,
			Share:       g.coldShare,
			Buckets:     g.buckets,
		}
		if g.file != nil {
			z.File, z.Dicts, z.Foreign = g.dictFile, g.dicts, g.foreign
		}
		c.Compression = cold.New(&z)
	}
	pool := chunk.NewPool(mem, g.maxBytes, g.chunkSize, chunk.HugePages(g.hugePages))
	return store.NewShared(c, pool, g.maxBytes)
}

// orNoMemory returns get with ErrNoMemory added to its errors.
func orNoMemory(get func(n int) ([]byte, error)) func(n int) ([]byte, error) {
	return func(n int) ([]byte, error) {
		b, err := get(n)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		return b, nil
	}
}

// fileMemory returns the memory of a file, with ErrNoMemory added to its errors.
func fileMemory(m *chunk.RingMemory) *chunk.RingMemory {
	fromFile := *m
	fromFile.Map = orNoMemory(m.Map)
	fromFile.Fill = func(b []byte) error {
		if err := m.Fill(b); err != nil {
			return fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		return nil
	}
	return &fromFile
}

// valuesOf adapts a Compressor to package cold.
type valuesOf struct{ Compressor }

// WithDict is WithDict of the Compressor, with the result type of package cold.
func (c valuesOf) WithDict(dict []byte) (cold.ValueCompressor, error) {
	v, err := c.Compressor.WithDict(dict)
	if v == nil {
		return nil, err
	}
	return v, err
}
