package ringtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ringcache/ringcache"
)

func (r *Runner) setIfAbsent(o Op) error {
	known := r.before(o.ID)
	s, v := r.newValue(o, r.sizeOf(o))
	ttl, held := r.ttlOf(o), []byte("held before")
	out, stored, err := r.C.SetIfAbsent(held, r.KeyOf(o.ID), v, ttl)
	was, ok := bytes.CutPrefix(out, held)
	there := !stored && err == nil && (ttl >= 0 || len(known.candidates) > 0 && r.C.Has(r.KeyOf(o.ID)))
	switch {
	case !ok, stored && (ttl < 0 || IsBrief(ttl) || len(was) > 0):
		return fmt.Errorf("for %v it returns %v and %.32q", ttl, stored, out)
	case err != nil && !(IsBrief(ttl) && errors.Is(err, ringcache.ErrTTLTooShort)):
		return err
	}
	if err := r.answered(known, there); err != nil {
		return err
	}
	switch {
	case there:
		r.read(o.ID)
		return r.hit(o.ID, was)
	case stored:
		return r.stored(o, s, ttl)
	}
	r.forget(o.ID)
	return r.has(o.ID)
}

// valueFor returns a value for a conditional write: of those that the key may
// have, or a new one.
func (r *Runner) valueFor(o Op, known known) (Stamp, []byte) {
	if len(known.candidates) > 0 && o.flags&1 != 0 && known.candidates[0].Size <= r.maxValue() {
		s := known.candidates[0]
		return s, r.bytesOf(s)
	}
	return r.newValue(o, r.sizeOf(o))
}

func (r *Runner) setIfChanged(o Op) error {
	known := r.before(o.ID)
	s, v := r.valueFor(o, known)
	given := bytes.Clone(v)
	changed, err := r.C.SetIfChanged(r.KeyOf(o.ID), v)
	if err != nil {
		return err
	}
	if changed {
		if known.there && r.wrote(known.candidates[0], given) {
			return errors.New("an equal value was written again")
		}
		return r.kept(o, s, known)
	}
	if err := r.hit(o.ID, given); err != nil {
		return fmt.Errorf("not changed: %w", err)
	}
	r.read(o.ID)
	return r.readBack(o, -1)
}

func (r *Runner) compareAndSwap(o Op) error {
	known := r.before(o.ID)
	_, v := r.valueFor(o, known)
	old := bytes.Clone(v)
	s, v := r.newValue(o, r.sizeOf(o))
	swapped, err := r.C.CompareAndSwap(r.KeyOf(o.ID), old, v)
	if err != nil {
		return err
	}
	fits := slices.ContainsFunc(known.candidates, func(s Stamp) bool { return r.wrote(s, old) })
	switch {
	case swapped && !fits:
		return fmt.Errorf("swapped for a value of %d bytes, want one of %v", len(old), known.candidates)
	case swapped:
		known.there = true
		return r.kept(o, s, known)
	case fits && len(known.candidates) == 1:
		return r.answered(known, false)
	case r.idle != 0:
		return r.has(o.ID) // if it is there, it was read
	}
	return nil
}

// timedVariant is the flag of an operation that gives the entry a TTL.
const timedVariant = 0x80

func (r *Runner) update(o Op) error {
	known := r.before(o.ID)
	s, v := r.newValue(o, r.sizeOf(o))
	v = bytes.Clone(v)
	calls := 0
	var err error
	k := bytes.Clone(r.KeyOf(o.ID))
	there, ttl, timed := false, r.G.TTL, o.flags&timedVariant != 0
	if timed {
		ttl = r.ttlOf(o)
	}
	failed := r.C.Update(k, func(e *Entry) {
		there = e.Present
		if calls++; calls == 2 { // the first try has pushed it out itself
			known = r.before(o.ID)
			known.candidates = nil
		}
		if err = r.answered(known, there); there && err == nil {
			err = r.hit(o.ID, e.Value)
		}
		r.C.Has(k) // no lock is held
		next := v
		if len(e.Value) >= len(v) {
			next = e.Value[:copy(e.Value, v)] // fn may do as it likes with its copy
		} else {
			clear(e.Value)
		}
		switch {
		case o.flags&7 == 0:
			e.Set(next) // the last call counts
			e.Del()
		case o.flags&7 == 1:
		case timed:
			e.SetWithTTL(next, ttl)
		default:
			e.Set(next)
		}
	})
	if timed && o.flags&7 > 1 && IsBrief(ttl) && errors.Is(failed, ringcache.ErrTTLTooShort) {
		failed = nil
	}
	switch {
	case err != nil || failed != nil || calls > 2:
		return fmt.Errorf("called back %d times: %w, %w", calls, err, failed)
	case o.flags&7 == 1:
		if there {
			r.read(o.ID)
		}
		return r.has(o.ID)
	case o.flags&7 == 0, timed && (ttl < 0 || IsBrief(ttl)):
		r.forget(o.ID)
		return r.found(o.ID, r.C.Has(k))
	case there && !timed:
		return r.storedUntil(o, s, known.last)
	}
	return r.stored(o, s, ttl)
}

func (r *Runner) append(o Op) error {
	known := r.before(o.ID)
	s, v := r.newValue(o, r.sizeOf(o)%100)
	long := 0
	for _, c := range known.candidates {
		long = max(long, c.Size)
	}
	if err := r.C.Update(r.KeyOf(o.ID), Append(v)); err != nil {
		if errors.Is(err, ringcache.ErrTooLarge) && long+len(v) > r.maxValue() {
			r.forget(o.ID)
			return nil
		}
		return err
	}
	if len(known.candidates) == 0 {
		return r.stored(o, s, r.G.TTL)
	}
	// It was there or not, so there are two possible answers.
	got, ok := r.C.HasGet(nil, r.KeyOf(o.ID))
	for _, c := range known.candidates {
		r.version++
		both := Stamp{ID: o.ID, Version: r.version, Size: c.Size + s.Size}
		r.parts[both.Version] = append(r.partsOf(c), s)
		if ok && r.wrote(both, got) {
			known.there = known.there || c.Size > 0 // behind an empty value it looks like a new one
			return r.kept(o, both, known)
		}
		delete(r.parts, both.Version)
	}
	if known.there && !r.dropped[o.ID] {
		return fmt.Errorf("found %d bytes (%v), want %v and %v", len(got), ok, known.candidates, s)
	}
	return r.stored(o, s, r.G.TTL)
}

// partsOf returns what a value was put together of.
func (l *Life) partsOf(s Stamp) []Stamp {
	if parts, ok := l.parts[s.Version]; ok {
		return slices.Clone(parts)
	}
	return []Stamp{s}
}

func (r *Runner) getAndDel(o Op) error {
	known := r.before(o.ID)
	held := []byte("held before")
	got, ok := r.C.GetAndDel(held, r.KeyOf(o.ID))
	if !bytes.HasPrefix(got, held) {
		return fmt.Errorf("dst held %q, the result begins with %.32q", held, got)
	}
	if err := r.answered(known, ok); err != nil {
		return err
	}
	v := got[len(held):]
	if ok && !slices.ContainsFunc(known.candidates, func(s Stamp) bool { return r.wrote(s, v) }) {
		return fmt.Errorf("found %d bytes, want one of %v", len(v), known.candidates)
	}
	r.forget(o.ID)
	return r.has(o.ID)
}
