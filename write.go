package ringcache

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
)

// How a key is changed. There is one way: the bucket is locked, and the key found; its
// value is overwritten in place, or a record inserted; and the lock given up. A Set that
// has returned has happened.
//
// Locks are taken in the order: spaces.mu, space.mu, sizing.mu, arena.mu, compression.mu, small
// bucket, large bucket, learner, pool, file. No code of the user's runs under any of them.

// What is not an error of the user's stays within the package.
var (
	// errUnmet is the answer to a write whose condition does not hold.
	errUnmet = errors.New("condition does not hold")

	// errResized tells a Set that the cache was made smaller, and its record goes elsewhere.
	errResized = errors.New("cache was resized")

	// errForgotten tells that the key is of a namespace that was invalidated or dropped: the
	// write is as good as done.
	errForgotten = errors.New("namespace was invalidated")

	// errCold tells a call that needs the value which is there that it is in the cold part: it
	// is looked up there, or moved to main, without a lock, and the call tried again.
	errCold = errors.New("value is in the cold part")
)

// begin completes the write of a value that expires when Options say so. (Its caller sets
// fields of a variable, since the compiler would copy a struct literal.)
func (c *Cache) begin(w *write) {
	w.h = c.shared.mix(xxhash.Sum64(w.k)) // hash, which the compiler would not inline
	w.expiry = c.shared.Default()
	w.reason = RemovedReplaced
}

// apply prefetches and stores a record. verb is what the caller asked for.
func (c *Cache) apply(w *write, verb string) error {
	c.bucket(w.h).index.Prefetch(w.h, 2)
	if err := c.store(w, verb); err != nil {
		return named(err)
	}
	return nil
}

// named puts the package's name before an error of the user's.
func named(err error) error {
	if err != nil && err != errUnmet {
		return fmt.Errorf("ringcache: %w", err)
	}
	return err
}

// store stores a record, and tells OnRemove of the entries removed for it. Its errors do not name
// the package.
func (c *Cache) store(w *write, verb string) error {
	b := c.bucket(w.h)
	for {
		if len(w.k) > record.MaxKey || len(w.v) > c.shared.maxValue() {
			return c.refuse(w, verb, c.tooLarge(w))
		}
		w.measure(c.shared.form)
		if c.makeQuotaRoom(w) {
			return errUnmet
		}
		var err error
		if c.isLarge(w.n) {
			if err := c.exceedsMemory(w.n); err != nil {
				return c.refuse(w, verb, err)
			}
			err = c.setLarge(b, w)
		} else {
			err = c.setSmall(b, w)
		}
		switch err {
		case nil, errUnmet:
			return err
		case errForgotten:
			w.unstored = true
			return nil
		case errResized:
			continue
		case errCold:
			c.bringToMain(w)
			continue
		}
		c.shared.refusals.count(err)
		return fmt.Errorf("%s entry of %d + %d bytes: %w", verb, len(w.k), len(w.v), err)
	}
}

// setSmall stores a record in its small bucket. A fault in the caller's value leaves no
// lock held.
func (c *Cache) setSmall(b *bucket, w *write) error {
	if c.shared.onRemove != nil {
		defer c.shared.notify(w)
	}
	if c.shared.arrivals.held.Load() > 0 && b.isShort(w.n) {
		if c.isUnmet(b, w) {
			return errUnmet
		}
		c.lend(w)
	}
	news, err := c.setInBucket(b, w)
	if news.bytes > 0 {
		c.report(b, news, w)
	}
	return err
}

// setInBucket is setSmall when there is memory. It returns what the bucket has taken in
// since it last said so, if that is a chunk or more.
func (c *Cache) setInBucket(b *bucket, w *write) (news arrival, err error) {
	b.lock()
	defer b.unlockFor(w)
	b.moveHomesLocked() // may lose the entry to equal hashes: before the condition is asked
	if err := c.beginLocked(b, w); err != nil {
		return news, err
	}
	if w.n > b.longest { // or it has got an expiry, and with it a longer header
		return news, errResized
	}
	if c.shared.largeKeysOf(w.h).Load() != 0 {
		c.inLargeLocked(w, func(lb *bucket) bool { return lb.deleteLocked(w, nil) })
	}
	if err := b.setLocked(w); err != nil {
		err = c.insistLocked(b, w, err, func() error { return b.setLocked(w) })
		if err != nil {
			return news, err
		}
	}
	if b.inflow.add(w.n); b.inflow.bytes >= c.shared.pool.ChunkSize() {
		b.learnLocked()
		c.levelLocked(b, w)
		news, b.inflow = b.inflow, arrival{}
	}
	return news, nil
}

// beginLocked counts a write, and returns an error if it must not be made. The lock of its
// small bucket b is held.
func (c *Cache) beginLocked(b *bucket, w *write) error {
	w.packed = false
	switch {
	case w.silent:
	case w.del:
		b.dels++
	default:
		b.sets++
	}
	w.silent = true // if it has to be tried again
	if b.closed {
		return ErrClosed
	}
	if _, forgotten := b.shared.usageOf(w.k); forgotten && !w.del {
		return errForgotten
	}
	if w.cond != always && !c.meetsLocked(b, w) {
		if w.packed {
			return errCold
		}
		return errUnmet
	}
	b.invalidateLocked(w)
	return nil
}

