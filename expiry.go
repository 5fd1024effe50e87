package ringcache

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// SetWithTTL is [Cache.Set] with a TTL for this entry, which takes precedence over [Options].TTL:
// it expires after ttl, or never if ttl is 0. For a TTL that is negative, below 100 ms, or very
// long, see the section Times to live of the package.
//
// The clock is monotonic and counts ticks of 100 ms. An entry expires on time or up to a tick
// early, never late, whatever happens to the wall clock. On Linux and macOS the time that the
// machine sleeps counts too, from 10 ms after it has woken up; on the BSDs sleep may not count.
//
// An expired entry keeps its memory, and is included in [Cache.Len], until a Set reclaims it: a
// Set searches its bucket for expired entries before it evicts live ones. [Cache.DeleteExpired]
// removes all of them at once. Neither removes an entry until [Options].StaleIfError has also
// passed. An expiry takes 4 bytes of the record, 8 with [Options].ExpireAfterAccess. Ownership,
// limits, errors, locks and allocation are those of Set; an error may also be [ErrTTLTooShort].
func (c *Cache) SetWithTTL(k, v []byte, ttl time.Duration) error {
	return c.setFor(k, v, withTTL(ttl))
}

// setFor is Set of an entry with that lifetime.
func (c *Cache) setFor(k, v []byte, l lifetime) error {
	var w write
	w.Key, w.Value, w.Hash, w.Reason = k, v, c.shared.Hash(k), store.Replaced
	return c.applyFor(&w, l, "set")
}

// lifetime determines when a new entry expires: after its own TTL, or as Options say.
type lifetime struct {
	ttl   time.Duration
	given bool
}

// byOptions is the lifetime of an entry that is stored without a TTL.
var byOptions lifetime

// withTTL returns the lifetime of an entry that is stored with a TTL.
func withTTL(ttl time.Duration) lifetime { return lifetime{ttl, true} }

// applyFor is apply of an entry with that lifetime.
func (c *Cache) applyFor(w *write, l lifetime, verb string) error {
	c.bucket(w.Hash).Index.Prefetch(w.Hash, 2)
	return withPrefix(c.storeFor(w, l, verb))
}

// errOver is the answer to a TTL that is over.
var errOver = errors.New("time to live is over")

// expiryOf returns when an entry with that lifetime expires, 0 for never, or an error if there
// is to be none: errOver, or ErrTTLTooShort. It is the rule for every TTL that is given in a
// call, whose words are in the section Times to live of the package.
func (c *Cache) expiryOf(l lifetime) (expiry uint32, err error) {
	switch {
	case !l.given:
		return c.shared.Default(), nil
	case l.ttl == 0:
		return 0, nil
	case l.ttl < 0:
		return 0, errOver
	case l.ttl < clock.Tick:
		return 0, fmt.Errorf("time to live of %v, at least %v: %w", l.ttl, clock.Tick, ErrTTLTooShort)
	}
	return c.shared.In(l.ttl), nil
}

// storeFor is store of an entry with that lifetime.
func (c *Cache) storeFor(w *write, l lifetime, verb string) (err error) {
	if w.Expiry, err = c.expiryOf(l); err == nil {
		return c.store(w, verb)
	}
	if err == errOver {
		w.Reason, w.Unstored, err = store.Deleted, true, nil
	}
	return c.refuse(w, verb, err)
}

// Touch gives the entry of k another TTL, from now on, and reports whether k was there. The
// rules for ttl are those of [Cache.SetWithTTL]: 0 means that the entry never expires, and one
// that is negative or below 100 ms removes it. The value stays, and so does the entry's
// position in the eviction order: Touch does not count as a read.
// With [Options].ExpireAfterAccess it starts the idle time anew.
//
// An entry that was set without an expiry has no room for one. It is written again, which may
// evict others; should the operating system refuse the memory for that, the entry is lost and
// Touch returns false. Touch does not allocate but for this copy now and then, locks one
// bucket, and counts as nothing in [Stats].
func (c *Cache) Touch(k []byte, ttl time.Duration) bool {
	w := c.writeOf(k, nil, store.Deleted)
	w.silent = true
	expiry, err := c.expiryOf(withTTL(ttl))
	if err != nil {
		found, _ := c.remove(&w, nil)
		return found
	}
	for w.Expiry = expiry; ; {
		found, done := c.renew(&w)
		if done {
			return found
		}
		switch err := c.rewrite(&w); err {
		case nil:
			return true
		case errUnmet: // it was set or evicted meanwhile
		default:
			return false
		}
	}
}

// renew gives the entry of the key the write's expiry where it lies, and
// reports whether the key is there. It is not done if the record has no room.
func (c *Cache) renew(w *write) (found, done bool) {
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

// rewrite stores the value that the key has once more, with the write's expiry,
// or returns errUnmet if it does not find it or it changes meanwhile.
func (c *Cache) rewrite(w *write) error {
	s := scratch.Get()
	defer s.Release()
	v, ok := c.peek(s.Bytes[:0], w)
	s.Bytes = v
	if !ok {
		return errUnmet
	}
	w.Value, w.old, w.cond, w.Same = v, v, ifEqual, true
	return c.apply(w, "touch")
}

// TTL returns how long the entry of k still has to live at most, unless it is read
// ([Options].ExpireAfterAccess), and whether k is there: 0 and true for an entry that never
// expires, 0 and false on a miss. It does not count as a
// lookup in [Stats] nor with the policy, does not allocate, and locks what Get locks.
func (c *Cache) TTL(k []byte) (time.Duration, bool) {
	_, expiry, got := c.lookup(nil, k, c.shared.Hash(k), 0)
	if got != hit || expiry == 0 {
		return 0, got == hit
	}
	left := c.shared.Until(expiry)
	return left, left > 0 // it may have expired since
}

// GetWithTTL is [Cache.HasGet] and [Cache.TTL] in one lookup, of the same entry: the value of k,
// appended to dst, how long it still has to live at most, and whether k was there. The
// time is 0 for an entry that never expires, above 0 for one that does, and 0 on a miss. It
// counts as one lookup, and allocates and locks what Get does.
func (c *Cache) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	out, expiry, got := c.lookup(dst, k, unhashed, getMode)
	if got != hit || expiry == 0 {
		return out, 0, got == hit
	}
	return out, max(c.shared.Until(expiry), 1), true // it may have expired since: that is not never
}

// DeleteExpired removes all entries that have expired when it is called, and returns how many
// it removed, negative entries among them (see [Cache.GetOrLoad]), but for those that
// [Options].StaleIfError keeps. It looks at all records of those buckets that may have any,
// up to 1,024 under a lock at once, and does not allocate. There is no need to call it but
// for exact counts: Sets reclaim the memory as they need it.
func (c *Cache) DeleteExpired() int {
	n := 0
	c.each(func(b *bucket) { n += c.deleteExpiredIn(b) })
	return n
}

// deleteExpiredIn is DeleteExpired in one bucket.
func (c *Cache) deleteExpiredIn(b *bucket) (n int) {
	var s store.Sweep
	defer func() {
		if !s.Done { // OnRemove panics
			b.look(s.Stop)
		}
	}()
	for !s.Done {
		n += c.deleteStep(b, &s)
	}
	return n
}

// deleteStep is a step of DeleteExpired.
func (c *Cache) deleteStep(b *bucket, s *store.Sweep) (dropped int) {
	var w write
	defer c.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	return b.DeleteStep(s)
}
