package model

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The operations of the witness that look at an entry and change it, and those that remove it.

// keeping updates the model after a write that keeps the expiry of the entry before it, or stores
// a new one.
func (w *witness) keeping(k entryKey, e *entry, there bool, s ringtest.Stamp) error {
	next := w.newEntry(s, w.on.started, w.p.o.TTL, w.p.o.TTLJitter)
	if there {
		next.soon, next.late = e.soon, e.late
	}
	return w.replaced(k, next)
}

// update checks above all that no write evicts the entry that it is about: the function must see
// it, and is called once.
func (w *witness) update() error {
	k := w.draw()
	s, v := w.value(k)
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	verdict, ttl, calls, there := w.rnd.IntN(6), time.Duration(0), 0, false
	if verdict == 2 {
		ttl = w.ttl()
	}
	var seen error
	w.begin(opWrite, k)
	if verdict == 1 {
		w.on.kind = opDelete
	}
	err := c.Update(key, func(old *ringtest.Entry) {
		calls++
		there = old.Present
		if seen == nil && calls == 1 {
			if seen = w.found(k, e, there); seen == nil && there {
				seen = w.hit(k, e, old.Value, true)
			}
			if seen == nil && there {
				seen = w.fits(k, w.was(k), old.TTL)
			}
		}
		switch verdict {
		case 0:
		case 1:
			old.Del()
		case 2:
			old.SetWithTTL(v, ttl)
		default:
			old.Set(v)
		}
	})
	w.end()
	if seen != nil || calls != 1 && !(calls == 2 && w.leftOutgrown(k, e)) {
		return fmt.Errorf("the function of an Update was called %d times, and saw the entry: %v, "+
			"which OnRemove was told of for %v: %w", calls, there, w.on.told[k], seen)
	}
	switch {
	case verdict == 0:
		return err
	case verdict == 1:
		w.counted(k.space, counts{dels: 1})
		return errors.Join(err, w.gone(k))
	case verdict == 2:
		w.counted(k.space, counts{sets: 1})
		return w.wrote(k, s, ttl, err)
	case err != nil:
		return err
	}
	w.counted(k.space, counts{sets: 1})
	return w.keeping(k, e, there, s)
}

func (w *witness) compareAndSwap() error {
	k := w.draw()
	s, v := w.value(k)
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	old := []byte("none has it")
	same := e != nil && w.rnd.IntN(4) > 0
	if same {
		old = e.Value(nil)
	}
	w.begin(opWrite, k)
	swapped, err := c.CompareAndSwap(key, old, v)
	w.end()
	w.counted(k.space, counts{sets: 1})
	switch {
	case err != nil:
		return err
	case swapped && !same:
		return errors.New("swapped for another value than it had")
	case same:
		if err := w.found(k, e, swapped); err != nil || !swapped {
			return err
		}
		return w.keeping(k, e, true, s)
	}
	if now := w.live[k]; now != nil && !e.isOver(w.on.started) {
		soon := now.idleSoon
		if w.used(now, w.on.started, false); !w.isThere(e) {
			now.idleSoon = soon
		}
	}
	return nil
}

func (w *witness) setIfChanged() error {
	k := w.draw()
	s, v := w.value(k)
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	same := e != nil && w.rnd.IntN(2) == 0 && e.Size <= w.bound/16
	if same {
		s, v = e.Stamp, e.Value(nil)
	}
	equal := e != nil && e.Wrote(v) // short values may be equal by chance
	w.begin(opWrite, k)
	changed, err := c.SetIfChanged(key, v)
	w.end()
	w.counted(k.space, counts{sets: 1})
	switch {
	case err != nil:
		return err
	case equal && !changed:
		return w.hit(k, e, v, true)
	case equal:
		if err := w.found(k, e, false); err != nil {
			return err
		}
	case !changed:
		return errors.New("another value was not stored")
	}
	there := w.isThere(e)
	next := w.newEntry(s, w.on.started, w.p.o.TTL, w.p.o.TTLJitter)
	if there {
		next.soon, next.late = e.soon, e.late
	} else if e != nil && !equal { // it may have been there still
		next.soon = min(max(e.soon, 1), max(next.soon, 1))
		if e.late == 0 || next.late == 0 {
			next.late = unknown
		}
		next.late = max(e.late, next.late)
	}
	return w.replaced(k, next)
}

func (w *witness) setIfAbsent() error {
	k, ttl := w.draw(), w.ttl()
	s, v := w.value(k)
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	w.begin(opWrite, k)
	out, stored, err := c.SetIfAbsent([]byte("dst"), key, v, ttl)
	w.end()
	w.counted(k.space, counts{sets: 1})
	was, ok := bytes.CutPrefix(out, []byte("dst"))
	if !ok {
		return fmt.Errorf("dst became %.20q", out)
	}
	there := w.isThere(e) && !w.leftOutgrown(k, e)
	if there != (w.live[k] != nil && !stored) && !(e != nil && e.mayBeOver(w.now())) {
		return fmt.Errorf("stored is %v, and OnRemove was told of %v", stored, w.on.told[k])
	}
	switch {
	case there: // the TTL is used only for a new entry
		return errors.Join(err, w.hit(k, e, was, true))
	case !stored && err == nil && len(was) > 0:
		return w.hit(k, e, was, true)
	case !stored && e != nil && e.Size == 0 && err == nil && w.live[k] != nil:
		return w.hit(k, e, was, true)
	}
	return w.wrote(k, s, ttl, err)
}

func (w *witness) touch() error {
	k, ttl := w.draw(), w.ttl()
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	w.begin(opRewrite, k)
	ok := c.Touch(key, ttl)
	w.end()
	if !ok && e != nil && e.Size > w.bound/16 &&
		slices.Contains(w.on.told[k], ringcache.RemovedEvicted) {
		return w.gone(k)
	}
	if err := w.found(k, e, ok); err != nil || !ok {
		return err
	}
	if !isStored(ttl) {
		return w.gone(k)
	}
	if w.live[k] == nil {
		return fmt.Errorf("true, and OnRemove was told of it for %v", w.on.told[k])
	}
	w.setTTL(w.live[k], w.on.started, ttl, 0)
	return w.look(k, lookTTL)
}

// del is Del or GetAndDel.
func (w *witness) del() error {
	k := w.draw()
	c, key, e := w.in(k), keyBytes(k.id), w.was(k)
	take := w.rnd.IntN(2) == 0
	w.begin(opDelete, k)
	var v []byte
	var ok bool
	if take {
		v, ok = c.GetAndDel(nil, key)
	} else {
		ok = c.Del(key)
	}
	w.end()
	w.counted(k.space, counts{dels: 1})
	if err := w.found(k, e, ok); err != nil {
		return err
	}
	if ok && take && !e.Wrote(v) {
		return fmt.Errorf("found %d bytes, want %v", len(v), e.Stamp)
	}
	return w.gone(k)
}
