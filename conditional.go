package ringcache

import (
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// The methods of this file look at the value that a key has and change it in
// one step: no other call of the same key comes in between.

// SetIfAbsent is [Cache.Set] if k is absent, and reports whether it stored v. An expired
// entry is absent. An entry that is there stays as it is, with its expiry; finding it
// counts as a read when the policy decides what to evict. In [Stats], SetIfAbsent counts as
// a Set either way. It reports false and no error if a [Namespace] that is above its quota
// or was dropped does not store v.
func (c *Cache) SetIfAbsent(k, v []byte) (stored bool, err error) {
	var w write
	w.Key, w.Value = k, v
	c.setDefaults(&w)
	w.cond, w.reads = ifAbsent, true
	return w.met(c.apply(&w, "set"))
}

// SetIfAbsentWithTTL is [Cache.SetIfAbsent] with the TTL of [Cache.SetWithTTL]. If k is
// there, it appends its value to dst and returns the extended slice, and false; otherwise it
// returns dst. Value and answer belong together: no other call comes in between. With a lock,
// dst receives the owner's token; with an idempotency key, the first call's result.
//
// A TTL that is negative or below 100 ms matters only if k is absent: nothing is stored then.
// SetIfAbsentWithTTL does not allocate if dst has room for the value. A dst of nil allocates
// for every value found that is not empty.
func (c *Cache) SetIfAbsentWithTTL(
	dst, k, v []byte, ttl time.Duration,
) (out []byte, stored bool, err error) {
	_, stored, err = c.setIfAbsent(&dst, k, v, ttl)
	return dst, stored, err
}

// setIfAbsent is SetIfAbsentWithTTL that also reports whether k was there.
func (c *Cache) setIfAbsent(
	dst *[]byte, k, v []byte, ttl time.Duration,
) (there, stored bool, err error) {
	var w write
	w.Key, w.Value, w.Hash, w.Reason = k, v, c.shared.Hash(k), store.Replaced
	w.cond, w.reads, w.found = ifAbsent, true, dst
	err = c.applyFor(&w, withTTL(ttl), "set")
	there = err == errUnmet
	stored, err = w.met(err)
	return there, stored, err
}

// SetIfChanged is [Cache.Set] unless v is the value of k already, and reports whether it
// stored v. The entry keeps its expiry; a new one gets [Options].TTL. An equal value is not
// written again: it takes no room, evicts nothing, and keeps its age. An entry that is there
// counts as read when the policy decides what to evict. In [Stats], SetIfChanged counts as a
// Set either way.
func (c *Cache) SetIfChanged(k, v []byte) (changed bool, err error) {
	var w write
	w.Key, w.Value = k, v
	c.setDefaults(&w)
	w.cond, w.keeps, w.reads = ifChanged, true, true
	return w.met(c.apply(&w, "set"))
}

// CompareAndSwap is [Cache.Set] of new if the value of k is old, and reports whether it
// stored it. If k is absent it does not; nil and empty are the same old value. The entry keeps
// its expiry, and counts as read when the policy decides what to evict. (Room is made for a
// large value first; if that evicts k itself, nothing is stored.) In [Stats], CompareAndSwap
// counts as a Set either way. If a [Namespace] that is above its quota has no room for new, it
// reports false, and k is absent.
func (c *Cache) CompareAndSwap(k, old, new []byte) (swapped bool, err error) {
	var w write
	w.Key, w.Value = k, new
	w.Hash, w.Reason = c.shared.Hash(k), store.Replaced
	w.cond, w.old, w.keeps, w.reads = ifEqual, old, true, true
	return w.met(c.apply(&w, "swap"))
}

// met reports whether the write was made, and tells a condition that does not hold from an
// error.
func (w *write) met(err error) (bool, error) {
	if err == errUnmet {
		return false, nil
	}
	return err == nil && !w.Unstored, err
}

// Update replaces the value of k by the one that fn returns. fn gets a copy of the value,
// which it may change, and whether k is there; it returns the new value, or false for keep to
// remove k. old is valid until fn returns; new must stay valid until Update does.
//
// If another call changes the value meanwhile, fn is called again with the new one: it may run
// several times, and the last call counts. No lock is held while it runs. An fn that changes the
// value of k itself each time is called forever.
//
// The entry keeps its expiry and counts as read when the policy decides what to evict; a new
// entry gets [Options].TTL. Ownership of k, limits and errors are those of [Cache.Set]: after
// an error, k is absent. Update allocates nothing but a larger buffer now and then, which later
// calls use again. It counts in [Stats] as one Set, or one Del if fn does not keep k.
func (c *Cache) Update(k []byte, fn func(old []byte, ok bool) (new []byte, keep bool)) error {
	mustBeFunc("Update", fn != nil)
	return c.update(k, byOptions, "update", infallible(fn))
}

// UpdateWithTTL is [Cache.Update] in which a new entry gets ttl, as with [Cache.SetWithTTL]. An
// entry that is there keeps its expiry, so a counter that is made with a TTL begins anew when
// its window is over, however often it is updated. A TTL that is negative or below 100 ms
// matters only if k is absent: the new value is not stored then.
func (c *Cache) UpdateWithTTL(
	k []byte, ttl time.Duration, fn func(old []byte, ok bool) (new []byte, keep bool),
) error {
	mustBeFunc("UpdateWithTTL", fn != nil)
	return c.update(k, withTTL(ttl), "update", infallible(fn))
}

// infallible returns the function of an Update as one that never fails.
func infallible(fn func([]byte, bool) ([]byte, bool)) updater {
	return func(old []byte, ok bool) ([]byte, bool, error) {
		v, keep := fn(old, ok)
		return v, keep, nil
	}
}

// Append appends suffix to the value of k. If k is absent, it is a [Cache.Set] of suffix;
// use [Cache.UpdateWithTTL] to give the new entry a TTL. It copies the value, and copies it
// again if others write to k meanwhile. Ownership, limits, errors, expiry and allocation are
// those of [Cache.Update]. It counts as one Set in [Stats].
func (c *Cache) Append(k, suffix []byte) error {
	return c.update(k, byOptions, "append to", func(old []byte, _ bool) ([]byte, bool, error) {
		return append(old, suffix...), true, nil
	})
}

// updater is the function of an update. After an error nothing changes.
type updater func(old []byte, ok bool) (v []byte, keep bool, err error)

// update is Update by fn, with the lifetime of a new entry. verb is what the caller asked for.
func (c *Cache) update(k []byte, l lifetime, verb string, fn updater) error {
	// fn may change its copy, so the comparison needs another.
	mine, theirs := scratch.Get(), scratch.Get()
	defer mine.Release()
	defer theirs.Release()
	w := c.writeOf(k, nil, store.Replaced)
	for mode := withValue | reading; ; mode, w.silent = withValue, true { // it is one read
		old, expiry, got := c.lookup(mine.Bytes[:0], w.Key, w.Hash, mode)
		ok := got == hit
		mine.Bytes = old
		theirs.Bytes = append(theirs.Bytes[:0], old...)
		v, keep, err := fn(theirs.Bytes, ok)
		if err != nil {
			return err
		}
		theirs.Fit(len(v))
		w.expect(old, ok)
		if w.del = !keep; w.del {
			w.keeps, w.Reason = false, store.Deleted
			if _, err := c.remove(&w, nil); err != errUnmet {
				return nil // removed, or not there since the cache is closed
			}
			continue
		}
		w.Value, w.Expiry, w.keeps, w.Reason = v, expiry, ok, store.Replaced
		if ok {
			err = c.apply(&w, verb)
		} else {
			err = c.applyFor(&w, l, verb)
		}
		if err != errUnmet {
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

// GetAndDel removes k, appends the value that it had to dst, and returns the extended
// slice; dst as it is, and false, if k is not there. Of several calls at once, one gets
// the value. The bytes belong to the caller. GetAndDel does not allocate if dst has room
// for the value. It locks one bucket, and counts in [Stats] as a Del, not as a lookup.
func (c *Cache) GetAndDel(dst, k []byte) ([]byte, bool) {
	w := c.writeOf(k, nil, store.Deleted)
	w.del = true
	found, _ := c.remove(&w, &dst)
	return dst, found
}
