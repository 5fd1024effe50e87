package ringcache

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// How a key is changed: lock the bucket, find the key, overwrite its value in place, insert a
// record or remove one, and unlock. When a Set returns, it has taken effect.
//
// Locks are taken in the order given in docs/design.md. No user code runs while one is held.

// errOver is the error of a negative TTL.
var errOver = errors.New("time to live is over")

// expiryOf returns when an entry with that lifetime expires, 0 for never, or an error if the entry
// must not be stored: errOver or ErrTTLTooShort. It is the rule for every TTL given in a call,
// which the section Times to live of the package documentation describes.
func (c *engine) expiryOf(l lifetime) (expiry uint32, err error) {
	ttl := l.ttl
	if !l.given {
		ttl = c.shared.Jittered(c.options.TTL)
	}
	switch {
	case ttl == 0:
		return 0, nil
	case ttl < 0:
		return 0, errOver
	case ttl < clock.Tick:
		return 0, fmt.Errorf("time to live of %v, at least %v: %w", ttl, clock.Tick, ErrTTLTooShort)
	}
	return c.shared.In(ttl), nil
}

// setFor is Set of an entry with the given lifetime.
func (c *Cache) setFor(k, v []byte, l lifetime) error {
	var w write
	w.Key, w.Value, w.Reason, w.life = k, v, store.Replaced, l
	if c.space == nil {
		w.Hash = c.shared.Mix(xxhash.Sum64(k))
	} else {
		var room [stackKey]byte
		w.Key, w.Hash = c.key(room[:0], k)
		w.Kind = record.Spaced
	}
	return c.put(c.space, &w, "ringcache: set")
}

// del removes k for a Del or, if why is Replaced, for a Set whose value cannot be encoded. It
// appends the value to *taken, unless taken is nil.
func (c *Cache) del(k []byte, why store.Reason, taken *[]byte) (found bool) {
	var room [stackKey]byte
	w := c.writeOf(room[:0], k, nil, why)
	w.del = why == store.Deleted
	c.wrote(w.del)
	found, _ = c.remove(&w, taken)
	return found
}

// put stores the record of a write: every value that is set or loaded enters the cache here (those
// of a snapshot in snapshot_load.go), and the entries removed for it are passed to OnRemove. in is
// the namespace that can renew the key, or nil; verb names the call in errors. A fault in the
// caller's value leaves no lock held.
func (c *engine) put(in *space, w *write, verb string) (err error) {
	if in != nil && !w.counted && !w.repeats {
		in.counts().Here().Sets.Add(1)
	}
	if c.options.OnRemove != nil {
		defer c.notify(w)
	}
	for {
		w.Last, err = 0, nil
		if w.life.given || c.options.TTL != 0 {
			w.Last, err = c.expiryOf(w.life)
		}
		if err == nil {
			err = c.route(w)
		} else {
			err = c.refuse(w, err)
		}
		switch {
		case err == nil || err == errUnmet:
			return err
		case err != errForgotten:
			c.refusals.count(err)
		case in != nil && c.renewKey(in, w):
			continue
		default:
			err = ErrDropped
		}
		return fmt.Errorf("%s entry: %w", verb, err)
	}
}

// route stores the record of a write whose deadlines are known, in a small bucket or a large one.
func (c *engine) route(w *write) (err error) {
	b, news := c.bucket(w.Hash), 0
	for b.Index.Prefetch(w.Hash, 2); ; {
		w.Measure(c.shared)
		// An entry that is rewritten stays where it is, if it can.
		large := w.large || !w.RewriteOnly && c.shared.IsLarge(w.Bytes)
		switch {
		case len(w.Key) > record.MaxKey,
			len(w.Value) > c.shared.MaxValue() && (large || !w.Restored):
			return c.refuse(w, c.tooLarge(w))
		case !large:
			news, err = c.setSmall(b, w)
		default:
			if err := c.exceedsMemory(w.Bytes); err != nil {
				return c.refuse(w, err)
			}
			err = c.setLarge(b, w)
		}
		switch err {
		case errResized:
			w.large = w.RewriteOnly
		case errCold:
			c.bringToMain(w)
		default:
			if news > 0 {
				c.balance(b, news, w)
			}
			return err
		}
	}
}

