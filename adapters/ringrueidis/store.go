package ringrueidis

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/near"
)

// NewStore returns a function for rueidis.ClientOption.NewCacheStoreFn. Each connection gets its
// own store in cache, and never finds the entries of another, even of another client or server. The
// cache's bound applies; CacheSizeEachConn has no effect.
//
// The caller owns cache, may use it for other data too, and closes it; then there are no hits. An
// Options.OnRemove function of cache may run in the goroutine that reads from the connection, while
// the store is locked, so it must not use the client. NewStore panics if cache is nil.
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

// store holds the replies that one connection has cached.
type store struct {
	near.Store[rueidis.RedisMessage, *rueidis.RedisMessage]
}

var _ rueidis.CacheStore = (*store)(nil)

// Flight returns the cached reply to cmd of key, or the entry to wait for if a request for it is in
// progress. If it returns neither, the caller sends the request.
func (s *store) Flight(
	key, cmd string, ttl time.Duration, now time.Time,
) (msg rueidis.RedisMessage, _ rueidis.CacheEntry) {
	reply, under := s.Store.Flight(key, cmd, ttl, now)
	if under != nil {
		return msg, under
	}
	// Update stores only replies that can be unmarshaled.
	if reply != nil && msg.CacheUnmarshalView(reply) != nil {
		return rueidis.RedisMessage{}, nil
	}
	return msg, nil
}
