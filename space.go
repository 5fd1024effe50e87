package ringcache

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// How one cache serves as several. A Cache is an engine, and a namespace or none. Its methods
// resolve a key once: those of a namespace put its generation in front of it, and the record says
// so, and has another hash. From there on, both are the engine's. What a Cache counts itself is the
// calls in a namespace.

// space is a namespace. It does not refer to the cache.
type space struct {
	name       string
	generation atomic.Uint64
	counters   atomic.Pointer[stripe.Counters] // nil: nothing was counted yet
	dropped    atomic.Bool

	mu    sync.Mutex            // guards the record, and changes of the generation
	entry []byte                // key of the record
	value [generation.Size]byte // its value when it was last stored
}

// stackKey is the greatest length of a key that is built on the stack.
const stackKey = 128

// start appends the beginning of every key of the cache, which is valid until the next Reset.
func (c *Cache) start(dst []byte) []byte {
	if c.space == nil {
		return dst
	}
	return binary.LittleEndian.AppendUint64(dst, c.space.generation.Load())
}

// startLen returns the length of what start appends.
func (c *Cache) startLen() int {
	if c.space == nil {
		return 0
	}
	return generation.Size
}

// kind returns the kind of the records of values.
func (c *Cache) kind() record.Kind {
	if c.space == nil {
		return record.Value
	}
	return record.Spaced
}

// key returns the engine's key for k, which is k itself or built in room, and its hash. (If it set
// them in a write, the compiler would have room on the heap.)
func (c *Cache) key(room, k []byte) (raw []byte, h uint64) {
	if c.space == nil {
		return k, c.shared.Mix(xxhash.Sum64(k)) // Hash, which the compiler would not inline
	}
	raw = append(c.start(room), k...)
	return raw, c.shared.HashOf(raw, record.Spaced)
}

// writeOf returns the write of value v under key k, or the removal of k. (Set does not use it,
// because the compiler would copy the result.)
func (c *Cache) writeOf(room, k, v []byte, why store.Reason) (w write) {
	w.Key, w.Hash = c.key(room, k)
	w.Value, w.Kind, w.Reason = v, c.kind(), why
	return w
}

// renewKey gives the key of a write, whose generation was forgotten, the present one. It reports
// false if the namespace was dropped.
func (c *Cache) renewKey(w *write) bool {
	if c.space.dropped.Load() {
		return false
	}
	c.start(w.Key[:0])
	w.Hash = c.shared.HashOf(w.Key, record.Spaced)
	return true
}

// counts returns the counters. There may be many namespaces that nobody uses, so they are made on
// first use.
func (s *space) counts() *stripe.Counters {
	if s.counters.Load() == nil {
		s.counters.CompareAndSwap(nil, new(stripe.Counters))
	}
	return s.counters.Load()
}

// looked counts a lookup in a namespace, and returns ok.
func (c *Cache) looked(ok bool) bool {
	hits := 0
	if ok {
		hits = 1
	}
	c.lookedFor(1, hits)
	return ok
}

// lookedFor counts the lookups of a batch in a namespace.
func (c *Cache) lookedFor(keys, hits int) {
	if c.space != nil {
		n := c.space.counts().Here()
		n.Hits.Add(uint64(hits))
		n.Misses.Add(uint64(keys - hits))
	}
}

// wrote counts Sets in a namespace.
func (c *Cache) wrote(sets int) {
	if c.space != nil {
		c.space.counts().Here().Sets.Add(uint64(sets))
	}
}

// removed counts a Del in a namespace.
func (c *Cache) removed() {
	if c.space != nil {
		c.space.counts().Here().Dels.Add(1)
	}
}

// size returns the number of entries of a namespace, and the bytes of their records.
func (s *space) size(c *engine) (entries, bytes int) {
	u := c.shared.Generations.Of(s.generation.Load())
	if u == nil {
		return 0, 0 // it was dropped
	}
	return int(max(u.Entries.Load(), 0)), int(max(u.Bytes.Load(), 0))
}
