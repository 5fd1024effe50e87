package ringcache

import (
	"iter"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// Set stores value v under key k, in place of an older value of k. The cache keeps copies: k
// and v may be changed as soon as Set returns. After a Set that returned nil, a Get of k
// finds v until k is set again, expires, or is evicted because room is needed.
//
// A key may have up to 65,535 bytes, a value up to a sixteenth of the cache's bound, and 4 GB;
// beyond that Set returns [ErrTooLarge]. After Close it returns [ErrClosed]. Where the operating
// system refuses memory, entries are dropped within what the cache has; only where that is
// nothing, or less than twice the entry, Set returns [ErrNoMemory]. Whatever the error, no Get of
// this cache finds an older value of k, so callers that can do without the entry may ignore it.
// Only with [ErrClosed] does the older value stay in [Options].File, for the next cache there.
//
// Set does not allocate on the Go heap, but for a few bytes when a bucket's tables grow. It
// locks one bucket, of 512 or fewer.
func (c *Cache) Set(k, v []byte) error {
	var w write
	w.Key, w.Value = k, v
	c.setDefaults(&w)
	return c.apply(&w, "set")
}

// Get appends the value of k to dst and returns the extended slice; dst as it is if k is not
// there, so nil for a nil dst. The bytes belong to the caller. On a miss, the spare capacity of
// dst may have been overwritten. k may lie in it. [Cache.HasGet] tells an empty value from a
// miss.
//
// Get does not allocate if dst has room for the value. It takes a lock only if others keep
// writing to the same bucket, if k may be a large entry, if it starts the idle time of the entry
// anew ([Options].ExpireAfterAccess), or if the entry is in the cold part ([Options].Compressor): a
// Get from there may evict others.
func (c *Cache) Get(dst, k []byte) []byte {
	out, _, _ := c.lookup(dst, k, unhashed, getMode)
	return out
}

// HasGet is [Cache.Get] that also reports whether k was there.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	out, _, got := c.lookup(dst, k, unhashed, getMode)
	return out, got == hit
}

// Has reports whether k is there. It counts as a lookup in [Stats] and as a read of the entry, does
// not allocate, and locks what Get locks.
func (c *Cache) Has(k []byte) bool {
	_, _, got := c.lookup(nil, k, unhashed, counted|reading)
	return got == hit
}

// Peek is [Cache.HasGet] that leaves no trace: it does not count as a lookup in
// [Stats] nor with the policy, so it changes neither hit ratios nor what is evicted next, and it
// does not start an idle time anew ([Options].ExpireAfterAccess). Use it in tests, debug pages and
// copies of a cache. It allocates and locks what Get does.
func (c *Cache) Peek(dst, k []byte) ([]byte, bool) {
	out, _, got := c.lookup(dst, k, unhashed, withValue)
	return out, got == hit
}

// HasGetUncounted is [Cache.HasGet] that does not count as a lookup in [Stats]. Unlike
// [Cache.Peek], it makes the entry stay longer. It is for what takes several entries to answer
// one question: count the first one, and the hit ratio is that of the questions.
func (c *Cache) HasGetUncounted(dst, k []byte) ([]byte, bool) {
	out, _, got := c.lookup(dst, k, unhashed, withValue|reading)
	return out, got == hit
}

// View calls fn with the value of k and reports whether k was there; on a miss fn is not
// called. v is a buffer that later Views use again: it is valid, and fn's to change, until fn
// returns. No lock is held while fn runs. View does not allocate but
// for a larger buffer now and then, and locks what Get locks.
func (c *Cache) View(k []byte, fn func(v []byte)) bool {
	mustBeFunc("View", fn != nil)
	s := scratch.Get()
	defer s.Release()
	v, ok := c.HasGet(s.Bytes[:0], k)
	if ok {
		s.Bytes = v
		fn(v[:len(v):len(v)])
	}
	return ok
}

// Del removes k and reports whether it was there. It does not allocate and locks one bucket.
// After Close it returns false, and cannot remove k from [Options].File: the next cache there
// finds it.
func (c *Cache) Del(k []byte) bool {
	var w write
	w.Key, w.Hash, w.del, w.Reason = k, c.shared.Hash(k), true, store.Deleted
	found, _ := c.remove(&w, nil)
	return found
}

// Reset removes all entries. The cache keeps its memory for new ones (see [Cache.Close] for
// giving it back), and counters in [Stats] go on. Buckets are emptied one after another: an
// entry that is set meanwhile may or may not stay, and so may one that Touch writes again.
// With [Options].OnRemove, a bucket is emptied in steps of 64 KB or 256 entries, and OnRemove
// called between them.
func (c *Cache) Reset() {
	// Touch may write a record again, and move it between the small buckets and
	// the large ones: an old one must not slip through to where Reset has been.
	for i := range c.arena.buckets {
		c.resetBucket(&c.arena.buckets[i])
	}
	c.each(c.resetBucket) // the large ones last
}

// resetBucket removes the entries of one bucket.
func (c *Cache) resetBucket(b *bucket) {
	b.mu.Lock()
	s := b.Sizes()
	b.mu.Unlock()
	left := s.LiveBytes + s.DeadBytes
	for done := false; !done; {
		done = c.resetStep(b, &left)
	}
}

// resetStep removes some of the entries of a bucket, and reports whether all are
// gone. Once it has removed as many bytes as left says, it removes the rest at once, so
// that it ends although others, such as OnRemove, keep setting entries.
func (c *Cache) resetStep(b *bucket, left *int) (done bool) {
	var w write
	defer c.notify(&w)
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	if b.Large {
		defer c.updateQuotas(b)
	}
	b.lock()
	defer b.unlockFor(&w)
	if done = b.Closed || b.DropStep(left); done && !b.Closed {
		b.emptyLocked()
	}
	return done
}

// Len returns the number of entries, as [Stats].EntriesCount: expired and negative ones that
// have not been removed yet count. It takes every bucket's lock for a moment, one after another,
// so entries that come or go meanwhile may or may not be counted.
func (c *Cache) Len() int {
	n := 0
	c.each(func(b *bucket) {
		b.mu.Lock()
		n += b.Sizes().Entries
		b.mu.Unlock()
	})
	return n
}

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
// that is set again is seen once too, unless the old or the new value is large (see the
// section Caveats of the package) and the other is not: it may then be seen twice, or not at all.
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
	var s store.Keys
	for i := range c.shared.Buckets + store.LargeBuckets {
		b := c.nth(i)
		for at := uint64(0); at < store.HashesEnd; {
			b.mu.Lock()
			at = s.Next(&b.Store, at)
			b.mu.Unlock()
			from := 0
			for _, end := range s.Ends {
				if !fn(s.Bytes[from:end:end]) {
					return
				}
				from = end
			}
		}
	}
}
