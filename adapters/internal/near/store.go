package near

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// Message is a pointer to M, the type of a client's replies. The first seven bytes that
// CacheMarshal writes are the expiry of the reply, in milliseconds of Unix time, little-endian.
type Message[M any] interface {
	*M
	CacheSize() int
	CacheMarshal(dst []byte) []byte
	CacheUnmarshalView(src []byte) error // the message shares the memory of src
	CachePXAT() int64                    // -1: never
	IsNil() bool
	Error() error
	ToString() (string, error)
}

// Store holds the replies that one connection has cached. A lookup considers only the records of
// the store's current view. To forget everything, the store switches to a new view: records of the
// old one can no longer be found, and are evicted or expire like other entries. A Store is safe for
// concurrent use.
type Store[M any, P Message[M]] struct {
	records records
	view    atomic.Uint64 // written under mu; 0: closed

	mu      sync.Mutex
	flights map[string]*Flight[M] // requests in progress, by key; nil: closed
}

// Init initializes a store whose entries are in cache, which must not be nil. It must be called
// before any other method, and the store must not be copied afterwards.
func (s *Store[M, P]) Init(cache *ringcache.Cache) {
	s.records.cache = cache
	s.flights = make(map[string]*Flight[M])
	s.view.Store(nextView())
}

// lastView starts at a random number, because a cache may contain entries of an earlier process.
var lastView atomic.Uint64

func init() { lastView.Store(rand.Uint64()) }

// nextView returns a new number for a view, which is even and not 0. The odd number that follows
// also belongs to the view: see records.
func nextView() uint64 {
	for {
		if v := lastView.Add(2) &^ 1; v != 0 {
			return v
		}
	}
}

// Flight returns the cached reply to cmd of key, in the form of CacheMarshal, in memory that the
// caller owns. If a request for it is in progress, Flight returns the flight to wait for. Otherwise
// it returns neither, and the caller must send the request and then call Update or Cancel. Adapters
// unmarshal the reply, because a call through P would make the message escape to the heap.
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
	// A request that was in progress during the lookup above may have ended by now.
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

// Update ends the flight for cmd of key with the reply, and returns when the reply expires, in
// milliseconds of Unix time, or 0 if there is no such flight. It stores neither errors nor a reply
// whose key the server has invalidated since the flight began.
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

// cacheable reports whether a reply may be stored. Errors are not, because an error that does not
// depend on the key would never be invalidated.
func cacheable[M any, P Message[M]](val P) bool {
	return val.IsNil() || val.Error() == nil
}

// Cancel ends the flight for cmd of key with err.
func (s *Store[M, P]) Cancel(key, cmd string, err error) {
	s.mu.Lock()
	f := s.takeLocked(key, cmd)
	s.mu.Unlock()
	if f != nil {
		var none M
		f.end(none, err)
	}
}

// Delete removes the replies for keys, or all replies if keys is nil or has one that is no string.
// Flights for them continue, but their replies will not be stored.
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
		if err != nil { // the key is unknown
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

// Close ends all flights with err and forgets all replies, whose invalidations are lost with the
// connection. Afterwards nothing is stored.
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
