package store

import (
	"github.com/cespare/xxhash/v2"
	"github.com/elastic/go-freelru"
	"github.com/phuslu/lru"
)

// roomy is the bound of a cache that is bounded by a number of entries. There is room to spare,
// since its shards fill unevenly.
func (c Config) roomy() int { return c.Entries*5/4 + 1000 }

var freelruInfo = Info{
	Name:   "freelru",
	Module: "github.com/elastic/go-freelru",
	New: func(c Config) (Store, error) {
		hash := func(k string) uint32 { return uint32(xxhash.Sum64String(k)) }
		cache, err := freelru.NewSharded[string, []byte](uint32(c.roomy()), hash)
		return freelruStore{cache}, err
	},
}

type freelruStore struct {
	c *freelru.ShardedLRU[string, []byte]
}

func (s freelruStore) Set(k, v []byte) error {
	s.c.Add(string(k), clone(v))
	return nil
}

func (s freelruStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(asString(k))
	return append(dst, v...), ok
}

func (s freelruStore) Len() int     { return s.c.Len() }
func (s freelruStore) Del(k []byte) { s.c.Remove(asString(k)) }

func (s freelruStore) Close() error {
	s.c.Purge()
	return nil
}

var phusluInfo = Info{
	Name:   "phuslu",
	Module: "github.com/phuslu/lru",
	New: func(c Config) (Store, error) {
		return phusluStore{lru.NewLRUCache[string, []byte](c.roomy())}, nil
	},
}

type phusluStore struct {
	c *lru.LRUCache[string, []byte]
}

func (s phusluStore) Set(k, v []byte) error {
	s.c.Set(string(k), clone(v))
	return nil
}

func (s phusluStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(asString(k))
	return append(dst, v...), ok
}

func (s phusluStore) Len() int     { return s.c.Len() }
func (s phusluStore) Del(k []byte) { s.c.Delete(asString(k)) }
func (s phusluStore) Close() error { return nil }
