package codec

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/stripe"
)

const (
	memoWays  = 4  // entries in a set
	mostReads = 3  // hits that an entry counts
	sizeShift = 4  // log2 of the part of maxBytes that one value may have
	mostSwept = 64 // sets that one value may sweep for its bytes
)

// Memoized is a codec that remembers the values it has decoded. It is made by [Memo]; the zero
// value is not usable. All methods are safe for concurrent use.
type Memoized[V any] struct {
	// Entries are kept in sets of four, and a value's hash determines its set. Lookups read the sets
	// without a lock. Only the holder of mu replaces entries, which are immutable except for reads.

	of       Codec[V]
	hash     func(data []byte) uint64
	sets     []memoSet[V]
	maxBytes int64
	lookups  stripe.Counters

	mu      sync.Mutex
	hand    int          // the next set to sweep
	entries atomic.Int64 // written under mu, as is bytes
	bytes   atomic.Int64 // at most maxBytes
}

// memoSet is one cache line where pointers have 64 bits.
type memoSet[V any] struct {
	tags   [memoWays]atomic.Uint32 // 32 bits of the hash of the entry in each slot
	ghosts [memoWays]atomic.Uint32 // tags of values that were decoded and not remembered
	slots  [memoWays]atomic.Pointer[memoEntry[V]]
}

type memoEntry[V any] struct {
	encoded string
	value   V
	reads   atomic.Uint32 // up to mostReads; inexact, as hits do not wait for one another
}

// Memo returns a codec that encodes and decodes as c does, and remembers decoded values by their
// encoded bytes, so that a hit of a typed view need not decode. Equal bytes decode to equal values,
// so a remembered value is never outdated, whatever is written to the cache. Memo is worthwhile if
// decoding takes longer than hashing and comparing the bytes, and most lookups find one of a few
// values.
//
// Callers share the remembered values: nothing that a value refers to, such as the elements of a
// slice or map, may be modified, not even in Update. c must decode equal bytes to equal values.
//
// The codec holds at most maxEntries values, rounded up to a multiple of four, whose encodings have
// at most maxBytes in total. A value whose encoding has more than 1/16 of maxBytes is never
// remembered. All of it is on the Go heap: 8 KB and 16 bytes for each of maxEntries immediately,
// and for each remembered value a copy of the encoding and the value itself, which maxBytes does
// not count. Memo panics if c is nil, maxEntries is below 1, or maxBytes is below maxEntries, as it
// would be if the two were exchanged.
func Memo[V any](
	c interface {
		Append(dst []byte, v V) ([]byte, error)
		Decode(data []byte) (V, error)
	},
	maxEntries, maxBytes int,
) *Memoized[V] {
	if c == nil {
		panic("codec: make memo: codec is nil")
	}
	if maxEntries < 1 || maxBytes < maxEntries {
		panic("codec: make memo: maxEntries is below 1, or maxBytes below maxEntries")
	}
	return &Memoized[V]{
		of:       Func(c.Append, c.Decode),
		hash:     xxhash.Sum64,
		sets:     make([]memoSet[V], (maxEntries-1)/memoWays+1),
		maxBytes: int64(maxBytes),
	}
}

// Append appends the encoding of v to dst and returns the extended slice. It does not remember v,
// which its caller may modify.
func (m *Memoized[V]) Append(dst []byte, v V) ([]byte, error) { return m.of.Append(dst, v) }

// Decode returns the value whose encoding is data. If an earlier call has decoded the same bytes
// and the value is remembered, Decode returns that value, takes no lock and does not allocate.
// Otherwise it decodes data, and remembers the value if there is room, or if it is decoded for the
// second time and other values are read less. Remembering needs two allocations, and a lock, which
// is skipped if another call holds it. Errors are those of the codec, and are not remembered.
func (m *Memoized[V]) Decode(data []byte) (V, error) {
	h := m.hash(data)
	n, _ := bits.Mul64(h, uint64(len(m.sets)))
	s, tag := &m.sets[n], uint32(h)
	if e := s.find(tag, data); e != nil {
		m.lookups.Here().Hits.Add(1)
		if reads := e.reads.Load(); reads < mostReads { // a hot entry's cache line stays shared
			e.reads.Store(reads + 1)
		}
		return e.value, nil
	}
	m.lookups.Here().Misses.Add(1)
	if !m.admits(s, tag, len(data)) {
		return m.of.Decode(data)
	}
	e := &memoEntry[V]{encoded: string(data)} // before the codec may change data
	v, err := m.of.Decode(data)
	if err == nil {
		e.value = v
		m.remember(s, tag, e)
	}
	return v, err
}

