package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/allegro/bigcache/v3"
	gocache "github.com/patrickmn/go-cache"
	"github.com/ringcache/ringcache"
)

const keySize = 16

// store is the interface of the compared caches. set keeps its own copy; get may append to dst, or
// return the stored bytes or another copy.
type store interface {
	set(k, v []byte) error
	get(dst, k []byte) ([]byte, bool)
}

// newStore makes a store with room for entries values of valueSize bytes.
var newStore = map[string]func(entries, valueSize int) (store, error){
	"map":       newMap,
	"syncmap":   newSyncMap,
	"gocache":   newGoCache,
	"bigcache":  newBigCache,
	"ringcache": newRingCache,
}

// storeNames returns the stores that run here, in the order of the table's
// columns.
func storeNames() []string {
	if strconv.IntSize == 32 { // BigCache's counters are not aligned there: it panics
		return []string{"map", "syncmap", "gocache", "ringcache"}
	}
	return []string{"map", "syncmap", "gocache", "bigcache", "ringcache"}
}

// fill stores entries 0 to n-1.
func fill(s store, n, valueSize int) error {
	k, v := make([]byte, keySize), make([]byte, valueSize)
	for i := range n {
		fillKey(k, i)
		fillValue(v, i)
		if err := s.set(k, v); err != nil {
			return err
		}
	}
	return nil
}

// countKept reads all entries and returns the number of correct ones.
func countKept(s store, n, valueSize int) int {
	kept := 0
	k, want, buf := make([]byte, keySize), make([]byte, valueSize), make([]byte, 0, valueSize)
	for i := range n {
		fillKey(k, i)
		fillValue(want, i)
		if v, ok := s.get(buf, k); ok && bytes.Equal(v, want) {
			kept++
		}
	}
	return kept
}

// fillKey writes the i-th key.
func fillKey(k []byte, i int) {
	binary.LittleEndian.PutUint64(k, uint64(i))
	binary.LittleEndian.PutUint64(k[8:], uint64(i)*0x9e3779b97f4a7c15)
}

// fillValue writes the i-th value, which differs from all others if it is long enough.
func fillValue(v []byte, i int) {
	for j := range v {
		v[j] = byte(i >> (j % 8 * 8))
	}
}

// lockedMap is the plain map that most programs start with.
type lockedMap struct {
	mu sync.RWMutex
	m  map[string][]byte
}

func newMap(int, int) (store, error) { return &lockedMap{m: map[string][]byte{}}, nil }

func (s *lockedMap) set(k, v []byte) error {
	s.mu.Lock()
	s.m[string(k)] = bytes.Clone(v)
	s.mu.Unlock()
	return nil
}

func (s *lockedMap) get(_, k []byte) ([]byte, bool) {
	s.mu.RLock()
	v, ok := s.m[string(k)]
	s.mu.RUnlock()
	return v, ok
}

// syncMap is sync.Map.
type syncMap struct{ m sync.Map }

func newSyncMap(int, int) (store, error) { return new(syncMap), nil }

func (s *syncMap) set(k, v []byte) error {
	s.m.Store(string(k), bytes.Clone(v))
	return nil
}

func (s *syncMap) get(_, k []byte) ([]byte, bool) {
	v, ok := s.m.Load(string(k))
	if !ok {
		return nil, false
	}
	return v.([]byte), true
}

// goCache is go-cache without expiry.
type goCache struct{ c *gocache.Cache }

func newGoCache(int, int) (store, error) {
	return goCache{gocache.New(gocache.NoExpiration, 0)}, nil
}

func (s goCache) set(k, v []byte) error {
	s.c.Set(string(k), bytes.Clone(v), gocache.NoExpiration)
	return nil
}

func (s goCache) get(_, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(string(k))
	if !ok {
		return nil, false
	}
	return v.([]byte), true
}

// bigCache is BigCache, configured for the number of entries.
type bigCache struct{ c *bigcache.BigCache }

func newBigCache(entries, valueSize int) (store, error) {
	const header = 18 // time, hash and key length before each entry
	cfg := bigcache.DefaultConfig(24 * time.Hour)
	cfg.CleanWindow = 0
	cfg.MaxEntriesInWindow = entries
	cfg.MaxEntrySize = header + keySize + valueSize
	cfg.Verbose = false
	c, err := bigcache.New(context.Background(), cfg)
	return bigCache{c}, err
}

func (s bigCache) set(k, v []byte) error { return s.c.Set(string(k), v) }

func (s bigCache) get(_, k []byte) ([]byte, bool) {
	v, err := s.c.Get(string(k))
	return v, err == nil
}

// ringCache is this project's cache.
type ringCache struct{ c *ringcache.Cache }

func newRingCache(entries, valueSize int) (store, error) {
	// A quarter more than entries and their share of the index take, for the
	// buckets that get more than the mean; at least room for one such value.
	maxBytes := max(entries*(keySize+valueSize+40)/4*5, 17*valueSize, 32<<20)
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes})
	return ringCache{c}, err
}

func (s ringCache) set(k, v []byte) error { return s.c.Set(k, v) }

func (s ringCache) get(dst, k []byte) ([]byte, bool) { return s.c.HasGet(dst, k) }
