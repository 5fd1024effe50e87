// Package memo remembers decoded values by their encoded bytes, and by the cache entries that hold
// these bytes.
package memo

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/stripe"
)

const (
	ways       = 12   // entries in a set
	ghosts     = 4    // of a set: with more, loops that exceed the table replace each other
	spare      = 2    // slots for each of maxEntries, so that hardly any set overflows before
	mostReads  = 3    // hits that an entry counts
	sizeShift  = 4    // log2 of the part of maxBytes that one value may have
	mostPassed = 1024 // slots that are passed for one value
)

// Table remembers the values that a codec has decoded. All methods are safe for concurrent use.
//
// Entries are kept in sets of 12, and a value's hash determines its set. Lookups read the sets
// without a lock. Only the holder of mu replaces entries, which are immutable except for reads. It
// evicts as CLOCK does: a hand passes the slots in turn.
type Table[V any] struct {
	decode     func(data []byte) (V, error)
	Hash       func(data []byte) uint64 // of encodings; does not change after the first Decode
	sets       []set[V]
	places     [][2]atomic.Pointer[place[V]]
	maxEntries int64
	maxBytes   int64
	lookups    stripe.Counters

	mu      sync.Mutex
	hand    int          // the next slot to pass
	entries atomic.Int64 // at most maxEntries; written under mu, as is bytes
	bytes   atomic.Int64 // at most maxBytes
}

// set is the entries and the ghosts of the encodings with some hashes.
type set[V any] struct {
	tags   [ways]atomic.Uint32   // 32 bits of the hash of the entry in each slot
	ghosts [ghosts]atomic.Uint32 // tags of values that were decoded and not remembered
	slots  [ways]atomic.Pointer[Entry[V]]
}

// Entry is a remembered value.
type Entry[V any] struct {
	encoded string
	value   V
	reads   atomic.Uint32 // up to mostReads; inexact, as hits do not wait for one another
	gone    bool          // from the table; guarded by its mu
	place   atomic.Pointer[place[V]]
}

// New returns a table for the values of decode, which holds at most maxEntries of them, whose
// encodings have at most maxBytes in total.
func New[V any](decode func(data []byte) (V, error), maxEntries, maxBytes int) *Table[V] {
	return &Table[V]{
		decode:     decode,
		Hash:       xxhash.Sum64,
		sets:       make([]set[V], (maxEntries-1)/(ways/spare)+1),
		places:     make([][2]atomic.Pointer[place[V]], pairsPerEntry*maxEntries),
		maxEntries: int64(maxEntries),
		maxBytes:   int64(maxBytes),
	}
}

// Decode returns the value whose encoding is data: the remembered one, or the result of the
// codec, which it remembers if there is room, or if the value is decoded for the second time and
// other values are read less. e is the remembered value, if it was.
func (t *Table[V]) Decode(data []byte) (v V, e *Entry[V], err error) {
	h := t.Hash(data)
	s, tag := t.set(h), uint32(h)
	if e := find(s, tag, data); e != nil {
		return t.Hit(e), e, nil
	}
	t.lookups.Here().Misses.Add(1)
	if !t.admits(s, tag, len(data)) {
		v, err = t.decode(data)
		return v, nil, err
	}
	e = &Entry[V]{encoded: string(data)} // before the codec may change data
	if v, err = t.decode(data); err == nil {
		e.value = v
		t.remember(s, tag, e)
	}
	return v, nil, err
}

// Hit counts a hit on a remembered value, and returns the value.
func (t *Table[V]) Hit(e *Entry[V]) V {
	t.lookups.Here().Hits.Add(1)
	if reads := e.reads.Load(); reads < mostReads { // a hot entry's cache line stays shared
		e.reads.Store(reads + 1)
	}
	return e.value
}

// Stats are figures of a table.
type Stats struct {
	Lookups, Misses uint64
	Entries, Bytes  int64
}

