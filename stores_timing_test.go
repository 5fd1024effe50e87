package ringcache_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/allegro/bigcache/v3"
	gocache "github.com/patrickmn/go-cache"

	"github.com/ringcache/ringcache"
)

// This file holds the common code of the benchmarks: the stores that they compare, and the entries
// with which they fill them.

// timingStore is the interface that the comparisons require of a store; *Cache implements it.
type timingStore interface {
	Set(k, v []byte) error
	// HasGet appends the value to dst or returns the stored bytes themselves, according to the store's
	// own convention.
	HasGet(dst, k []byte) ([]byte, bool)
}

const (
	timingKeySize  = 16
	timingEntries  = 1_000_000
	minTimingBytes = 32 << 20 // the smallest cache there is
)

// timingMakers make stores with room for n entries of valueSize bytes that keep a copy of every
// value.
var timingMakers = []struct {
	name string
	make func(n, valueSize int) (timingStore, error)
}{
	{"ringcache", func(n, valueSize int) (timingStore, error) { return newTimingRing(n, valueSize) }},
	{"bigcache", func(n, valueSize int) (timingStore, error) {
		return newTimingBig(n, valueSize, 2*n*(timingKeySize+valueSize+20))
	}},
	{"gocache", func(int, int) (timingStore, error) { return newTimingGo(bytes.Clone), nil }},
	{"map", func(int, int) (timingStore, error) { return newTimingMap(bytes.Clone), nil }},
	{"syncmap", func(int, int) (timingStore, error) { return newTimingSync(bytes.Clone), nil }},
}

// newTimingRing leaves a quarter more room than the entries and their index need.
func newTimingRing(n, valueSize int) (*ringcache.Cache, error) {
	return ringcache.NewWithOptions(ringcache.Options{MaxBytes: max(n*(timingKeySize+valueSize+40)/4*5,
		minTimingBytes)})
}

type timingBig struct{ *bigcache.BigCache }

// newTimingBig tells BigCache the expected entries, so that it need not grow, and sets a bound,
// without which overwriting would make it grow indefinitely.
func newTimingBig(n, valueSize, maxBytes int) (timingStore, error) {
	if strconv.IntSize == 32 {
		return nil, fmt.Errorf("bigcache: count hits on a 32-bit system: %w", errors.ErrUnsupported)
	}
	cfg := bigcache.DefaultConfig(24 * time.Hour)
	cfg.MaxEntriesInWindow = n
	cfg.MaxEntrySize = timingKeySize + valueSize + 20 // its header and length
	cfg.HardMaxCacheSize = max(maxBytes, minTimingBytes) >> 20
	cfg.Verbose = false
	c, err := bigcache.New(context.Background(), cfg)
	return timingBig{c}, err
}

func (s timingBig) Set(k, v []byte) error { return s.BigCache.Set(string(k), v) }

func (s timingBig) HasGet(_, k []byte) ([]byte, bool) {
	v, err := s.Get(string(k))
	return v, err == nil
}

// keepBytes is the way in which a map keeps a value: as a clone, or as it is.
type keepBytes func([]byte) []byte

func asIs(v []byte) []byte { return v }

type timingGo struct {
	c    *gocache.Cache
	keep keepBytes
}

func newTimingGo(keep keepBytes) timingStore {
	return timingGo{gocache.New(gocache.NoExpiration, 0), keep}
}

func (s timingGo) Set(k, v []byte) error {
	s.c.Set(string(k), s.keep(v), gocache.NoExpiration)
	return nil
}

func (s timingGo) HasGet(_, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(string(k))
	if !ok {
		return nil, false
	}
	return v.([]byte), true
}

type timingMap struct {
	mu   sync.RWMutex
	m    map[string][]byte
	keep keepBytes
}

func newTimingMap(keep keepBytes) timingStore {
	return &timingMap{m: map[string][]byte{}, keep: keep}
}