// invalidateLocked is what a write of a key does to the load of it, if there is one.
func (b *bucket) invalidateLocked(w *write) {
	if !b.calls.Empty() {
		b.calls.Invalidate(b.calls.Find(w.k, w.h))
	}
}

// tooLarge returns the error of an entry that is.
func (c *Cache) tooLarge(w *write) error {
	if len(w.k) > record.MaxKey {
		return fmt.Errorf("key of %d bytes, at most %d: %w", len(w.k), record.MaxKey, ErrTooLarge)
	}
	return fmt.Errorf("value of %d bytes, at most %d: %w",
		len(w.v), c.shared.maxValue(), ErrTooLarge)
}

// refuse removes the older value of an entry that is not stored because of cause, which
// may be nil.
func (c *Cache) refuse(w *write, verb string, cause error) error {
	if _, err := c.remove(w, nil); err != nil {
		cause = err
	}
	if cause == nil || cause == errUnmet {
		return cause
	}
	c.shared.refusals.count(cause)
	return fmt.Errorf("%s entry: %w", verb, cause)
}

// remove removes the key if the condition of w holds, and reports whether it was there.
// If taken is not nil, the value is appended to it.
func (c *Cache) remove(w *write, taken *[]byte) (found bool, err error) {
	for {
		found, err = c.removeOnce(w, taken)
		if err != errCold && !w.packed {
			return found, err
		}
		c.bringToMain(w)
	}
}

// removeOnce is remove that has not removed, with w.packed set, a value that has to be
// unpacked for it.
func (c *Cache) removeOnce(w *write, taken *[]byte) (found bool, err error) {
	defer c.shared.notify(w)
	b := c.bucket(w.h)
	b.index.Prefetch(w.h, 2)
	b.lock()
	defer b.unlockFor(w)
	if err := c.beginLocked(b, w); err != nil {
		return false, err
	}
	if w.same { // it came from a larger cache, cannot be written again, and is lost
		w.same, w.reason = false, RemovedEvicted
	}
	return b.deleteLocked(w, taken) || c.inLargeLocked(w, func(lb *bucket) bool {
		return lb.deleteLocked(w, taken)
	}), nil
}

// isUnmet reports whether a write need not be begun since its condition does not hold. It
// is asked before others give up memory for the write, and beginLocked asks again.
func (c *Cache) isUnmet(b *bucket, w *write) bool {
	if w.cond == always {
		return false
	}
	b.lock()
	defer b.unlock()
	if b.closed || c.meetsLocked(b, w) || w.packed {
		return false
	}
	if !w.silent {
		b.sets++
	}
	return true
}

// meetsLocked reports whether the condition of a write holds. The lock of its small bucket
// b is held, under which the key cannot be set elsewhere.
func (c *Cache) meetsLocked(b *bucket, w *write) bool {
	switch w.cond {
	case ifListed:
		return w.call.Listed()
	case ifChanged:
		b.invalidateLocked(w) // an equal value is as new as another
	}
	there, met := b.meetsLocked(w)
	there = there || c.inLargeLocked(w, func(lb *bucket) (there bool) {
		there, met = lb.meetsLocked(w)
		return there
	})
	if w.keeps && !there {
		w.expiry = c.shared.Default() // it may have been found before, and dropped since
		w.measure(b.form)
	}
	return met
}

// meetsLocked reports whether the bucket has the key, and whether the condition of a
// write holds for it.
func (b *bucket) meetsLocked(w *write) (there, met bool) {
	f := found{internal: w.internal}
	if !b.lookupLocked(&f, w.k, w.h) {
		return false, w.cond != ifEqual
	}
	if w.packed = f.isPacked() && (w.cond != ifAbsent || w.found != nil); w.packed {
		return true, false
	}
	if w.reads {
		b.readLocked(&f)
		w.reads = false
	}
	if w.keeps {
		w.expiry = f.Expiry
		w.measure(b.form)
	}
	switch w.cond {
	case ifAbsent:
		if w.found != nil {
			*w.found, _ = f.ring.Read(*w.found, f.valuePos(), f.ValueLen) // w.k may lie in it
		}
		return true, false
	case ifEqual:
		return true, f.holds(w.old)
	}
	return true, !f.holds(w.v)
}

// readLocked tells the policy of a read of the record f, as a lookup would.
func (b *bucket) readLocked(f *found) {
	switch slot := f.Group.At(f.I); {
	case !index.Ring(f.Slot).IsCold():
		if b.touches {
			index.Raise(slot, f.Slot)
		}
	case !index.WasRead(f.Slot):
		index.MarkRead(slot, f.Slot)
	}
}

// holds reports whether the value of the record is v.
func (f *found) holds(v []byte) bool {
	return f.ValueLen == len(v) && f.ring.Equal(f.valuePos(), v)
}

// inLargeLocked calls fn with the large bucket of the key, locked, if that may have it,
// and returns what fn does. The lock of the key's small bucket is held.
func (c *Cache) inLargeLocked(w *write, fn func(lb *bucket) bool) bool {
	if c.shared.largeKeysOf(w.h).Load() == 0 {
		return false
	}
	lb := c.largeBucket(w.h)
	lb.lock()
	defer lb.unlockFor(w)
	return fn(lb)
}
