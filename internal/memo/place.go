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
	pairsPerEntry = 4 // of places, so that few entries that are read often find theirs taken
	rebindOneIn   = 4 // one in so many calls may replace a binding
)

// EntryID identifies an entry of a cache as long as its value does not change. No other entry, not
// even a later one with the same key, and no other value ever has the same EntryID in the process.
// The zero value identifies none.
type EntryID struct {
	Bucket uint64 // the cache and the bucket
	Pos    uint64 // the ring and the position there, which never recurs
	Writes uint64 // values that the bucket has overwritten in place so far
}

// place is a cache entry and the remembered value of its bytes. It does not change. A value has at
// most one, which goes when the value does.
type place[V any] struct {
	keyHash uint64
	id      EntryID
	value   *Entry[V]
}

// at returns the place of the keys with a hash: the one of a pair that is theirs, an empty one, or
// any.
func (t *Table[V]) at(keyHash uint64) *atomic.Pointer[place[V]] {
	n, _ := bits.Mul64(keyHash, uint64(len(t.places)))
	pair := &t.places[n]
	for i := range pair {
		if p := pair[i].Load(); p != nil && p.keyHash == keyHash {
			return &pair[i]
		}
	}
	for i := range pair {
		if pair[i].Load() == nil {
			return &pair[i]
		}
	}
	return &pair[rand.IntN(len(pair))]
}

// Recall returns the value that was bound to a cache entry whose key has that hash, and the cache
// entry, or nil. The caller must check that the cache still has the entry, and then call Hit.
func (t *Table[V]) Recall(keyHash uint64) (*Entry[V], EntryID) {
	p := t.at(keyHash).Load()
	if p == nil || p.keyHash != keyHash {
		return nil, EntryID{}
	}
	torn.Delay()
	return p.value, p.id
}

// Binds reports whether to call Bind for a value and a cache entry. While either has a place, it is
// true for some of the calls. Otherwise entries that share a value or a place would replace each
// other on every read, and an entry whose bucket is overwritten in place more often than the entry
// is read would be bound on every read in vain.
func (t *Table[V]) Binds(e *Entry[V], keyHash uint64) bool {
	taken := e.place.Load() != nil || t.at(keyHash).Load() != nil
	return !taken || rand.IntN(rebindOneIn) == 0
}

// Bind notes that the cache entry id, whose key has that hash, holds the bytes data. It does
// nothing if these are not those of e, if e is not remembered any more, or if another call holds
// the lock.
func (t *Table[V]) Bind(e *Entry[V], keyHash uint64, id EntryID, data []byte) {
	if e.encoded != string(data) || !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if e.gone {
		return
	}
	t.unbind(e)
	p := &place[V]{keyHash, id, e}
	e.place.Store(p)
	t.at(keyHash).Store(p)
}

// unbind removes the place of a value.
func (t *Table[V]) unbind(e *Entry[V]) {
	if p := e.place.Swap(nil); p != nil {
		t.at(p.keyHash).CompareAndSwap(p, nil)
	}
}
