package ringcache

import (
	"fmt"
	"math"
	"time"
)

// SetWithTTL is [Cache.Set] of an entry that is there for ttl at the most: from
// then on every call misses it. A ttl of 0 means that it never expires, whatever
// [Options].TTL says; with one below 0 it has expired already, so an older
// value of k is removed and nothing is stored.
//
// The clock goes in steps of 100 ms. An entry expires on time or up to a step
// early, never late, and one with a ttl of less than a step may be gone at
// once. Times of 13 years from the cache's making on are never. What counts is
// monotonic time: an entry does not notice that a wall clock is set.
//
// An expired entry takes up memory, and is counted by [Cache.Len], until a Set
// comes across it. Sets look for expired entries of the bucket that they write
// to, and take their memory before they drop what is alive; no goroutine does.
// [Cache.DeleteExpired] removes them all at once.
//
// An expiry takes 4 bytes of the record. Ownership, limits, errors, locks and
// allocation are those of Set, and it counts as one in [Stats].
func (c *Cache) SetWithTTL(k, v []byte, ttl time.Duration) error {
	var w write
	w.k, w.v, w.h, w.reason = k, v, c.shared.hash(k), EvictReplaced
	if ttl < 0 {
		w.reason = EvictDeleted
		return c.setExpired(&w)
	}
	if ttl > 0 {
		w.expiry = c.shared.expiry(ttl)
	}
	return c.apply(&w)
}

// setExpired is the Set of an entry that has expired already.
func (c *Cache) setExpired(w *write) error {
	b := c.bucket(w.h)
	b.lock()
	err := c.beginLocked(b, w)
	if err == nil {
		c.removeLocked(b, w)
	}
	b.unlock(w)
	c.announce(w)
	if err != nil {
		return fmt.Errorf("ringcache: set entry: %w", err)
	}
	return nil
}

// Touch gives the entry of k another time to live, from now on, and reports
// whether k was there. The rules are those of [Cache.SetWithTTL]: 0 means that
// it never expires, and with a ttl below 0 it is removed. Its value and its
// standing with the policy stay.
//
// An entry that was set without an expiry has no room for one. It is written
// again, which may drop others; should the operating system refuse the memory
// for that, the entry is lost and Touch returns false. Touch does not allocate
// but for this copy now and then, locks one bucket, and counts as nothing in
// [Stats].
func (c *Cache) Touch(k []byte, ttl time.Duration) bool {
	w := write{k: k, h: c.shared.hash(k), silent: true, reason: EvictDeleted}
	if ttl < 0 {
		_, found := c.remove(&w)
		return found
	}
	if ttl > 0 {
		w.expiry = c.shared.expiry(ttl)
	}
	for {
		found, done := c.renew(&w)
		if done {
			return found
		}
		switch err := c.rewrite(&w); err {
		case nil:
			return true
		case errUnmet: // it was set or dropped meanwhile
		default:
			return false
		}
	}
}

// renew gives the entry of the key the write's expiry where it lies, and
// reports whether the key is there. It is not done if the record has no room.
func (c *Cache) renew(w *write) (found, done bool) {
	b := c.bucket(w.h)
	b.index.prefetch(w.h)
	b.lock()
	defer b.mu.Unlock()
	found, done = b.touchLocked(w)
	if found || c.shared.strays(w.h).Load() == 0 {
		return found, done
	}
	lb := c.largeBucket(w.h)
	lb.lock()
	defer lb.mu.Unlock()
	return lb.touchLocked(w)
}

// rewrite stores the value that the key has once more, with the write's expiry,
// or returns errUnmet if it does not find it or it changes meanwhile.
func (c *Cache) rewrite(w *write) error {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	v, _, ok := c.peek((*buf)[:0], w, true)
	*buf = v
	if !ok {
		return errUnmet
	}
	w.v, w.old, w.cond, w.same = v, v, ifEqual, true
	return c.apply(w)
}

// TTL returns how long the entry of k is still there for at the most, and
// whether k is there: 0 and true for an entry that never expires, 0 and false
// on a miss. It does not count as a lookup in [Stats] nor with the policy, does
// not allocate, and takes the lock of one bucket for a moment.
func (c *Cache) TTL(k []byte) (time.Duration, bool) {
	_, expiry, ok := c.peek(nil, &write{k: k, h: c.shared.hash(k)}, false)
	if !ok || expiry == 0 {
		return 0, ok
	}
	left := c.shared.left(expiry)
	return left, left > 0 // it may have expired since
}

// DeleteExpired removes all entries that have expired when it is called, and
// returns how many it removed, marks that a key is absent among them (see
// [Cache.GetOrLoad]). Afterwards [Cache.Len] counts none of them. It
// looks at the records of those buckets that may have any, which takes time in
// proportion to their number, but holds a bucket's lock only for some thousand
// records at once. It does not allocate. There is no need to call it but for
// exact counts: Sets reclaim the memory as they need it.
func (c *Cache) DeleteExpired() int {
	n := 0
	c.each(func(b *bucket) { n += c.deleteExpired(b) })
	return n
}

// tick is the resolution of expiries. It is what an entry may be dropped too
// early; 4 bytes of such ticks last for 13.6 years.
const tick = 100 * time.Millisecond

// clock tells how old the cache is, in ticks. It is read only where something
// expires. The first tick is 1, so that 0 is free to mean never.
type clock struct {
	start time.Time            // with a monotonic reading: a wall clock that is set does no harm
	fake  func() time.Duration // of a test, in place of the time since start
	ttl   time.Duration        // of entries without one of their own; 0: they do not expire
}

func newClock(g geometry) clock {
	return clock{start: time.Now(), fake: g.now, ttl: g.ttl}
}

// age returns how long ago the cache was made.
func (c *clock) age() time.Duration {
	if c.fake != nil {
		return c.fake()
	}
	return time.Since(c.start)
}

// tick returns the tick that it is. It is not inlined so that expired is: nearly
// all records never ask.
//
//go:noinline
func (c *clock) tick() uint32 { return tickAt(c.age()) }

// tickAt returns the tick of an age. After 13.6 years it does not go on.
func tickAt(age time.Duration) uint32 {
	return uint32(min(int64(age/tick)+1, math.MaxUint32))
}

// expiry returns the tick from which on what is to live for ttl, above 0, is
// expired. It begins at that moment or up to a tick before, never after. 0, for
// never, is the answer if it is too far away for the clock.
func (c *clock) expiry(ttl time.Duration) uint32 {
	age := c.age()
	if ttl > math.MaxInt64-age {
		return 0
	}
	if at := int64((age+ttl)/tick) + 1; at < math.MaxUint32 {
		return uint32(at)
	}
	return 0
}

// usual returns the expiry of what is set now without a time to live of its own.
func (c *clock) usual() uint32 {
	if c.ttl == 0 {
		return 0
	}
	return c.expiry(c.ttl)
}

// left returns how long it is until a tick begins.
func (c *clock) left(at uint32) time.Duration {
	return max(0, time.Duration(at-1)*tick-c.age())
}

// expired reports whether the record of a header is expired.
func (c *clock) expired(h header) bool { return h.expiry != 0 && c.tick() >= h.expiry }
