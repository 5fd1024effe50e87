package memo

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/delay"
)

// How a value is found without its encoding: by the cache entry that holds it. A place notes that a
// cache entry had the bytes of a remembered value. An EntryID is never used again once the bytes
// have changed, so a place may be outdated, but it is never wrong.

const (
	placesPerEntry = 2 // so that few entries that are read often share a place
	rebindOneIn    = 4 // one in so many calls may replace the binding of a place
)

// EntryID identifies an entry of a cache as long as its value does not change. No other entry, not
// even a later one with the same key, and no other value ever has the same EntryID in the process.
// The zero value identifies none.
type EntryID struct {
	Bucket uint64 // the cache and the bucket
	Pos    uint64 // the ring and the position there, which never recurs
	Writes uint64 // values that the bucket has overwritten in place so far
}

// place is a cache entry and the remembered value of its bytes. A sequence that is odd while the
// place is written to tells readers that they have read parts of two.
type place struct {
	sequence            atomic.Uint32
	slot                atomic.Uint32 // of the value
	number              atomic.Uint64 // of the value; another one may have the slot now
	bucket, pos, writes atomic.Uint64 // the cache entry
}

// Recall returns the value that was bound to a cache entry whose key has that hash, and the cache
// entry, or nil. The caller must check that the cache still has the entry, and then call Hit.
func (t *Table[V]) Recall(keyHash uint64) (*Entry[V], EntryID) {
	p := t.place(keyHash)
	sequence := p.sequence.Load()
	id := EntryID{p.bucket.Load(), p.pos.Load(), p.writes.Load()}
	delay.Point()
	e := t.bound(p)
	if sequence&1 != 0 || p.sequence.Load() != sequence {
		return nil, EntryID{}
	}
	return e, id
}

// place returns the place of the cache entries whose keys have a hash.
func (t *Table[V]) place(keyHash uint64) *place {
	n, _ := bits.Mul64(keyHash, uint64(len(t.places)))
	return &t.places[n]
}

// bound returns the value of a place if it is still remembered, or nil.
func (t *Table[V]) bound(p *place) *Entry[V] {
	slot := p.slot.Load()
	e := t.sets[slot/ways].slots[slot%ways].Load()
	if e == nil || e.number != p.number.Load() {
		return nil
	}
	return e
}

// Binds reports whether to call Bind for a cache entry. While the entry's place is taken, it is
// true for some of the calls, at random. Otherwise entries that share a place would replace each
// other on every read, and an entry whose bucket is overwritten in place more often than the entry
// is read would be bound on every read in vain.
func (t *Table[V]) Binds(keyHash uint64) bool {
	return t.bound(t.place(keyHash)) == nil || rand.IntN(rebindOneIn) == 0
}

// Bind notes that the cache entry id, whose key has that hash, holds the bytes data. It does
// nothing if their value is not remembered, or if another call holds the lock.
func (t *Table[V]) Bind(keyHash uint64, id EntryID, data []byte) {
	h := t.hash(data)
	s := t.set(h)
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	e, way := s.find(uint32(h), data)
	if e == nil {
		return
	}
	n, _ := bits.Mul64(h, uint64(len(t.sets)))
	p := t.place(keyHash)
	p.sequence.Add(1)
	p.slot.Store(uint32(n)*ways + uint32(way))
	p.number.Store(e.number)
	delay.Point()
	p.bucket.Store(id.Bucket)
	p.pos.Store(id.Pos)
	p.writes.Store(id.Writes)
	p.sequence.Add(1)
}
