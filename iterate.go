package ringcache

import (
	"iter"
	"slices"

	"github.com/ringcache/ringcache/internal/store"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
)

// How a loop goes over the entries of a cache.
//
// The hash of an entry never changes, and the homes of an index are in hash order. So a
// bucket is walked by a cursor, the hash bits that slots remember: a step takes the keys
// of the next few homes, and lets go of the lock. Moves of records between rings, or of
// the index to another geometry, do not move an entry to the other side of the cursor.

// A step ends with the home, or where it must with the hash, at which it has one of
// these, or StepBytes of keys.
const (
	stepHomes = 256
	stepKeys  = 256
)

// hashesEnd is the cursor behind all hashes.
const hashesEnd = 1 << index.HashBits

// All returns an iterator over the entries of the cache, in no particular order. Key and value are
// buffers of the loop, valid and the caller's to change until the next iteration: clone what is to
// be kept.
//
//	for key, value := range cache.All() {
//		// ...
//	}
//
// An entry that is there from the beginning of the loop to its end, and is not set again
// meanwhile, is seen exactly once; one that comes or goes meanwhile may be seen or not. One
// that is set again is seen once too, unless the old or the new value is large (above 1/4096
// of MaxBytes) and the other is not: it may then be seen twice, or not at all.
//
// The body may call all methods of the cache. Writers of a bucket wait only while
// the next 256 keys or 64 KB of keys are copied. A loop allocates its buffers. It does not
// count as lookups in [Stats], and does not make an entry stay longer. On a closed cache it
// ends at once.
func (c *Cache) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		mustBeFunc("All", yield != nil)
		c.loop(everyKey, withValue, yield)
	}
}

// Keys is [Cache.All] without the values, which it does not copy. Each key is valid until the next
// iteration: clone it to keep it. (slices.Collect would keep buffers that were used again.)
func (c *Cache) Keys() iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		mustBeFunc("Keys", yield != nil)
		c.loop(everyKey, 0, func(key, _ []byte) bool { return yield(key) })
	}
}

func everyKey([]byte) bool { return true }

// loop calls fn with the entries whose keys are ours, until fn returns false. Both may
// call all methods of the cache. The mode says whether fn gets the values.
func (c *Cache) loop(
	ours func(key []byte) bool, mode lookupMode, fn func(key, value []byte) bool,
) {
	var value []byte
	c.walk(func(key []byte) bool {
		if !ours(key) {
			return true
		}
		var got outcome
		if value, _, got = c.lookup(value[:0], key, c.shared.Hash(key), mode); got != hit {
			return true // it has gone since its step began
		}
		return fn(key, value)
	})
}

// walk calls fn with every key, with no lock held, until fn returns false.
func (c *Cache) walk(fn func(key []byte) bool) {
	var s step
	for i := range c.shared.Buckets + store.LargeBuckets {
		b := c.nth(i)
		for at := uint64(0); at < hashesEnd; {
			at = s.take(b, at)
			from := 0
			for _, end := range s.ends {
				if !fn(s.keys[from:end:end]) {
					return
				}
				from = end
			}
		}
	}
}

// step is the keys that a walk takes from a bucket at once.
type step struct {
	slots []uint64
	keys  []byte // one behind the other
	ends  []int  // where each ends
}

// take copies the next keys of b, from cursor at on, and returns the cursor
// behind them.
func (s *step) take(b *bucket, at uint64) uint64 {
	s.slots, s.keys, s.ends = s.slots[:0], s.keys[:0], s.ends[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Index.Pages() == 0 {
		return hashesEnd
	}
	for n := 0; n < stepHomes && len(s.slots) < stepKeys && at < hashesEnd; n++ {
		s.slots, at = b.Index.TakeHome(s.slots, at, b.Windows())
	}
	slices.Sort(s.slots) // by hash, as that is what a slot begins with
	s.slots = slices.Compact(s.slots)
	for _, slot := range s.slots {
		b.Ring(index.Ring(slot)).Prefetch(index.Pos(slot))
	}
	for i, slot := range s.slots {
		hash := index.HashOf(slot)
		if len(s.keys) >= store.StepBytes && hash != index.HashOf(s.slots[i-1]) {
			return hash
		}
		r, pos := b.Ring(index.Ring(slot)), index.Pos(slot)
		hd, ok := r.Header(pos)
		if ok && hd.Kind != record.Internal && !b.Shared.Expired(hd.Expiry) {
			s.keys, _ = r.Read(s.keys, pos+uint64(hd.Size), hd.KeyLen)
			s.ends = append(s.ends, len(s.keys))
		}
	}
	return at
}
