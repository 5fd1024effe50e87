package memo

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/torn"
)

// How a value is found without its encoding: by the cache entry that holds it. A place notes that a
// cache entry had the bytes of a remembered value. An EntryID is never used again once the bytes
// have changed, so a place may be outdated, but it is never wrong.

const (
	placesPerEntry = 2 // so that few entries that are read often find no place
	groupWays      = 4 // places in a group
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

// group is the places of the keys with some hashes. A sequence that is odd while a place is written
// to tells readers that they have read parts of two.
type group struct {
	sequence atomic.Uint32
	tags     [groupWays]atomic.Uint32 // 32 bits of the hash of each key
	slots    [groupWays]atomic.Uint32 // of the values
	places   [groupWays]place
}

// place is a cache entry and the remembered value of its bytes.
type place struct {
	number              atomic.Uint64 // of the value; another one may have the slot now
	bucket, pos, writes atomic.Uint64 // the cache entry
}

// Recall returns the value that was bound to a cache entry whose key has that hash, and the cache
// entry, or nil. The caller must check that the cache still has the entry, and then call Hit.
func (t *Table[V]) Recall(keyHash uint64) (*Entry[V], EntryID) {
	g := t.group(keyHash)
	sequence := g.sequence.Load()
	way, ok := g.find(uint32(keyHash))
	if !ok {
		return nil, EntryID{}
	}
	p := &g.places[way]
	id := EntryID{p.bucket.Load(), p.pos.Load(), p.writes.Load()}
	torn.Delay()
	e := t.bound(g, way)
	if sequence&1 != 0 || g.sequence.Load() != sequence {
		return nil, EntryID{}
	}
	return e, id
}

// group returns the places of the cache entries whose keys have a hash.
func (t *Table[V]) group(keyHash uint64) *group {
	n, _ := bits.Mul64(keyHash, uint64(len(t.groups)))
	return &t.groups[n]
}

// find returns the place of the key with a tag.
func (g *group) find(tag uint32) (way int, ok bool) {
	for i := range g.tags {
		if g.tags[i].Load() == tag {
			return i, true
		}
	}
	return 0, false
}

// bound returns the value of a place if it is still remembered, or nil.
func (t *Table[V]) bound(g *group, way int) *Entry[V] {
	slot := g.slots[way].Load()
	e := t.sets[slot/ways].slots[slot%ways].Load()
	if e == nil || e.number != g.places[way].number.Load() {
		return nil
	}
	return e
}

// Binds reports whether to call Bind for a cache entry. While its place is taken, or, if it has
// none, a random one of its group, it is true for some of the calls. Otherwise more entries than a
// group has places would replace each other on every read, and an entry whose bucket is overwritten
// in place more often than the entry is read would be bound on every read in vain.
func (t *Table[V]) Binds(keyHash uint64) bool {
	g := t.group(keyHash)
	way, ok := g.find(uint32(keyHash))
	if !ok {
		way = rand.IntN(groupWays)
	}
	return t.bound(g, way) == nil || rand.IntN(rebindOneIn) == 0
}

// choose returns the place for a key: the one that it has, or one whose value is not remembered, or
// any.
func (t *Table[V]) choose(g *group, tag uint32) int {
	if way, ok := g.find(tag); ok {
		return way
	}
	for way := range g.places {
		if t.bound(g, way) == nil {
			return way
		}
	}
	return rand.IntN(groupWays)
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
	e, slot := s.find(uint32(h), data)
	if e == nil {
		return
	}
	n, _ := bits.Mul64(h, uint64(len(t.sets)))
	g, tag := t.group(keyHash), uint32(keyHash)
	way := t.choose(g, tag)
	p := &g.places[way]
	g.sequence.Add(1)
	g.tags[way].Store(tag)
	g.slots[way].Store(uint32(n)*ways + uint32(slot))
	p.number.Store(e.number)
	torn.Delay()
	p.bucket.Store(id.Bucket)
	p.pos.Store(id.Pos)
	p.writes.Store(id.Writes)
	g.sequence.Add(1)
}