// MemoStats are the statistics of a [Memoized] codec.
type MemoStats struct {
	Hits    uint64 // calls of Decode that found the value
	Misses  uint64 // calls of Decode that did not find it
	Entries uint64 // remembered values
	Bytes   uint64 // of their encodings, without the values themselves
}

// Stats returns the statistics since the codec was made. It takes no lock, so the figures may
// differ slightly in age. Neither views nor the cache's own statistics include them: a service must
// export them separately.
func (m *Memoized[V]) Stats() MemoStats {
	lookups, misses := m.lookups.Sum()
	return MemoStats{
		Hits:    lookups - misses,
		Misses:  misses,
		Entries: uint64(m.entries.Load()),
		Bytes:   uint64(m.bytes.Load()),
	}
}

// find returns the entry of data, or nil. A tag may be older or newer than its entry: only the
// comparison of the bytes is conclusive.
func (s *memoSet[V]) find(tag uint32, data []byte) *memoEntry[V] {
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
func (m *Memoized[V]) admits(s *memoSet[V], tag uint32, size int) bool {
	if int64(size) > m.maxBytes>>sizeShift {
		return false
	}
	if m.bytes.Load()+int64(size) <= m.maxBytes {
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
	s.ghosts[rand.IntN(memoWays)].Store(tag) // at random: in order, some loops would always miss
	return false
}

// remember puts e into the set. It does nothing if another goroutine has the lock: a value that is
// read often is decoded again, and no caller waits.
func (m *Memoized[V]) remember(s *memoSet[V], tag uint32, e *memoEntry[V]) {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	size := int64(len(e.encoded))
	for range mostSwept {
		if m.bytes.Load()+size <= m.maxBytes {
			break
		}
		m.sweep()
	}
	if m.bytes.Load()+size > m.maxBytes {
		return
	}
	if i, ok := s.place(e.encoded); ok {
		m.put(s, i, e)
		s.tags[i].Store(tag)
	}
}

// sweep evicts the entries of the next set that were not read since its last sweep.
func (m *Memoized[V]) sweep() {
	s := &m.sets[m.hand]
	m.hand = (m.hand + 1) % len(m.sets)
	for i := range s.slots {
		switch e := s.slots[i].Load(); {
		case e == nil:
		case e.reads.Load() == 0:
			m.put(s, i, nil)
		default:
			e.age(1)
		}
	}
}

// place returns an empty slot, or else that of the entry with the fewest reads, and whether encoded
// is missing from the set. The other entries lose as many reads, and at least one: otherwise
// entries that are no longer read would stay, and new ones would only replace each other.
func (s *memoSet[V]) place(encoded string) (slot int, missing bool) {
	const empty = -1
	least, first := mostReads+1, rand.IntN(memoWays) // no slot is always the first of equals
	for n := range s.slots {
		i, reads := (first+n)%memoWays, empty
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
	if least != empty {
		for i := range s.slots {
			s.slots[i].Load().age(uint32(max(least, 1)))
		}
	}
	return slot, true
}

// age takes reads from an entry.
func (e *memoEntry[V]) age(by uint32) {
	reads := e.reads.Load()
	e.reads.Store(reads - min(reads, by))
}

// put replaces the entry of a slot; nil empties it.
func (m *Memoized[V]) put(s *memoSet[V], slot int, e *memoEntry[V]) {
	entries, size := int64(0), int64(0)
	if e != nil {
		entries, size = 1, int64(len(e.encoded))
	}
	if old := s.slots[slot].Swap(e); old != nil {
		entries, size = entries-1, size-int64(len(old.encoded))
	}
	m.entries.Add(entries)
	m.bytes.Add(size)
}
