package ringcache

// The methods of this file look at the value that a key has and change it in
// one step: no other call of the same key comes in between.

// SetIfAbsent is [Cache.Set] if k is not there, and reports whether it stored v. An
// entry that has expired is not there. Where it does not store, it touches nothing. It
// counts as a Set in [Stats] either way, and not as a lookup.
func (c *Cache) SetIfAbsent(k, v []byte) (stored bool, err error) {
	var w write
	w.k, w.v = k, v
	c.begin(&w)
	w.cond = ifAbsent
	return met(c.apply(&w, "set"))
}

// SetIfChanged is [Cache.Set] unless v is the value of k already, and reports whether it
// changed it. An equal value is not written again: it takes no room, drops nothing, and
// keeps its age and standing; only its time to live begins anew, as [Options].TTL says.
// (An entry that needs an expiry now, and has no room for one, is written again, and
// changed is false.) It counts as a Set in [Stats] either way, and not as a lookup.
func (c *Cache) SetIfChanged(k, v []byte) (changed bool, err error) {
	var w write
	w.k, w.v = k, v
	c.begin(&w)
	w.cond = ifChanged
	changed, err = met(c.apply(&w, "set"))
	return changed && !w.same, err
}

// CompareAndSwap is [Cache.Set] of new if the value of k is old, and reports whether it
// stored it. If k is not there it does not; nil and empty are the same old value. Where
// it does not store, it touches nothing. (Room is made for a large value first; if that
// pushes out k itself, nothing is stored.) It counts as a Set in [Stats] either way,
// and not as a lookup.
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

// Update replaces the value of k by what fn makes of it. fn gets a copy of the value,
// which it may change, and whether k is there; it returns the new value, or false for
// keep to remove k. old is valid until fn returns; new must be so until Update does.
//
// If another call has changed the value meanwhile, fn is called again with the new one:
// it may run several times, of which the last counts. No lock is held while it runs. An fn
// that itself changes the value of k every time is called for ever.
//
// Ownership of k, limits and errors are those of [Cache.Set]: after an error, k is
// absent. The time to live begins anew, as [Options].TTL says. Update does not allocate
// but for a buffer now and then that later calls use again. It counts in [Stats] as one
// Set, or one Del if fn does not keep k.
func (c *Cache) Update(k []byte, fn func(old []byte, ok bool) (new []byte, keep bool)) error {
	mustBeFunc("Update", fn != nil)
	return c.update(k, "update", func(old []byte, ok bool) ([]byte, bool, error) {
		v, keep := fn(old, ok)
		return v, keep, nil
	})
}

// Append appends suffix to the value of k. If k is not there, it is a [Cache.Set] of
// suffix. It copies the value, and copies it again if others write to k meanwhile.
// Ownership, limits, errors, time to live and allocation are those of [Cache.Update].
// It counts as one Set in [Stats].
func (c *Cache) Append(k, suffix []byte) error {
	return c.update(k, "append to", func(old []byte, _ bool) ([]byte, bool, error) {
		return append(old, suffix...), true, nil
	})
}

// update is Update of what fn makes of the value, unless that is an error: then nothing
// changes. verb is what the caller asked for.
func (c *Cache) update(
	k []byte, verb string, fn func(old []byte, ok bool) (v []byte, keep bool, err error),
) error {
	// fn may change its copy, so the comparison needs one of its own.
	mine, theirs := scratches.Get().(*scratch), scratches.Get().(*scratch)
	defer mine.release()
	defer theirs.release()
	w := write{k: k, h: c.shared.hash(k)}
	for ; ; w.silent = true {
		old, ok := c.peek(mine.buf[:0], &w)
		mine.buf = old
		theirs.buf = append(theirs.buf[:0], old...)
		v, keep, err := fn(theirs.buf, ok)
		if err != nil {
			return err
		}
		theirs.fit(len(v))
		w.expect(old, ok)
		if w.del = !keep; w.del {
			w.reason = EvictDeleted
			if _, err := c.remove(&w, nil); err != errUnmet {
				return nil // removed, or not there since the cache is closed
			}
			continue
		}
		w.v, w.expiry, w.reason = v, c.shared.Default(), EvictReplaced
		if err := c.apply(&w, verb); err != errUnmet {
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

// GetAndDel removes k, appends the value that it had to dst, and returns the extended
// slice; dst as it is, and false, if k is not there. Of several calls at once, one gets
// the value. The bytes belong to the caller. GetAndDel does not allocate if dst has room
// for the value. It locks one bucket, and counts in [Stats] as a Del, not as a lookup.
func (c *Cache) GetAndDel(dst, k []byte) ([]byte, bool) {
	w := write{k: k, h: c.shared.hash(k), del: true, reason: EvictDeleted}
	found, _ := c.remove(&w, &dst)
	return dst, found
}
