package ringrueidis

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/near"
)

// NewStore returns a function for rueidis.ClientOption.NewCacheStoreFn. Each connection
// gets its own store, and all stores share cache, even those of several clients and servers.
// A store never finds an entry that another store has cached. CacheSizeEachConn has no
// effect: the bound is that of cache.
//
// The caller owns cache, may use it for other data too, and closes it. After cache has been
// closed, every read goes to the server. If cache has an Options.OnRemove function, the
// goroutine that reads from the connection calls it while the store is locked, so it must
// not use the client. NewStore panics if cache is nil.
func NewStore(cache *ringcache.Cache) rueidis.NewCacheStoreFn {
	if cache == nil {
		panic("ringrueidis: make store: cache is nil")
	}
	return func(rueidis.CacheStoreOption) rueidis.CacheStore {
		s := new(store)
		s.Init(cache)
		return s
	}
}

// store is what one connection has cached.
type store struct {
	near.Store[rueidis.RedisMessage, *rueidis.RedisMessage]
}

var _ rueidis.CacheStore = (*store)(nil)

// Flight returns the cached reply to cmd of key; or what to wait for, if a request for it
// is under way; or neither, and then the caller sends the request.
func (s *store) Flight(
	key, cmd string, ttl time.Duration, now time.Time,
) (msg rueidis.RedisMessage, _ rueidis.CacheEntry) {
	reply, under := s.Store.Flight(key, cmd, ttl, now)
	if under != nil {
		return msg, under
	}
	// Only replies that can be unmarshaled are kept.
	if reply != nil && msg.CacheUnmarshalView(reply) != nil {
		return rueidis.RedisMessage{}, nil
	}
	return msg, nil
}
