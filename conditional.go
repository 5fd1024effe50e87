package ringcache

import (
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// The methods of this file read the value of a key and change it in one atomic step: no other call
// for the same key comes in between.

// SetIfAbsent is [Cache.Set] if k is absent, and reports whether it stored v. An expired entry is
// absent. An existing entry stays unchanged, with its expiry, and finding it counts as a read for
// the eviction policy. SetIfAbsent counts in [Stats] as a Set in both cases. If a [Namespace] was
// dropped, SetIfAbsent stores nothing and reports false.
func (c *Cache) SetIfAbsent(k, v []byte) (stored bool, err error) {
	var w write
	w.Key, w.Value = k, v
	c.setDefaults(&w)
	w.cond, w.reads = ifAbsent, true
	return w.met(c.apply(&w, "set"))
}

// SetIfAbsentWithTTL is [Cache.SetIfAbsent] with a TTL, as in [Cache.SetWithTTL]. If k is present,
// it appends the value of k to dst and returns the extended slice and false; otherwise it returns
// dst unchanged. It reads that value in the same atomic step. If the entry is a lock, dst receives
// the owner's token; if it is an idempotency key, the result of the first call.
//
// A TTL that is negative, or above 0 and below 100 ms, matters only if k is absent: nothing is then
// stored.
// SetIfAbsentWithTTL does not allocate if dst has room for the value. With a nil dst, it allocates
// for every value found that is not empty.
func (c *Cache) SetIfAbsentWithTTL(
	dst, k, v []byte, ttl time.Duration,
) (out []byte, stored bool, err error) {
	_, stored, err = c.setIfAbsent(&dst, k, v, ttl)
	return dst, stored, err
}

// setIfAbsent is SetIfAbsentWithTTL that also reports whether k was present.
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

// SetIfChanged is [Cache.Set] unless v is already the value of k, and reports whether it stored v.
// The entry keeps its expiry; a new one gets [Options].TTL. An equal value is not written again: it
// needs no room, evicts nothing, and keeps its age. An existing entry counts as read for the
// eviction policy. SetIfChanged counts in [Stats] as a Set in both cases.
func (c *Cache) SetIfChanged(k, v []byte) (changed bool, err error) {
	var w write
	w.Key, w.Value = k, v
	c.setDefaults(&w)
	w.cond, w.keeps, w.reads = ifChanged, true, true
	return w.met(c.apply(&w, "set"))
}

// CompareAndSwap is [Cache.Set] of new if the value of k is old, and reports whether it stored new.
// If k is absent, it stores nothing; a nil old is the same as an empty one. The entry keeps its
// expiry, and counts as read for the eviction policy. (Room for a large value is made first; if
// that evicts k itself, nothing is stored.) CompareAndSwap counts in [Stats] as a Set in both
// cases.
func (c *Cache) CompareAndSwap(k, old, new []byte) (swapped bool, err error) {
	var w write
	w.Key, w.Value = k, new
	w.Hash, w.Reason = c.shared.Hash(k), store.Replaced
	w.cond, w.old, w.keeps, w.reads = ifEqual, old, true, true
	return w.met(c.apply(&w, "swap"))
}

// met reports whether the write was made, given its error. A condition that does not hold is no
// error to the user.
func (w *write) met(err error) (bool, error) {
	if err == errUnmet {
		return false, nil
	}
	return err == nil && !w.Unstored, err
}

// Update replaces the value of k with the one that fn returns. fn receives a copy of the value,
// which it may modify, and whether k is present; it returns the new value, or false for keep to
// remove k. old is valid until fn returns; new must stay valid until Update returns.
//
// If another call changes the value meanwhile, fn is called again with the new value: it may run
// several times, and only its last call takes effect. No lock is held while it runs. If fn itself
// changes the value of k each time, Update never returns.
//
// The entry keeps its expiry and counts as read for the eviction policy; a new entry gets
// [Options].TTL. Ownership of k, limits and errors are those of [Cache.Set]: after an error, k is
// absent. Update does not allocate, except occasionally for a larger buffer, which later calls
// reuse. It counts in [Stats] as one Set, or as one Del if fn does not keep k.
func (c *Cache) Update(k []byte, fn func(old []byte, ok bool) (new []byte, keep bool)) error {
	mustBeFunc("Update", fn != nil)
	return c.update(k, byOptions, "update", infallible(fn))
}

// UpdateWithTTL is [Cache.Update] with a TTL for a new entry, as in [Cache.SetWithTTL]. An existing
// entry keeps its expiry, so a counter created with a TTL starts again when its window is over,
// however often it is updated. A TTL that is negative, or above 0 and below 100 ms, matters only
// if k is absent: the new value is then not stored.
func (c *Cache) UpdateWithTTL(
	k []byte, ttl time.Duration, fn func(old []byte, ok bool) (new []byte, keep bool),
) error {
	mustBeFunc("UpdateWithTTL", fn != nil)
	return c.update(k, withTTL(ttl), "update", infallible(fn))
}

// infallible adapts the function of an Update, which never fails, to an updater.
func infallible(fn func([]byte, bool) ([]byte, bool)) updater {
	return func(old []byte, ok bool) ([]byte, bool, error) {
		v, keep := fn(old, ok)
		return v, keep, nil
	}
}

// Append appends suffix to the value of k. If k is absent, Append is a [Cache.Set] of suffix; use
// [Cache.UpdateWithTTL] to give the new entry a TTL. Append copies the value, and copies it again
// if other goroutines write to k meanwhile. Ownership, limits, errors, expiry and allocation are
// those of [Cache.Update]. It counts in [Stats] as one Set.
func (c *Cache) Append(k, suffix []byte) error {
	return c.update(k, byOptions, "append to", func(old []byte, _ bool) ([]byte, bool, error) {
		return append(old, suffix...), true, nil
	})
}

// updater is the function of an update. If it returns an error, nothing changes.
type updater func(old []byte, ok bool) (v []byte, keep bool, err error)

// update is Update by fn; l is the lifetime of a new entry, and verb names the call in errors.
func (c *Cache) update(k []byte, l lifetime, verb string, fn updater) error {
	// fn may modify its copy, so the comparison needs another one.
	mine, theirs := scratch.Get(), scratch.Get()
	defer mine.Release()
	defer theirs.Release()
	w := c.writeOf(k, nil, store.Replaced)
	for mode := withValue | reading; ; mode, w.silent = withValue, true { // only one read
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
				return nil // removed, or absent because the cache is closed
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

// expect makes the write conditional on the key still being as it was found.
func (w *write) expect(old []byte, ok bool) {
	w.cond, w.old = ifAbsent, nil
	if ok {
		w.cond, w.old = ifEqual, old
	}
}

// GetAndDel removes k, appends its value to dst, and returns the extended slice and true. If k is
// absent, it returns dst unchanged and false. Of several concurrent calls, exactly one gets the
// value. The bytes belong to the caller. GetAndDel does not allocate if dst has room for the value.
// It locks one bucket, and counts in [Stats] as a Del, not as a lookup.
func (c *Cache) GetAndDel(dst, k []byte) ([]byte, bool) {
	w := c.writeOf(k, nil, store.Deleted)
	w.del = true
	found, _ := c.remove(&w, &dst)
	return dst, found
}
