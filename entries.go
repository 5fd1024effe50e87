package ringcache

import (
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/store"
)

// Set stores value v under key k, replacing an older value of k. The cache keeps copies: k and v
// may be modified as soon as Set returns. After a Set that returned nil, a Get of k finds v until k
// is set again or deleted, expires, or is evicted to make room.
//
// If the key is longer than 65,535 bytes, or the value longer than 1/16 of the cache's bound or 4
// GB, Set returns ErrTooLarge; if the operating system provides hardly any memory, ErrNoMemory.
// After an error, an older value of k is gone, so you may ignore the error if you can do without
// the entry. Set hardly ever allocates on the Go heap. It locks one bucket.
func (c *Cache) Set(k, v []byte) error { return c.setFor(k, v, byOptions) }

// Get appends the value of k to dst and returns the extended slice. On a miss it returns dst
// unchanged, but the spare capacity of dst may have been overwritten. The bytes belong to the
// caller. k may alias dst's spare capacity. [Cache.HasGet] distinguishes an empty value from a
// miss.
//
// Get does not allocate if dst has room for the value, and normally takes no lock (see Concurrency
// in the package documentation).
func (c *Cache) Get(dst, k []byte) []byte {
	out, _ := c.HasGet(dst, k)
	return out
}

// HasGet is like [Cache.Get], and also reports whether k was present.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	if c.space == nil { // without the room for a longer key, which costs time
		h := c.shared.Mix(xxhash.Sum64(k))
		out, _, got := c.lookup(dst, k, h, getMode)
		return out, got == hit
	}
	var room [stackKey]byte
	k, h := c.key(room[:0], k)
	out, _, got := c.lookup(dst, k, h, getMode)
	return out, c.looked(got == hit)
}

// Has reports whether k is present. It counts as a lookup in [Stats] and as a read of the entry,
// does not allocate, and takes the same locks as Get.
func (c *Cache) Has(k []byte) bool {
	var room [stackKey]byte
	k, h := c.key(room[:0], k)
	_, _, got := c.lookup(nil, k, h, counted|reading)
	return c.looked(got == hit)
}

// Peek is like [Cache.HasGet], but counts neither in [Stats] nor for the eviction policy, and does
// not restart an idle time ([Options].ExpireAfterAccess). Use it in tests and debug pages, and to
// copy a cache. It allocates and locks like Get.
func (c *Cache) Peek(dst, k []byte) ([]byte, bool) {
	var room [stackKey]byte
	k, h := c.key(room[:0], k)
	out, _, got := c.lookup(dst, k, h, withValue)
	return out, got == hit
}

// Del removes k and reports whether it was present. It does not allocate and locks one bucket.
// After Close it returns false, and [Options].File keeps k.
func (c *Cache) Del(k []byte) bool {
	var room [stackKey]byte
	var w write
	w.Key, w.Hash = c.key(room[:0], k)
	w.Kind = c.kind()
	w.del, w.Reason = true, store.Deleted
	c.removed()
	found, _ := c.remove(&w, nil)
	return found
}

// resetBucket removes the entries of one bucket.
func (c *engine) resetBucket(b *bucket) {
	var left int
	b.look(func(b *store.Store) { left = b.Sizes().LiveBytes + b.Sizes().DeadBytes })
	for done := false; !done; {
		done = c.resetStep(b, &left)
	}
}

// resetStep removes some of the entries of a bucket, and reports whether all are gone. Once it has
// removed as many bytes as left says, it removes the rest at once, so that it ends even if other
// goroutines, or OnRemove, keep setting entries.
func (c *engine) resetStep(b *bucket, left *int) (done bool) {
	var w write
	defer c.notify(&w)
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	b.lock()
	defer b.unlockFor(&w)
	if done = b.Closed || b.DropStep(left); done && !b.Closed {
		b.calls.InvalidateAll()
		b.Reset() // without OnRemove
	}
	return done
}

// Len returns the number of entries, including expired and negative ones that have not been removed
// yet. For the whole cache, Len leaves out entries in namespaces, and locks every bucket briefly:
// entries that are added or removed concurrently may or may not be counted.
func (c *Cache) Len() int {
	if c.space != nil {
		n, _ := c.space.size(c.engine)
		return n
	}
	n := 0
	c.each(func(b *bucket) {
		b.look(func(s *store.Store) { n += s.Sizes().Entries })
	})
	return max(n-c.shared.Generations.Entries(), 0)
}

// All returns an iterator over the entries of the cache, in no particular order. Key and value are
// buffers of the loop, which the body may modify: clone them to keep them beyond the iteration.
//
// An entry that is present for the whole loop is seen exactly once, unless it is set again with a
// value of another kind, large or not (see Caveats in the package documentation); an entry added or
// removed during the loop may or may not be seen. The body may call all methods of the cache. A
// loop counts neither in [Stats] nor as reads for the eviction policy.
func (c *Cache) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		mustBeFunc("All", yield != nil)
		c.loop(nil, withValue, yield)
	}
}

// Keys is [Cache.All] without the values. Each key is valid until the next iteration, so clone it
// to keep it. (slices.Collect would return the same buffer several times.)
func (c *Cache) Keys() iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		mustBeFunc("Keys", yield != nil)
		c.loop(nil, 0, func(key, _ []byte) bool { return yield(key) })
	}
}

// loop calls fn with the entries of the cache whose keys satisfy ours, until fn returns false. nil
// means all. Both functions get keys as users know them, and may call all methods of the cache. The
// mode determines whether fn gets the values.
func (c *Cache) loop(
	ours func(key []byte) bool, mode lookupMode, fn func(key, value []byte) bool,
) {
	var value []byte
	start := len(c.start(nil))
	c.walk(func(raw []byte) bool {
		if ours != nil && !ours(raw[start:]) {
			return true
		}
		var got outcome
		h := c.shared.HashOf(raw, c.kind())
		if value, _, got = c.lookup(value[:0], raw, h, mode); got != hit {
			return true // removed since its step began
		}
		return fn(raw[start:], value)
	})
}

// walk calls fn with every key of the engine that is one of the cache's, with no lock held, until
// fn returns false or the namespace is reset.
func (c *Cache) walk(fn func(raw []byte) bool) {
	var s store.Keys
	if c.space != nil {
		s.Of = c.space.generation.Load()
	}
	for i := range c.shared.Buckets + store.LargeBuckets {
		b := c.nth(i)
		for at := uint64(0); at < store.HashesEnd; {
			b.look(func(b *store.Store) { at = s.Next(b, at) })
			from := 0
			for _, end := range s.Ends {
				if c.space != nil && c.space.generation.Load() != s.Of || !fn(s.Bytes[from:end:end]) {
					return
				}
				from = end
			}
		}
	}
}