// setSmall stores a record in its small bucket. Whenever the bucket has accepted a chunk of
// records, it returns their bytes.
func (c *engine) setSmall(b *bucket, w *write) (news int, err error) {
	b.lock()
	defer b.unlockFor(w)
	if b.Index.Growing() { // before the condition is checked: may lose the entry to equal hashes
		b.MoveHomes()
	}
	if w.counted || w.cond != always || w.Kind != record.Value || b.Closed {
		if err := c.beginLocked(b, w); err != nil {
			return 0, err
		}
	} else { // nearly always
		b.Sets++
		w.counted = true
	}
	// It is large, Resize came after route's IsLarge, or an expiry was kept or added.
	if w.large || w.Bytes > b.Longest {
		return 0, errResized
	}
	if b.calls.ByKey != nil {
		b.invalidateLocked(w)
	}
	if c.shared.Arrivals.Held.Load() > 0 {
		c.inLargeLocked(w, func(lb *bucket) bool { return lb.Delete(&w.Write, nil) })
	}
	if b.MayLack(w.Bytes) && !c.shared.Pool.Limited() { // else Set fails, and retryLocked does it
		c.takeLackLocked(b, w)
	}
	if err := b.Set(&w.Write); err != nil {
		if err = c.retryLocked(b, b, w, err); err != nil {
			return 0, err
		}
	}
	if news = b.Arrived(w.Bytes); news > 0 {
		c.levelLocked(b, w, news)
	}
	return news, nil
}

// setLarge stores a large record. It makes other buckets release memory only once the condition of
// the write holds. The bucket of the key gives last, once the older value is deleted.
func (c *engine) setLarge(b *bucket, w *write) error {
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	want, need, err := c.setInLarge(b, w, false)
	if need == 0 {
		return err
	}
	lb := c.largeBucket(w.Hash)
	lb.look(func(s *store.Store) { s.Await(want) })
	c.reclaim(lb, need, w)
	_, _, err = c.setInLarge(b, w, true)
	return err
}

// setInLarge stores a large record whose small bucket is b. If it returns a need, it has stored
// nothing: other buckets have to release memory first, until the pool has so many bytes. freed
// tells that they have. want is what the large bucket may grow by.
func (c *engine) setInLarge(b *bucket, w *write, freed bool) (want, need int, err error) {
	lb := c.largeBucket(w.Hash)
	b.lock()
	defer b.unlockFor(w)
	lb.lock()
	defer lb.unlockFor(w)
	w.inLarge = true
	defer func() { w.inLarge = false }()
	lb.MoveHomes() // as in setSmall
	if err := c.checkLocked(b, w); err != nil {
		return 0, 0, c.countLocked(b, w, err)
	}
	if len(w.Value) > c.shared.MaxValue() {
		return 0, 0, errResized
	}
	if lb.IsForgotten(&w.Write) { // checked above; lb notes whose entry counts
		return 0, 0, errForgotten
	}
	if !freed && !w.RewriteOnly {
		c.shared.CountArrival(store.Arrival{Records: 1, Bytes: w.Bytes}, true)
	}
	lb.SetIncoming(w.Bytes)
	defer lb.SetIncoming(0)
	want, must := lb.Demand(w.Bytes)
	p := c.shared.Pool
	need = max(must, min(want, max(2*w.Bytes, p.ChunkSize())))
	if !freed && p.Spare() < need {
		return want, need, nil
	}
	_ = c.countLocked(b, w, nil) // not before: if other calls change the entry, it may become a Del
	b.invalidateLocked(w)
	b.Delete(&w.Write, nil)
	for lack := must - p.Spare(); freed && lack > 0; lack = b.Give(lack, 0) {
		b.takeRemovalsLocked(w) // reclaim has spared b
	}
	if err := lb.Set(&w.Write); err != nil {
		if err = c.retryLocked(lb, b, w, err); err != nil {
			return 0, 0, err
		}
	}
	p.Stored(w.Bytes, 0)
	lb.Arrived(w.Bytes)
	return 0, 0, nil
}

