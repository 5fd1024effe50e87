package ringcache

// The methods of this file look at the value that a key has and change it in
// one step: no other call of the same key comes in between.

// SetIfAbsent stores v under k if k is not there, and reports whether it did.
// An entry that has expired is not there.
//
// Where it stores, it is a [Cache.Set] in every respect, errors included. Where
// it does not, it touches nothing. It counts as a Set in [Stats] either way, and
// not as a lookup.
func (c *Cache) SetIfAbsent(k, v []byte) (stored bool, err error) {
	var w write
	w.k, w.v = k, v
	c.begin(&w)
	w.cond = ifAbsent
	return met(c.apply(&w, "set"))
}

// SetIfChanged stores v under k unless that is the value of k already, and
// reports whether it did. An equal value is not written again: it takes no room,
// drops nothing, and keeps its age and standing; only its time to live begins
// anew, as [Options].TTL says. (If it has no room for an expiry and needs one, it
// is written again nonetheless, and changed is false.)
//
// Where it stores, it is a [Cache.Set] in every respect, errors included. It
// counts as a Set in [Stats] either way, and not as a lookup.
func (c *Cache) SetIfChanged(k, v []byte) (changed bool, err error) {
	var w write
	w.k, w.v = k, v
	c.begin(&w)
	w.cond = ifChanged
	changed, err = met(c.apply(&w, "set"))
	return changed && !w.same, err
}

// CompareAndSwap stores new under k if the value of k is old, and reports
// whether it did. If k is not there it does not; nil and empty are the same old
// value. old and new may be changed as soon as CompareAndSwap returns.
//
// Where it stores, it is a [Cache.Set] in every respect, errors included. Where
// it does not, it touches nothing. (A large value has room made for it first; if
// that pushes k itself out, it is not stored.) It counts as a Set in [Stats]
// either way, and not as a lookup.
func (c *Cache) CompareAndSwap(k, old, new []byte) (swapped bool, err error) {
	var w write
	w.k, w.v = k, new
	c.begin(&w)
	w.cond, w.old = ifEqual, old
	return met(c.apply(&w, "swap"))
}

// met tells a condition that does not hold from an error.
func met(err error) (bool, error) {
	if err == errUnmet {
		return false, nil
	}
	return err == nil, err
}

// Update replaces the value of k by what fn makes of it. fn gets a copy of the
// value, and whether k is there; it returns the new value, or false for keep if
// k is to be removed. It may change old and return a part of it, but must not
// hold on to it: old is valid until fn returns, and what it returned until
// Update does.
//
// No lock is held while fn runs, so it may take its time, call methods of the
// same cache, and panic. If another call has changed the value of k meanwhile, fn
// is called once more with the new one: it must be ready to run several times,
// of which the last counts. Between that last call's copy and the write, the
// value of k did not change.
//
// Ownership of k, limits and errors are those of [Cache.Set]: after an error, k
// is absent. The time to live begins anew, as [Options].TTL says. Update does
// not allocate but for a buffer now and then that later calls use again. It
// counts in [Stats] as one Set, or one Del if fn does not keep k.
func (c *Cache) Update(k []byte, fn func(old []byte, ok bool) (new []byte, keep bool)) error {
	// fn may change its copy, so the comparison needs one of its own.
	mine, theirs := scratches.Get().(*scratch), scratches.Get().(*scratch)
	defer mine.release()
	defer theirs.release()
	w := write{k: k, h: c.shared.hash(k)}
	for ; ; w.silent = true {
		old, ok := c.peek(mine.buf[:0], &w)
		mine.buf = old
		theirs.buf = append(theirs.buf[:0], old...)
		v, keep := fn(theirs.buf, ok)
		w.expect(old, ok)
		if !keep {
			w.reason = EvictDeleted
			if done, _ := c.remove(&w); done {
				return nil
			}
			continue
		}
		w.v, w.expiry, w.reason = v, c.shared.Default(), EvictReplaced
		if err := c.apply(&w, "update"); err != errUnmet {
			return err
		}
	}
}

// Append puts suffix behind the value of k. If k is not there, it is a
// [Cache.Set] of suffix.
//
// Ownership, limits and errors are those of Set: after an error, k is absent.
// The time to live begins anew, as [Options].TTL says. Append does not allocate
// but for a buffer now and then that later calls use again. It copies the value
// twice; under a key that many append to at once it may do so several times. It
// counts as one Set in [Stats].
func (c *Cache) Append(k, suffix []byte) error {
	s := scratches.Get().(*scratch)
	defer s.release()
	w := write{k: k, h: c.shared.hash(k), reason: EvictReplaced}
	for ; ; w.silent = true {
		old, ok := c.peek(s.buf[:0], &w)
		s.buf = append(old, suffix...)
		w.expect(s.buf[:len(old)], ok)
		w.v, w.expiry = s.buf, c.shared.Default()
		if err := c.apply(&w, "append to"); err != errUnmet {
			return err
		}
	}
}

// expect makes the write depend on the key being as it was found.
func (w *write) expect(old []byte, ok bool) {
	w.cond, w.old = ifAbsent, nil
	if ok {
		w.cond, w.old = ifEqual, old
	}
}

// peek appends the value of the key to dst: a lookup that counts as none.
func (c *Cache) peek(dst []byte, w *write) ([]byte, bool) {
	out, _, got := c.lookup(dst, w.k, w.h, withValue)
	return out, got == hit
}

// GetAndDel removes k, appends the value that it had to dst, and returns the
// extended slice; dst as it is, and false, if k is not there. Of several calls at
// once, one gets the value. The bytes belong to the caller.
//
// GetAndDel does not allocate if dst has room for the value. It locks one
// bucket, and counts in [Stats] as a Del, not as a lookup.
func (c *Cache) GetAndDel(dst, k []byte) ([]byte, bool) {
	w := write{k: k, h: c.shared.hash(k), reason: EvictDeleted}
	dst, ok := c.take(dst, &w)
	c.shared.notify(&w)
	return dst, ok
}

// take removes the key and appends the value that it had to dst.
func (c *Cache) take(dst []byte, w *write) ([]byte, bool) {
	b := c.bucket(w.h)
	b.index.Prefetch(w.h, 2)
	b.lock()
	defer b.unlockFor(w)
	b.dels++
	b.invalidateLocked(w)
	dst, ok := b.takeLocked(dst, w)
	if ok || c.shared.largeKeysOf(w.h).Load() == 0 {
		return dst, ok
	}
	lb := c.largeBucket(w.h)
	lb.lock()
	defer lb.unlockFor(w)
	return lb.takeLocked(dst, w)
}

// takeLocked is take in one bucket.
func (b *bucket) takeLocked(dst []byte, w *write) ([]byte, bool) {
	var f found
	if !b.lookupLocked(&f, w.k, w.h) {
		b.deleteLocked(w) // what is expired, or a negative entry
		return dst, false
	}
	dst, _ = f.ring.Read(dst, f.valuePos(), f.ValueLen) // w.k may lie in dst
	b.removeLocked(&f, w.h, w.why())
	return dst, true
}
