package ringcache

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// write is one change to one key on its way through the cache: a Set, on a
// condition or not, or a removal. It is passed by pointer and stays on the
// caller's stack.
type write struct {
	k, v   []byte
	h      uint64 // hash of k
	n      int    // bytes of the record
	expiry uint32 // tick, 0: never
	cond   cond
	silent bool        // a part of a call that is counted elsewhere: on a condition, or a removal
	fresh  bool        // neither the key nor its ghost is there
	same   bool        // the value is there already: only its form changes
	old    []byte      // for ifEqual
	absent bool        // a mark instead of a value; it has an expiry
	prompt bool        // its lines have been asked for: it is made at once
	flight *flight     // for ifListed: the load that writes
	reason Reason      // why an older value leaves
	room   int         // chunks that the ring for new records may hold, if it has room already; else 0
	ask    lines       // to be asked for when the lock has been given up, by a Set that was put aside
	left   *[]departed // for OnEvict. A pointer, so that k and v need not be on the heap as this is
}

// why returns what OnEvict is told about the older value.
func (w *write) why() Reason {
	if w.same {
		return unsaid
	}
	return w.reason
}

// cond is what a write asks of the value that is there.
type cond uint8

const (
	always    cond = iota
	ifAbsent       // there is none
	ifEqual        // it is write.old
	ifChanged      // it is not write.v; if it is, it gets the write's expiry
	ifListed       // nothing: write.flight must not have been overtaken
)

// errUnmet is the answer to a write whose condition does not hold. It stays
// within the package.
var errUnmet = errors.New("condition does not hold")

// begin completes the write of a value that expires when Options say so. (Its
// caller has a variable and sets its fields, since the compiler makes a struct
// literal in one place and copies it to another.)
func (c *Cache) begin(w *write) {
	w.h = c.shared.mix(xxhash.Sum64(w.k)) // hash, which the compiler would not inline
	w.expiry = c.shared.usual()
	w.reason = EvictReplaced
}

// apply stores a record, and tells OnEvict what had to leave.
func (c *Cache) apply(w *write) error {
	c.bucket(w.h).index.prefetchPath(w.h)
	err := c.store(w)
	if err != nil && err != errUnmet {
		return fmt.Errorf("ringcache: %w", err)
	}
	return err
}

// store is apply without a prefetch and without the package in its errors.
func (c *Cache) store(w *write) error {
	b := c.bucket(w.h)
	if len(w.k) > maxKey || len(w.v) > c.shared.maxValue() {
		return c.refuse(b, w)
	}
	w.measure()
	var err error
	if c.isLarge(w.n) {
		err = c.setLarge(b, w)
	} else {
		err = c.setSmall(b, w)
	}
	if w.left != nil {
		c.announce(w)
	}
	if err == errResized {
		return c.store(w)
	}
	if err != nil && err != errUnmet {
		return w.failed(err)
	}
	return err
}

// failed returns what Set says when it could not store the record.
func (w *write) failed(err error) error {
	return fmt.Errorf("set entry of %d + %d bytes: %w", len(w.k), len(w.v), err)
}

// measure counts the bytes of the record.
func (w *write) measure() {
	w.n = len(w.k) + len(w.v)
	if w.expiry != 0 {
		w.n += w.timedHeaderSize()
	} else {
		w.n += headerSize(len(w.k), len(w.v))
	}
}

// timedHeaderSize returns the header bytes of a record with an expiry.
func (w *write) timedHeaderSize() int {
	if w.absent {
		return markHeader
	}
	return timedHeaderSize(len(w.k), len(w.v))
}

// setSmall stores a record in its small bucket.
func (c *Cache) setSmall(b *bucket, w *write) error {
	if c.shared.flow.held.Load() > 0 && b.short(w.n) {
		if c.unmet(b, w) {
			return errUnmet
		}
		c.lend(w)
	}
	lane := laneHere()
	a := c.agenda(lane)
	var p *aside
	if a != nil && !w.prompt {
		p = a.here()
		c.comeBack(p)
	}
	flowed, err := c.setInBucket(b, w, p)
	if w.ask.n > 0 {
		a.passed()
		w.ask.prefetchSoon(lane)
	}
	if flowed.bytes > 0 {
		c.flowed(flowed, w)
	}
	return err
}

// setInBucket stores a record, or puts that aside in place p, if it is not nil, and returns what the bucket has taken in since it
// last said so, if that is a chunk or more.
func (c *Cache) setInBucket(b *bucket, w *write, p *aside) (flowed tally, err error) {
	b.lock()
	if w.n > b.most {
		b.mu.Unlock()
		return tally{}, errResized
	}
	if b.index.growing() {
		b.moveLocked() // before the condition is looked at: a crowd of equal hashes may lose the entry by it
	}
	if err := c.beginLocked(b, w); err != nil {
		b.unlock(w)
		return tally{}, err
	}
	if c.shared.strays(w.h).Load() != 0 {
		c.delStrayLocked(w)
	}
	if !b.tryLocked(w, p) {
		return b.setAndUnlock(w)
	}
	if b.flowLocked(w.n) {
		flowed = b.reportLocked()
	}
	b.mu.Unlock()
	return flowed, nil
}

// setAndUnlock is the rest of setInBucket for what needs more than writing a few
// bytes somewhere.
func (b *bucket) setAndUnlock(w *write) (flowed tally, err error) {
	defer b.mu.Unlock()
	err = b.setLocked(w)
	if b.departed != nil {
		b.handOverLocked(w)
	}
	if err == nil && b.flowLocked(w.n) {
		flowed = b.reportLocked()
	}
	return flowed, err
}

