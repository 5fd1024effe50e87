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
	ways      = 16 // entries in a set
	mostReads = 3  // hits that an entry counts
	agesOneIn = 4  // one in so many replacements takes a read from each entry of a set
	sizeShift = 4  // log2 of the part of maxBytes that one value may have
	mostSwept = 16 // sets that one value may sweep for its bytes
)

// Table remembers the values that a codec has decoded. All methods are safe for concurrent use.
//
// Entries are kept in sets of 16, and a value's hash determines its set. Lookups read the sets
// without a lock. Only the holder of mu replaces entries, which are immutable except for reads.
type Table[V any] struct {
	decode   func(data []byte) (V, error)
	hash     func(data []byte) uint64
	sets     []set[V]
	places   [][2]atomic.Pointer[place[V]]
	maxBytes int64
	lookups  stripe.Counters

	mu      sync.Mutex
	hand    int          // the next set to sweep
	entries atomic.Int64 // written under mu, as is bytes
	bytes   atomic.Int64 // at most maxBytes
}

// set is the entries and the ghosts of the encodings with some hashes.
type set[V any] struct {
	tags   [ways]atomic.Uint32 // 32 bits of the hash of the entry in each slot
	ghosts [ways]atomic.Uint32 // tags of values that were decoded and not remembered
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

// New returns a table for the values of decode, which holds at most maxEntries of them, rounded up
// to a multiple of 16, whose encodings have at most maxBytes in total.
func New[V any](decode func(data []byte) (V, error), maxEntries, maxBytes int) *Table[V] {
	sets := (maxEntries-1)/ways + 1
	return &Table[V]{
		decode:   decode,
		hash:     xxhash.Sum64,
		sets:     make([]set[V], sets),
		places:   make([][2]atomic.Pointer[place[V]], pairsPerEntry*ways*sets),
		maxBytes: int64(maxBytes),
	}
}

// SetHash replaces the hash function of encodings. It must be called before the first Decode.
func (t *Table[V]) SetHash(hash func(data []byte) uint64) { t.hash = hash }

// Decode returns the value whose encoding is data: the remembered one, or the result of the
// codec, which it remembers if there is room, or if the value is decoded for the second time and
// other values are read less. e is the remembered value, if it was.
func (t *Table[V]) Decode(data []byte) (v V, e *Entry[V], err error) {
	h := t.hash(data)
	s, tag := t.set(h), uint32(h)
	if e := s.find(tag, data); e != nil {
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

// find returns the entry of data, or nil. A tag may be older or newer than its entry: only the
// comparison of the bytes is conclusive.
func (s *set[V]) find(tag uint32, data []byte) *Entry[V] {
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
	if t.bytes.Load()+int64(size) <= t.maxBytes {
		for i := range s.slots {
			if s.slots[i].Load() == nil {
				return true
			}
		}
	}
	for i := range s.ghosts {
		if s.ghosts[i].Load() == tag {
			return true
		}
	}
	s.ghosts[rand.IntN(ways)].Store(tag) // at random: in order, some loops would always miss
	return false
}

// remember puts e into the set. It does nothing if another goroutine has the lock: a value that is
// read often is decoded again, and no caller waits.
func (t *Table[V]) remember(s *set[V], tag uint32, e *Entry[V]) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	size := int64(len(e.encoded))
	for swept := 0; t.bytes.Load()+size > t.maxBytes; swept++ {
		if swept == mostSwept {
			return
		}
		t.sweep()
	}
	if i, ok := s.place(e.encoded); ok {
		t.put(s, i, e)
		s.tags[i].Store(tag)
	}
}

// sweep evicts the entries of the next set that were not read since its last sweep.
func (t *Table[V]) sweep() {
	s := &t.sets[t.hand]
	t.hand = (t.hand + 1) % len(t.sets)
	for i := range s.slots {
		switch e := s.slots[i].Load(); {
		case e == nil:
		case e.reads.Load() == 0:
			t.put(s, i, nil)
		default:
			e.age(1)
		}
	}
}

// place returns an empty slot, or else that of the entry with the fewest reads, and whether encoded
// is missing from the set. The other entries lose as many reads, and at least one: otherwise
// entries that are no longer read would stay, and new ones would only replace each other.
func (s *set[V]) place(encoded string) (slot int, missing bool) {
	const empty = -1
	least, first := mostReads+1, rand.IntN(ways) // no slot is always the first of equals
	for n := range s.slots {
		i, reads := (first+n)%ways, empty
		if e := s.slots[i].Load(); e != nil {
			if e.encoded == encoded {
				return 0, false
			}
			reads = int(e.reads.Load())
		}
		if reads < least {
			slot, least = i, reads
		}
	}
	if least == 0 && rand.IntN(agesOneIn) == 0 {
		least = 1
	}
	if least > 0 {
		for i := range s.slots {
			s.slots[i].Load().age(uint32(least))
		}
	}
	return slot, true
}

// age takes reads from an entry.
func (e *Entry[V]) age(by uint32) {
	reads := e.reads.Load()
	e.reads.Store(reads - min(reads, by))
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
