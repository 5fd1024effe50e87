package ringcache

import (
	"sync"
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// The methods of Cache in this file read the value of a key and change it atomically.

// SetIfAbsent stores v under k, as [Cache.SetWithTTL] does, if k is absent, and returns dst
// unchanged. If k is present, it appends the value of k to dst and returns the extended slice and
// false. An existing entry keeps its TTL.
//
// SetIfAbsent counts in [Stats] as a Set in both cases, and an entry that it finds counts as read.
// If dst has room for the value, it normally allocates only where Set does.
func (c *Cache) SetIfAbsent(
	dst, k, v []byte, ttl time.Duration,
) (out []byte, stored bool, err error) {
	_, stored, err = c.setIfAbsent(&dst, k, v, ttl)
	return dst, stored, err
}

// setIfAbsent is SetIfAbsent that also reports whether k was present.
func (c *Cache) setIfAbsent(
	dst *[]byte, k, v []byte, ttl time.Duration,
) (there, stored bool, err error) {
	var room [stackKey]byte
	w := c.writeOf(room[:0], k, v, store.Replaced)
	w.cond, w.reads, w.found, w.life = ifAbsent, true, dst, withTTL(ttl)
	err = c.put(c.space, &w, "ringcache: set")
	there = err == errUnmet
	stored, err = w.met(err)
	return there, stored, err
}

// SetIfChanged stores v under k, as [Cache.Set] does, unless k already has that value, and reports
// whether it did. The entry keeps its TTL; a new one gets [Options].TTL. Setting an equal value
// normally evicts nothing and keeps the entry's age. An existing entry counts as read; the call
// counts in [Stats] as a Set.
func (c *Cache) SetIfChanged(k, v []byte) (changed bool, err error) {
	var room [stackKey]byte
	w := c.writeOf(room[:0], k, v, store.Replaced)
	w.cond, w.keeps, w.reads = ifChanged, true, true
	return w.met(c.put(c.space, &w, "ringcache: set"))
}

// CompareAndSwap stores new, as [Cache.Set] does, if the value of k equals old, and reports whether
// it did. If k is absent, it stores nothing; a nil old is the same as an empty one. The entry keeps
// its TTL and counts as read; the call counts in [Stats] as a Set.
func (c *Cache) CompareAndSwap(k, old, new []byte) (swapped bool, err error) {
	var room [stackKey]byte
	w := c.writeOf(room[:0], k, new, store.Replaced)
	w.cond, w.old, w.keeps, w.reads = ifEqual, old, true, true
	return w.met(c.put(c.space, &w, "ringcache: swap"))
}

// met reports whether the write was made, given its error. A condition that does not hold is no
// error to the user.
func (w *write) met(err error) (bool, error) {
	if err == errUnmet {
		return false, nil
	}
	return err == nil && !w.unstored, err
}

// Entry is the entry of a key as [Cache.Update] or [Typed.Update] found it. The last call of Set,
// SetWithTTL or Del determines the result; without one, the value stays. It is valid until the
// function returns.
type Entry[V any] struct {
	Value   V             // empty or zero if not Present
	TTL     time.Duration // as of [Cache.TTL]; 0 if the entry never expires, or is absent
	Present bool

	verdict verdict
	next    V
	life    lifetime
}

// verdict is what becomes of an Entry.
type verdict uint8

const (
	toKeep verdict = iota
	toSet          // next is stored for life; if byOptions, an existing entry keeps its expiry
	toDelete
)

// Set stores v. An existing entry keeps its TTL; a new one gets [Options].TTL. v may be a modified
// Value, unless codec.Memo decoded that, and must stay valid until Update returns.
func (e *Entry[V]) Set(v V) { e.verdict, e.next, e.life = toSet, v, byOptions }

// SetWithTTL stores v with a TTL, as [Cache.SetWithTTL] does.
func (e *Entry[V]) SetWithTTL(v V, ttl time.Duration) {
	e.verdict, e.next, e.life = toSet, v, withTTL(ttl)
}

// Del removes the entry.
func (e *Entry[V]) Del() { e.verdict = toDelete }

// Update applies fn to the entry of k atomically. fn calls [Entry.Set], [Entry.SetWithTTL] or
// [Entry.Del], or none of them to leave the entry unchanged. If it calls one, and value or
// expiry are no longer the same then, fn is called again with the new ones. No lock is held while
// it runs.
//
// An existing entry counts as read. Update has the limits and errors of [Cache.SetWithTTL]: after
// an error, k is absent. In [Stats], Update counts as the Set or Del that fn requested, if any.
func (c *Cache) Update(k []byte, fn func(e *Entry[[]byte])) error {
	mustBeFunc("Update", fn != nil)
	return c.update(k, func(e *Entry[[]byte]) error { fn(e); return nil })
}

// byteEntries are the Entries of byte slices that no call is using.
var byteEntries = sync.Pool{New: func() any { return new(Entry[[]byte]) }}

// update is Update by fn. If fn returns an error, nothing changes.
func (c *Cache) update(k []byte, fn func(e *Entry[[]byte]) error) error {
	// fn may modify its copy, so the comparison needs another one.
	mine, theirs := scratch.Get(), scratch.Get()
	defer mine.Release()
	defer theirs.Release()
	e := byteEntries.Get().(*Entry[[]byte])
	defer func() {
		*e = Entry[[]byte]{} // keep nothing of the caller's
		byteEntries.Put(e)
	}()
	var room [stackKey]byte
	w := c.writeOf(room[:0], k, nil, store.Replaced)
	w.repeats = true
	for mode := withValue | reading; ; {
		old, expiry, got := c.find(mine.Bytes[:0], w.Key, w.Hash, mode)
		ok := got == hit
		if ok {
			mode = withValue // only one read
		}
		mine.Bytes = old
		theirs.Bytes = append(theirs.Bytes[:0], old...)
		*e = Entry[[]byte]{Value: theirs.Bytes, TTL: c.left(expiry, got), Present: ok}
		if err := fn(e); err != nil {
			return err
		}
		theirs.Fit(len(e.next))
		w.cond, w.old, w.expires = ifAbsent, nil, expiry
		if ok {
			w.cond, w.old = ifSame, old // the key must still be as it was found
		}
		if err := c.settle(&w, e); err != errUnmet {
			if e.verdict != toKeep {
				c.wrote(w.del)
			}
			return err
		}
		w.Key, w.Hash = c.key(room[:0], k) // its namespace may have been reset
	}
}

// settle carries out what the function of an Update has decided. It returns errUnmet if the entry
// has changed since the function saw it.
func (c *Cache) settle(w *write, e *Entry[[]byte]) error {
	w.Value, w.Reason, w.life = e.next, store.Replaced, e.life
	w.keeps = e.verdict == toSet && e.Present && e.life == byOptions
	w.del, w.unstored = e.verdict == toDelete, false
	switch e.verdict {
	case toKeep:
		return nil
	case toDelete:
		w.Reason = store.Deleted
		if _, err := c.remove(w, nil); err == errUnmet {
			return err
		}
		return nil // removed, or absent
	}
	return c.put(c.space, w, "ringcache: update")
}

// GetAndDel removes k, appends its value to dst, and returns the extended slice and true. If k is
// absent, it returns dst unchanged and false. Of concurrent calls, only one gets the value of a
// write. The bytes belong to the caller. If dst has room for the value, it normally allocates only
// where Del does. It counts in [Stats] as a Del, not a lookup.
func (c *Cache) GetAndDel(dst, k []byte) ([]byte, bool) {
	found := c.del(k, store.Deleted, &dst)
	return dst, found
}
