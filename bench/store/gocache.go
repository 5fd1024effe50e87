package store

import (
	"time"

	gocache "github.com/patrickmn/go-cache"
)

var gocacheInfo = Info{
	Name:    "go-cache",
	Kind:    gocacheStore{},
	Module:  "github.com/patrickmn/go-cache",
	Expires: true,
	New: func(c Config) (Store, error) {
		items := make(map[string]gocache.Item, c.room())
		ttl := c.TTL
		if ttl == 0 {
			ttl = gocache.NoExpiration
		}
		return gocacheStore{gocache.NewFrom(gocache.NoExpiration, 0, items), ttl}, nil
	},
}

type gocacheStore struct {
	c   *gocache.Cache
	ttl time.Duration
}

func (s gocacheStore) Set(k, v []byte) error {
	s.c.Set(string(k), clone(v), s.ttl)
	return nil
}

func (s gocacheStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(asString(k))
	if !ok {
		return dst, false
	}
	return append(dst, v.([]byte)...), true
}

func (s gocacheStore) Statistics() int { return s.c.ItemCount() }

func (s gocacheStore) Del(k []byte) { s.c.Delete(asString(k)) }

func (s gocacheStore) Close() error {
	s.c.Flush()
	return nil
}

// clone is the copy that a store must make which keeps slices.
func clone(v []byte) []byte {
	c := make([]byte, len(v)) // exactly as long: append would round up to more capacity
	copy(c, v)
	return c
}
