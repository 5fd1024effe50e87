package near

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// Message is a pointer to a reply of a client, whose type is M. CacheMarshal writes seven
// bytes first: when the reply expires, in milliseconds of Unix time, little-endian.
type Message[M any] interface {
	*M
	CacheSize() int
	CacheMarshal(dst []byte) []byte
	CacheUnmarshalView(src []byte) error // the message refers to src
	CachePXAT() int64                    // -1: never
	IsNil() bool
	Error() error
	ToString() (string, error)
}

// Store is what one connection has cached. Its entries are in the records of its view,
// which is all that a hit looks at. To forget everything, it goes on to another view: what
// is left of the old one is found no more, and leaves the cache as other entries do.
// Any number of goroutines may call its methods.
type Store[M any, P Message[M]] struct {
	records records
	view    atomic.Uint64 // written under mu; 0: closed

	mu      sync.Mutex
	flights map[string]*Flight[M] // requests under way, by key; nil: closed
}

// Init prepares a store whose entries are in cache, which is not nil. No other method may
// be called before it, and the store must not be copied after it.
func (s *Store[M, P]) Init(cache *ringcache.Cache) {
	s.records.cache = cache
	s.flights = make(map[string]*Flight[M])
	s.view.Store(nextView())
}

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

// Flight returns the cached reply to cmd of key, as CacheMarshal wrote it and in memory of
// the caller's; or what to wait for, if a request for it is under way; or neither, and then
// the caller sends the request, and calls Update or Cancel. A hit takes no lock, and
// allocates the reply. Adapters unmarshal it, since a call by way of P would have the
// message escape to the heap.
func (s *Store[M, P]) Flight(
	key, cmd string, ttl time.Duration, now time.Time,
) (reply []byte, under *Flight[M]) {
	view := s.view.Load()
	if view == 0 {
		return nil, nil
	}
	if reply, ok := s.records.get(view, key, cmd, now, false); ok {
		return reply, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights == nil {
		return nil, nil
	}
	if f := s.findLocked(key, cmd); f != nil {
		return nil, f
	}
	// The request that the lookup above came too early for may have ended by now.
	if reply, ok := s.records.get(s.view.Load(), key, cmd, now, true); ok {
		return reply, nil
	}
	s.flights[key] = &Flight[M]{
		cmd:      cmd,
		next:     s.flights[key],
		start:    now,
		deadline: now.Add(ttl).UnixMilli(),
		done:     make(chan struct{}),
	}
	return nil, nil
}

// Update ends the flight of cmd of key with the reply, and returns when the reply expires,
// in milliseconds of Unix time; 0 if there is no such flight. It keeps the reply, unless the
// server has invalidated key since the flight began. Redis and Valkey send replies and
// invalidations in the order in which they happened, so that the reply would be the newer
// one; other servers may not.
func (s *Store[M, P]) Update(key, cmd string, val M) (pxat int64) {
	now := time.Now()
	s.mu.Lock()
	f := s.takeLocked(key, cmd)
	if f == nil { // canceled, or closed
		s.mu.Unlock()
		return 0
	}
	pxat = f.expireAt(P(&val).CachePXAT(), now)
	rec, msg, ok := newRecord[M, P](cmd, val, pxat)
	if ok && !f.invalidated && cacheable(P(&val)) {
		s.records.set(s.view.Load(), key, rec, time.UnixMilli(pxat).Sub(now))
	}
	s.mu.Unlock()
	f.end(msg, nil)
	return pxat
}

// cacheable tells whether a reply may be kept. An error may be the server's and not the
// key's, and so no invalidation would come.
func cacheable[M any, P Message[M]](val P) bool {
	return val.IsNil() || val.Error() == nil
}

// Cancel ends the flight of cmd of key with err.
func (s *Store[M, P]) Cancel(key, cmd string, err error) {
	s.mu.Lock()
	f := s.takeLocked(key, cmd)
	s.mu.Unlock()
	if f != nil {
		var none M
		f.end(none, err)
	}
}

// Delete forgets the replies for keys, or all if keys is nil. Flights go on, but their
// replies will not be kept.
func (s *Store[M, P]) Delete(keys []M) {
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
		key, err := P(&keys[i]).ToString()
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
func (s *Store[M, P]) forgetLocked() {
	s.view.Store(nextView())
	for _, f := range s.flights {
		for ; f != nil; f = f.next {
			f.invalidated = true
		}
	}
}

// Close ends all flights with err and forgets all replies: their invalidations are lost
// with the connection. From now on nothing is kept.
func (s *Store[M, P]) Close(err error) {
	s.mu.Lock()
	flights := s.flights
	s.flights = nil
	s.view.Store(0)
	s.mu.Unlock()
	var none M
	for _, f := range flights {
		for ; f != nil; f = f.next {
			f.end(none, err)
		}
	}
}