func (s *timingMap) Set(k, v []byte) error {
	v = s.keep(v)
	s.mu.Lock()
	s.m[string(k)] = v
	s.mu.Unlock()
	return nil
}

func (s *timingMap) HasGet(_, k []byte) ([]byte, bool) {
	s.mu.RLock()
	v, ok := s.m[string(k)]
	s.mu.RUnlock()
	return v, ok
}

type timingSync struct {
	m    sync.Map
	keep keepBytes
}

func newTimingSync(keep keepBytes) timingStore { return &timingSync{keep: keep} }

func (s *timingSync) Set(k, v []byte) error {
	s.m.Store(string(k), s.keep(v))
	return nil
}

func (s *timingSync) HasGet(_, k []byte) ([]byte, bool) {
	v, ok := s.m.Load(string(k))
	if !ok {
		return nil, false
	}
	return v.([]byte), true
}

// checkOpened ends the benchmark if its store could not be made.
func checkOpened(b *testing.B, err error) {
	b.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// freeTimingStore releases a store's memory before the next one is filled.
func freeTimingStore(s timingStore) {
	if c, ok := s.(io.Closer); ok {
		c.Close()
	}
}

// ---- The entries.

// timingKeys draws entries at random; k is the key of the last one drawn.
type timingKeys struct {
	rng rand.PCG
	k   []byte
}

// Every timingKeys has its own order, which is the same in each run of the program.
var timingDrawers atomic.Uint64

func newTimingKeys() *timingKeys {
	return &timingKeys{rng: *rand.NewPCG(timingDrawers.Add(1), 1), k: make([]byte, timingKeySize)}
}

func (t *timingKeys) next() uint64 {
	i, _ := bits.Mul64(t.rng.Uint64(), timingEntries)
	putTimingKey(t.k, i)
	return i
}

// putTimingKey writes the i-th entry's key.
func putTimingKey(k []byte, i uint64) {
	binary.LittleEndian.PutUint64(k, i)
	binary.LittleEndian.PutUint64(k[8:], i*0x9e3779b97f4a7c15)
}

// An entry's value begins with its number.
func putTimingValue(v []byte, i uint64) { binary.LittleEndian.PutUint64(v, i) }

func isTimingValue(v []byte, size int, i uint64) bool {
	return len(v) == size && binary.LittleEndian.Uint64(v) == i
}

// fillTiming stores entries from to to-1.
func fillTiming(b *testing.B, s timingStore, from, to uint64, valueSize int) {
	b.Helper()
	k, v := make([]byte, timingKeySize), make([]byte, valueSize)
	for i := from; i < to; i++ {
		putTimingKey(k, i)
		putTimingValue(v, i)
		if err := s.Set(k, v); err != nil {
			b.Fatal(err)
		}
	}
}

func filledTimingStore(
	b *testing.B, open func(n, valueSize int) (timingStore, error), valueSize int,
) timingStore {
	b.Helper()
	s, err := open(timingEntries, valueSize)
	checkOpened(b, err)
	fillTiming(b, s, 0, timingEntries, valueSize)
	return s
}

var errWrongValue = errors.New("the value is another entry's")

const timingSample = 1000

// sampleHits reads some entries and returns the number of those present.
func sampleHits(b *testing.B, s timingStore, valueSize int) int {
	b.Helper()
	hits := 0
	keys := newTimingKeys()
	for range timingSample {
		i := keys.next()
		v, ok := s.HasGet(nil, keys.k)
		if ok && !isTimingValue(v, valueSize, i) {
			b.Fatal(errWrongValue)
		}
		if ok {
			hits++
		}
	}
	return hits
}

// reportHits fails if more than a hundredth missed: the time would be that of another operation.
func reportHits(b *testing.B, hits, reads uint64) {
	b.Helper()
	b.ReportMetric(100*float64(hits)/float64(reads), "hit%")
	if reads >= timingSample && hits < reads-reads/100 {
		b.Errorf("%d hits in %d reads", hits, reads)
	}
}
