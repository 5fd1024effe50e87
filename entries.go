package ringcache

import (
	"iter"
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// Set stores value v under key k, replacing an older value of k. The cache keeps copies: k and v
// may be modified as soon as Set returns. After a Set that returned nil, a Get of k finds v until
// it is replaced, removed, expired or evicted, or the cache is closed.
//
// The error may be ErrTooLarge, for a key longer than 65,535 bytes or a value longer than 1/16 of
// MaxBytes or 4 GB; ErrNoMemory, if there is no memory for the entry; or ErrClosed. After an error,
// k is absent, so you may ignore the error if you can do without the entry. Set normally allocates
// on the Go heap only to grow tables and buffers, for [Options].OnRemove, or for long keys in
// namespaces.
func (c *Cache) Set(k, v []byte) error { return c.setFor(k, v, byOptions) }

// SetWithTTL is [Cache.Set] with a TTL for this entry, which takes precedence over [Options].TTL; 0
// means none. For TTLs that are negative, below 100 ms (ErrTTLTooShort) or very long, see Times to
// live in the package documentation.
//
// On Linux and macOS, time during which the machine sleeps counts too; on the BSDs it may not. An
// expired entry keeps its memory, and is included in [Cache.Len], until it is reclaimed: see
// [Cache.DeleteExpired].
func (c *Cache) SetWithTTL(k, v []byte, ttl time.Duration) error {
	return c.setFor(k, v, withTTL(ttl))
}

// Get appends the value of k to dst and returns the extended slice. On a miss it returns dst
// unchanged, but the spare capacity of dst may have been overwritten. The bytes belong to the
// caller. k may alias dst's spare capacity. [Cache.HasGet] distinguishes an empty value from a
// miss.
//
// If dst has room for the value, Get normally neither allocates nor takes a lock (see Concurrency
// in the package documentation).
func (c *Cache) Get(dst, k []byte) []byte {
	out, _, _ := c.find(dst, k, 0, getMode|asWritten)
	return out
}

// HasGet is like [Cache.Get], and also reports whether k was present.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	out, _, got := c.find(dst, k, 0, getMode|asWritten)
	return out, got == hit
}

// Has reports whether k is present. It counts as a lookup in [Stats] and as a read of the entry,
// normally does not allocate, and locks at most like Get.
func (c *Cache) Has(k []byte) bool {
	_, _, got := c.find(nil, k, 0, counted|reading|asWritten)
	return got == hit
}

// Peek is like [Cache.HasGet], but counts neither as a lookup in [Stats] nor as a read: the
// eviction policy ignores it, and an idle time ([Options].ExpireAfterAccess) goes on. Use it in
// tests and debug pages, and to copy a cache. It allocates and locks at most like Get.
func (c *Cache) Peek(dst, k []byte) ([]byte, bool) {
	out, _, got := c.find(dst, k, 0, withValue|asWritten)
	return out, got == hit
}

// Del removes k and reports whether it was present. It normally allocates only where Set does.
// After Close it returns false, and [Options].File keeps k.
func (c *Cache) Del(k []byte) bool { return c.del(k, store.Deleted, nil) }

// Touch sets the TTL of k's entry, starting now, and reports whether k was present. With 0 the
// entry has no TTL; any other TTL below 100 ms removes it. Touch counts neither as a read nor as a
// Set. With [Options].ExpireAfterAccess it restarts the idle time.
//
// Adding an expiry may store the entry again, which may evict others; if that fails, the entry is
// lost and Touch returns false.
func (c *Cache) Touch(k []byte, ttl time.Duration) bool {
	var room [stackKey]byte
	w := c.writeOf(room[:0], k, nil, store.Deleted)
	w.counted = true
	expiry, err := c.expiryOf(withTTL(ttl))
	if err != nil {
		found, _ := c.remove(&w, nil)
		return found
	}
	for w.Last, w.life = expiry, withTTL(ttl); ; {
		found, done := c.renew(&w)
		if done {
			return found
		}
		switch err := c.rewrite(&w); err {
		case nil:
			return true
		case errUnmet: // set or evicted meanwhile
		default:
			return false
		}
	}
}

// renew writes the expiry of w into the record of its key, and reports whether the key is present.
// It reports done false if the record has no room for an expiry.
func (c *engine) renew(w *write) (found, done bool) {
	b := c.bucket(w.Hash)
	b.Index.Prefetch(w.Hash, 2)
	b.lock()
	defer b.unlock()
	if found, done = b.Touch(&w.Write); !found {
		c.inLargeLocked(w, func(lb *bucket) bool {
			found, done = lb.Touch(&w.Write)
			return found
		})
	}
	return found, done
}

// rewrite stores the current value of the key again, with the lifetime of w. It returns errUnmet if
// the key is absent or its value changes meanwhile.
func (c *Cache) rewrite(w *write) error {
	s := scratch.Get()
	defer s.Release()
	v, _, got := c.find(s.Bytes[:0], w.Key, w.Hash, withValue)
	s.Bytes = v
	if got != hit {
		return errUnmet
	}
	w.Value, w.old, w.cond, w.RewriteOnly, w.large = v, v, ifEqual, true, false
	return c.put(c.space, w, "ringcache: touch")
}

// Len returns the number of entries, including expired and negative ones that have not been removed
// yet. For the whole cache, Len leaves out entries in namespaces, and locks every bucket briefly;
// concurrent changes make it inexact.
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

// All returns an iterator over the cache's own entries, in no particular order. Key and value are
// buffers of the loop, which the body may modify: clone them to keep them beyond the iteration.
//
// An entry that is present for the whole loop is seen exactly once, unless it becomes large or
// small meanwhile (see Caveats in the package documentation). An entry added or removed during the
// loop may or may not be seen. The body may call all methods of the cache. A loop counts neither as
// lookups in [Stats] nor as reads.
func (c *Cache) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		mustBeFunc("All", yield != nil)
		c.loop(nil, withValue, yield)
	}
}

// Keys is [Cache.All] without the values. Each key is valid until the next iteration, so clone it
// to keep it. (Don't use slices.Collect.)
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
	c.walk(func(raw, key []byte) bool {
		if ours != nil && !ours(key) {
			return true
		}
		var got outcome
		h := c.shared.HashOf(raw, c.kind)
		if value, _, got = c.find(value[:0], raw, h, mode); got != hit {
			return true // removed by now, expired or negative
		}
		return fn(key, value)
	})
}

// walk calls fn with every key of the cache, in the engine's form and in the users', with no lock
// held, until fn returns false or the namespace is reset.
func (c *Cache) walk(fn func(raw, key []byte) bool) {
	var s store.Keys
	start := len(c.start(nil))
	if c.space != nil {
		s.Of = c.space.generation.Load()
	}
	for i := range c.shared.Buckets + store.LargeBuckets {
		b := c.nth(i)
		for at := uint64(0); at < store.HashesEnd; {
			b.look(func(b *store.Store) { at = s.Next(b, at) })
			from := 0
			for _, end := range s.Ends {
				raw := s.Bytes[from:end:end]
				if c.space != nil && c.space.generation.Load() != s.Of || !fn(raw, raw[start:]) {
					return
				}
				from = end
			}
		}
	}
}