// Stats returns the figures so far. It takes no lock, so they may be of slightly different moments.
func (t *Table[V]) Stats() Stats {
	n := t.lookups.Sum()
	return Stats{n.Lookups, n.Misses, t.entries.Load(), t.bytes.Load()}
}

// set returns the set of an encoding by its hash.
func (t *Table[V]) set(h uint64) *set[V] {
	n, _ := bits.Mul64(h, uint64(len(t.sets)))
	return &t.sets[n]
}

// find returns the entry of an encoding, or nil. A tag may be older or newer than its entry: only
// the comparison of the bytes is conclusive.
func find[V any, B []byte | string](s *set[V], tag uint32, data B) *Entry[V] {
	for i := range s.tags {
		if s.tags[i].Load() != tag {
			continue
		}
		if e := s.slots[i].Load(); e != nil && e.encoded == string(data) {
			return e
		}
	}
	return nil
}

// admits reports whether to remember a value that was not found. If that evicts others, the value
// must have been decoded before: values that are read once would replace those read often.
func (t *Table[V]) admits(s *set[V], tag uint32, size int) bool {
	if int64(size) > t.maxBytes>>sizeShift {
		return false
	}
	if _, free := s.free(); free && t.hasRoom(int64(size)) {
		return true
	}
	for i := range s.ghosts {
		if s.ghosts[i].Load() == tag {
			return true
		}
	}
	s.ghosts[rand.IntN(ghosts)].Store(tag) // at random: in order, some loops would always miss
	return false
}

// remember puts e into the set. It does nothing if another goroutine has the lock: a value that is
// read often is decoded again, and no caller waits.
func (t *Table[V]) remember(s *set[V], tag uint32, e *Entry[V]) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if find(s, tag, e.encoded) != nil {
		return // another goroutine decoded it too
	}
	for passed := 0; !t.hasRoom(int64(len(e.encoded))); passed++ {
		if passed == mostPassed {
			return
		}
		t.pass(&t.sets[t.hand/ways], t.hand%ways)
		t.hand = (t.hand + 1) % (ways * len(t.sets))
	}
	if i, ok := t.slot(s); ok {
		t.put(s, i, e)
		s.tags[i].Store(tag)
	}
}

// hasRoom reports whether a value of that size can be added without evicting another.
func (t *Table[V]) hasRoom(size int64) bool {
	return t.entries.Load() < t.maxEntries && t.bytes.Load()+size <= t.maxBytes
}

// free returns an empty slot, if there is one.
func (s *set[V]) free() (slot int, ok bool) {
	for i := range s.slots {
		if s.slots[i].Load() == nil {
			return i, true
		}
	}
	return 0, false
}

// slot returns an empty slot of s. If there is none, it passes the slots of s, from a random one
// on, until one is. It fails if all entries are read again meanwhile.
func (t *Table[V]) slot(s *set[V]) (slot int, ok bool) {
	if slot, ok = s.free(); ok {
		return slot, true
	}
	first := rand.IntN(ways)
	for n := range (mostReads + 1) * ways {
		if slot = (first + n) % ways; t.pass(s, slot) {
			return slot, true
		}
	}
	return 0, false
}

// pass takes a read from the entry of a slot, or evicts it if it has none left. It reports whether
// the slot is empty then.
func (t *Table[V]) pass(s *set[V], slot int) bool {
	e := s.slots[slot].Load()
	if e == nil {
		return true
	}
	if reads := e.reads.Load(); reads > 0 {
		e.reads.Store(reads - 1)
		return false
	}
	t.put(s, slot, nil)
	return true
}

// put replaces the entry of a slot; nil empties it.
func (t *Table[V]) put(s *set[V], slot int, e *Entry[V]) {
	entries, size := int64(0), int64(0)
	if e != nil {
		entries, size = 1, int64(len(e.encoded))
	}
	if old := s.slots[slot].Swap(e); old != nil {
		old.gone = true
		t.unbind(old)
		entries, size = entries-1, size-int64(len(old.encoded))
	}
	t.entries.Add(entries)
	t.bytes.Add(size)
}