// beginLocked counts a write, and returns an error if it must not be made. The lock of its small
// bucket b is held.
func (c *engine) beginLocked(b *bucket, w *write) error {
	return c.countLocked(b, w, c.checkLocked(b, w))
}

// countLocked counts a write for which checkLocked has returned err, and returns that.
func (c *engine) countLocked(b *bucket, w *write, err error) error {
	if w.counted || w.repeats && (err == errUnmet || err == errCold) {
		return err
	}
	w.counted = true // if it is retried
	if w.del {
		b.Dels++
	} else {
		b.Sets++
	}
	return err
}

// checkLocked is beginLocked without the count.
func (c *engine) checkLocked(b *bucket, w *write) error {
	w.Packed = false
	if b.Closed {
		return ErrClosed
	}
	if w.Kind&record.Spaced != 0 && !w.del && b.IsForgotten(&w.Write) {
		return errForgotten
	}
	if w.cond != always && !c.meetsLocked(b, w) {
		if w.Packed {
			return errCold
		}
		return errUnmet
	}
	return nil
}

// tooLarge returns the error of an entry that is too large.
func (c *engine) tooLarge(w *write) error {
	if n, most := len(w.Key), record.MaxKey; n > most {
		if w.Kind&record.Spaced != 0 { // in front of the user's key
			n, most = n-generation.Size, most-generation.Size
		}
		return fmt.Errorf("key of %d bytes, at most %d: %w", n, most, ErrTooLarge)
	}
	return fmt.Errorf("value of %d bytes, at most %d: %w",
		len(w.Value), c.shared.MaxValue(), ErrTooLarge)
}

// refuse removes the older value of an entry that is not stored because of cause, and returns the
// error of the write. A time to live that is over is none: the entry is as good as deleted.
func (c *engine) refuse(w *write, cause error) error {
	if cause == errOver {
		w.Reason, w.unstored, cause = store.Deleted, true, nil
	}
	if _, err := c.remove(w, nil); err != nil {
		return err
	}
	return cause
}

// remove removes the key if the condition of w holds, and reports whether it was present. If taken
// is not nil, the value is appended to it.
func (c *engine) remove(w *write, taken *[]byte) (found bool, err error) {
	for {
		found, err = c.removeOnce(w, taken)
		if err != errCold && !w.Packed {
			return found, err
		}
		c.bringToMain(w)
	}
}

// removeOnce is remove that removes nothing and sets w.Packed if it needs a value that has to be
// unpacked.
func (c *engine) removeOnce(w *write, taken *[]byte) (found bool, err error) {
	defer c.notify(w)
	b := c.bucket(w.Hash)
	b.Index.Prefetch(w.Hash, 2)
	b.lock()
	defer b.unlockFor(w)
	if err := c.beginLocked(b, w); err != nil {
		return false, err
	}
	b.invalidateLocked(w)
	if w.RewriteOnly { // cannot be written again, and is lost
		w.RewriteOnly, w.Reason = false, store.Evicted
	}
	return b.Delete(&w.Write, taken) || c.inLargeLocked(w, func(lb *bucket) bool {
		return lb.Delete(&w.Write, taken)
	}), nil
}

// meetsLocked reports whether the condition of a write holds. The lock of its small bucket b is
// held, under which the key cannot be set elsewhere.
func (c *engine) meetsLocked(b *bucket, w *write) bool {
	switch w.cond {
	case ifListed:
		return w.call.Listed
	case ifChanged:
		b.invalidateLocked(w) // an equal value is as new as any other
	}
	there, met := b.meetsLocked(w)
	there = there || c.inLargeLocked(w, func(lb *bucket) (there bool) {
		there, met = lb.meetsLocked(w)
		w.large = there && w.RewriteOnly
		return there
	})
	if w.keeps && !there {
		w.Last, _ = c.expiryOf(byOptions) // it may have been found earlier, and dropped since
		w.Measure(b.Shared)
	}
	return met
}

// bringToMain moves the value of a write's key to main, so that the write can look at it.
func (c *engine) bringToMain(w *write) {
	_, _, _ = c.lookupCold(nil, w.Key, w.Hash, c.counters.Here(), wantPromote)
	w.Packed = false
}
