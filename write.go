package ringcache

import (
	"fmt"
)

// write is one change to one key on its way through the cache: a Set, on a
// condition or not, or a removal. It is passed by pointer and stays on the
// caller's stack.
type write struct {
	k, v   []byte
	h      uint64 // hash of k
	n      int    // bytes of the record
	expiry uint32 // tick, 0: never
}

// newWrite returns the write of a value that expires when Options say so.
func (c *Cache) newWrite(k, v []byte) write {
	w := write{k: k, v: v, h: c.shared.hash(k)}
	if c.shared.ttl != 0 {
		w.expiry = c.shared.expiry(c.shared.ttl)
	}
	return w
}

// apply stores a record.
func (c *Cache) apply(w *write) error {
	b := c.bucket(w.h)
	if len(w.k) > maxKey || len(w.v) > c.maxValue {
		return c.refuse(b, w)
	}
	b.index.prefetch(w.h)
	w.n = len(w.k) + len(w.v)
	if w.expiry != 0 {
		w.n += timedHeaderSize(len(w.k), len(w.v))
	} else {
		w.n += headerSize(len(w.k), len(w.v))
	}
	var err error
	if c.isLarge(w.n) {
		err = c.setLarge(b, w)
	} else {
		err = c.setSmall(b, w)
	}
	if err != nil {
		return fmt.Errorf("ringcache: set entry of %d + %d bytes: %w", len(w.k), len(w.v), err)
	}
	return nil
}

// setSmall stores a record in its small bucket.
func (c *Cache) setSmall(b *bucket, w *write) error {
	if c.shared.flow.held.Load() > 0 && b.short(w.n) {
		c.lend(w.n)
	}
	flowed, err := c.setInBucket(b, w)
	if flowed.bytes > 0 {
		c.flowed(flowed)
	}
	return err
}

// setInBucket stores a record and returns what the bucket has taken in since it
// last said so, if that is a chunk or more.
func (c *Cache) setInBucket(b *bucket, w *write) (flowed tally, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sets++
	if b.closed {
		return tally{}, ErrClosed
	}
	c.delStrayLocked(w)
	if err := b.setLocked(w); err != nil {
		return tally{}, err
	}
	return b.reportLocked(w.n), nil
}

// refuse removes the older value of an entry that is too large.
func (c *Cache) refuse(b *bucket, w *write) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sets++
	if b.closed {
		return fmt.Errorf("ringcache: set entry: %w", ErrClosed)
	}
	if len(w.k) > maxKey { // no older value can be there
		return fmt.Errorf("ringcache: set entry: key of %d bytes, at most %d: %w", len(w.k), maxKey, ErrTooLarge)
	}
	c.removeLocked(b, w)
	return fmt.Errorf("ringcache: set entry: value of %d bytes, at most %d: %w", len(w.v), c.maxValue, ErrTooLarge)
}

// removeLocked removes the key and reports whether it was there. The lock of
// its small bucket is held.
func (c *Cache) removeLocked(b *bucket, w *write) bool {
	// Never both: a key lives in one place.
	return b.delLocked(w) || c.delStrayLocked(w)
}

// delStrayLocked removes the key from the large buckets and reports whether it
// was there. The lock of its small bucket is held.
func (c *Cache) delStrayLocked(w *write) bool {
	if c.shared.strays(w.h).Load() == 0 {
		return false
	}
	lb := c.largeBucket(w.h)
	lb.mu.Lock()
	defer lb.mu.Unlock()
	return lb.delLocked(w)
}
