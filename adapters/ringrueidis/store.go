package ringrueidis

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
)

// NewStore returns a function for rueidis.ClientOption.NewCacheStoreFn. Each connection
// gets its own store, and all of them lie in cache: stores of one client, of several,
// and of several servers. A store finds nothing that another one has cached.
// CacheSizeEachConn has no effect, the bound is that of cache.
//
// The caller owns cache and may use it for other things too; it is not closed. Once it is
// closed, every read goes to the server. If it has an Options.OnRemove, the goroutine that
// reads from the connection calls it, while the store is locked: it must not use the client.
// NewStore panics if cache is nil.
func NewStore(cache *ringcache.Cache) rueidis.NewCacheStoreFn {
	if cache == nil {
		panic("ringrueidis: make store: cache is nil")
	}
	return func(rueidis.CacheStoreOption) rueidis.CacheStore {
		s := &store{records: records{cache: cache}, flights: make(map[string]*flight)}
		s.view.Store(nextView())
		return s
	}
}

// store is what one connection has cached. Its entries are in the records of its view,
// which is all that a hit looks at. To forget everything, it goes on to another view: what
// is left of the old one is found no more, and leaves the cache as other entries do.
type store struct {
	records records
	view    atomic.Uint64 // written under mu; 0: closed

	mu      sync.Mutex
	flights map[string]*flight // requests under way, by key; nil: closed
}

var _ rueidis.CacheStore = (*store)(nil)

// lastView is random at first: a cache may hold entries of another process.
var lastView atomic.Uint64

func init() { lastView.Store(rand.Uint64()) }

// nextView returns a number that no view has had, and that is not 0. Views are even; the
// number after each is the view's too (see records).
func nextView() uint64 {
	for {
		if v := lastView.Add(2) &^ 1; v != 0 {
			return v
		}
	}
}

// Flight returns the cached reply to cmd of key; or what to wait for, if a request for it
// is under way; or neither, and then the caller sends the request.
func (s *store) Flight(
	key, cmd string, ttl time.Duration, now time.Time,
) (rueidis.RedisMessage, rueidis.CacheEntry) {
	view := s.view.Load()
	if view == 0 {
		return rueidis.RedisMessage{}, nil
	}
	if msg, ok := s.records.get(view, key, cmd, now, false); ok {
		return msg, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights == nil {
		return rueidis.RedisMessage{}, nil
	}
	if f := s.findLocked(key, cmd); f != nil {
		return rueidis.RedisMessage{}, f
	}
	// The request that the lookup above came too early for may have ended by now.
	if msg, ok := s.records.get(s.view.Load(), key, cmd, now, true); ok {
		return msg, nil
	}
	s.flights[key] = &flight{
		cmd:      cmd,
		next:     s.flights[key],
		start:    now,
		deadline: now.Add(ttl).UnixMilli(),
		done:     make(chan struct{}),
	}
	return rueidis.RedisMessage{}, nil
}

// Update ends the flight of cmd of key with the reply, and returns when the reply expires.
// It keeps the reply, unless the server has invalidated key since the flight began. Redis
// and Valkey send replies and invalidations in the order in which they happened, so that
// the reply would be the newer one; others may not.
func (s *store) Update(key, cmd string, val rueidis.RedisMessage) (pxat int64) {
	now := time.Now()
	s.mu.Lock()
	f := s.takeLocked(key, cmd)
	if f == nil { // canceled, or closed
		s.mu.Unlock()
		return 0
	}
	pxat = f.expireAt(val.CachePXAT(), now)
	rec, ok := newRecord(cmd, &val, pxat)
	if ok && !f.invalidated && cacheable(&val) {
		s.records.set(s.view.Load(), key, rec, time.UnixMilli(pxat).Sub(now))
	}
	s.mu.Unlock()
	f.end(rec.msg, nil)
	return pxat
}

// cacheable tells whether a reply may be kept. An error may be the server's and not the
// key's, and so no invalidation would come.
func cacheable(val *rueidis.RedisMessage) bool {
	return val.IsNil() || val.Error() == nil
}

// Cancel ends the flight of cmd of key with err.
func (s *store) Cancel(key, cmd string, err error) {
	s.mu.Lock()
	f := s.takeLocked(key, cmd)
	s.mu.Unlock()
	if f != nil {
		f.end(rueidis.RedisMessage{}, err)
	}
}

// Delete forgets the replies for keys, or all if keys is nil. Flights go on, but their
// replies will not be kept.
func (s *store) Delete(keys []rueidis.RedisMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights == nil {
		return
	}
	if keys == nil {
		s.forgetLocked()
		return
	}
	for i := range keys {
		key, err := keys[i].ToString()
		if err != nil { // it may be any key
			s.forgetLocked()
			return
		}
		for f := s.flights[key]; f != nil; f = f.next {
			f.invalidated = true
		}
		s.records.del(s.view.Load(), key)
	}
}

// forgetLocked forgets all replies.
func (s *store) forgetLocked() {
	s.view.Store(nextView())
	for _, f := range s.flights {
		for ; f != nil; f = f.next {
			f.invalidated = true
		}
	}
}

// Close ends all flights with err and forgets all replies: their invalidations are lost
// with the connection. From now on nothing is kept.
func (s *store) Close(err error) {
	s.mu.Lock()
	flights := s.flights
	s.flights = nil
	s.view.Store(0)
	s.mu.Unlock()
	for _, f := range flights {
		for ; f != nil; f = f.next {
			f.end(rueidis.RedisMessage{}, err)
		}
	}
}
