package ringcache

import (
	"iter"

	"github.com/ringcache/ringcache/internal/store"
)

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
	var s store.Keys
	for i := range c.shared.Buckets + store.LargeBuckets {
		b := c.nth(i)
		for at := uint64(0); at < store.HashesEnd; {
			b.mu.Lock()
			at = b.NextKeys(&s, at)
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