// tryLocked stores a record over one of the same key, now or later, and reports
// whether it has. Where there is memory to wait for, that is better done later, unless
// it has been waited for.
func (b *bucket) tryLocked(w *write, p *aside) bool {
	if p != nil && b.index.patient {
		return b.putAsideLocked(w, p)
	}
	return b.overwriteLocked(w)
}

// beginLocked counts a write, and returns an error if it must not be made. The
// lock of its small bucket b is held.
func (c *Cache) beginLocked(b *bucket, w *write) error {
	b.mu.sets++
	if w.cond != always {
		return c.testLocked(b, w)
	}
	if b.closed {
		return ErrClosed
	}
	b.overtakeLocked(w)
	return nil
}

// testLocked is beginLocked for what only a write on a condition needs.
func (c *Cache) testLocked(b *bucket, w *write) error {
	if w.silent {
		b.mu.sets--
	}
	switch {
	case b.closed:
		return ErrClosed
	case !c.meetsLocked(b, w):
		return errUnmet
	}
	b.overtakeLocked(w)
	return nil
}

// refuse removes the older value of an entry that is too large.
func (c *Cache) refuse(b *bucket, w *write) error {
	b.lock()
	err := c.beginLocked(b, w)
	if err == nil && len(w.k) <= maxKey {
		if w.same { // set in a larger cache, and now lost
			w.same, w.reason = false, EvictCapacity
		}
		c.removeLocked(b, w)
	}
	b.unlock(w)
	c.announce(w)
	switch {
	case err == errUnmet:
		return err
	case err != nil:
		return fmt.Errorf("set entry: %w", err)
	case len(w.k) > maxKey: // no older value could be there
		return fmt.Errorf("set entry: key of %d bytes, at most %d: %w", len(w.k), maxKey, ErrTooLarge)
	}
	return fmt.Errorf("set entry: value of %d bytes, at most %d: %w", len(w.v), c.shared.maxValue(), ErrTooLarge)
}

// unmet reports whether a write need not be begun since its condition does not
// hold. It is asked before others give up memory for the write; what it says
// may change until that has the lock again.
func (c *Cache) unmet(b *bucket, w *write) bool {
	if w.cond == always {
		return false
	}
	b.lock()
	defer b.mu.Unlock()
	if b.closed || c.meetsLocked(b, w) {
		return false
	}
	if !w.silent {
		b.mu.sets++
	}
	return true
}

// meetsLocked reports whether the condition of a write holds. The lock of its
// small bucket b is held, under which the key cannot be set elsewhere.
func (c *Cache) meetsLocked(b *bucket, w *write) bool {
	switch w.cond {
	case ifListed:
		return w.flight.listed
	case ifChanged:
		b.overtakeLocked(w) // an equal value is as new as another
	}
	var f found
	if b.lookup(&f, w.k, w.h) {
		return b.meetsLocked(&f, w)
	}
	if c.shared.strays(w.h).Load() != 0 {
		lb := c.largeBucket(w.h)
		lb.lock()
		defer lb.mu.Unlock()
		if lb.lookup(&f, w.k, w.h) {
			return lb.meetsLocked(&f, w)
		}
	}
	w.same = false
	return w.cond != ifEqual
}

// meetsLocked reports whether the condition of a write holds for the record f,
// of the same key.
func (b *bucket) meetsLocked(f *found, w *write) bool {
	switch w.cond {
	case ifAbsent:
		return false
	case ifEqual:
		return f.holds(w.old)
	}
	if w.same = f.holds(w.v); w.same && f.takes(w.expiry) {
		b.renewLocked(f, w.expiry)
		return false
	}
	return true // a value that is there may still have to change its form
}

// holds reports whether the value of the record is v.
func (f *found) holds(v []byte) bool {
	return f.vlen == len(v) && f.ring.equal(f.valuePos(), v)
}

// remove removes the key if the condition of w holds, and reports whether it
// does and whether the key was there.
func (c *Cache) remove(w *write) (met, found bool) {
	b := c.bucket(w.h)
	b.index.prefetch(w.h)
	b.lock()
	if !w.silent {
		b.dels++
	}
	if met = w.cond == always || c.meetsLocked(b, w); met {
		b.overtakeLocked(w)
		found = c.removeLocked(b, w)
	}
	b.unlock(w)
	c.announce(w)
	return met, found
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
	lb.lock()
	defer lb.unlock(w)
	return lb.delLocked(w)
}

// peek is a lookup that counts as none: it returns dst with the value of the
// key behind it, if that is asked for, and the tick when it expires.
func (c *Cache) peek(dst []byte, w *write, value bool) (out []byte, expiry uint32, ok bool) {
	b := c.bucket(w.h)
	b.index.prefetch(w.h)
	b.stay()
	defer b.mu.unshare(false)
	var f found
	if b.lookup(&f, w.k, w.h) {
		return f.peek(dst, value), f.expiry, true
	}
	if c.shared.strays(w.h).Load() != 0 {
		lb := c.largeBucket(w.h)
		lb.stay()
		defer lb.mu.unshare(false)
		if lb.lookup(&f, w.k, w.h) {
			return f.peek(dst, value), f.expiry, true
		}
	}
	return dst, 0, false
}

// peek returns dst with the value behind it, if that is asked for.
func (f *found) peek(dst []byte, value bool) []byte {
	if !value {
		return dst
	}
	return f.ring.read(dst, f.valuePos(), f.vlen)
}
