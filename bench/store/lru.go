package store

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

var lruInfo = Info{
	Name:   "golang-lru",
	Module: "github.com/hashicorp/golang-lru/v2",
	Exact:  true,
	New:    func(c Config) (Store, error) { return newLRU(c.MaxBytes) },
}

// lruStore is the unlocked core of golang-lru, which bounds entries only, with a
// lock and a bound on bytes around it.
type lruStore struct {
	mu       sync.Mutex
	c        *simplelru.LRU[string, []byte]
	bytes    int
	maxBytes int
}

func newLRU(maxBytes int) (*lruStore, error) {
	s := &lruStore{maxBytes: maxBytes}
	c, err := simplelru.NewLRU(math.MaxInt, func(k string, v []byte) { s.bytes -= len(k) + len(v) })
	if err != nil {
		return nil, err
	}
	s.c = c
	return s, nil
}

func (s *lruStore) Set(k, v []byte) error {
	key, val := string(k), clone(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.Remove(key) // an overwrite would not be told to the callback
	s.c.Add(key, val)
	s.bytes += len(key) + len(val)
	for s.bytes > s.maxBytes {
		s.c.RemoveOldest()
	}
	return nil
}

func (s *lruStore) Get(dst, k []byte) ([]byte, bool) {
	s.mu.Lock()
	v, ok := s.c.Get(asString(k))
	s.mu.Unlock()
	return append(dst, v...), ok // stored values never change
}

func (s *lruStore) Look(k []byte, fn func(v []byte)) bool {
	s.mu.Lock()
	v, ok := s.c.Get(asString(k))
	s.mu.Unlock()
	if ok {
		fn(v)
	}
	return ok
}

func (s *lruStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c.Len()
}

func (s *lruStore) Del(k []byte) {
	s.mu.Lock()
	s.c.Remove(asString(k))
	s.mu.Unlock()
}

func (s *lruStore) Close() error {
	s.mu.Lock()
	s.c.Purge()
	s.mu.Unlock()
	return nil
}
