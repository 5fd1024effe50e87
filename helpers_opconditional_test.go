package ringcache

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

func (r *runner) setIfAbsent(o op) error {
	known := r.before(o.id)
	s, v := r.newValue(o, r.sizeOf(o))
	if o.flags&timedVariant != 0 {
		return r.setIfAbsentWithTTL(o, known, s, v)
	}
	stored, err := r.c.SetIfAbsent(r.keyOf(o.id), v)
	if err != nil {
		return err
	}
	if err := r.answered(known, !stored); err != nil || !stored {
		return err
	}
	return r.stored(o, s, r.g.ttl)
}

// timedVariant is the flag of an operation that gives the entry a TTL.
const timedVariant = 0x80

func (r *runner) setIfAbsentWithTTL(o op, known known, s stamp, v []byte) error {
	ttl, held := r.ttlOf(o), []byte("held before")
	out, stored, err := r.c.SetIfAbsentWithTTL(held, r.keyOf(o.id), v, ttl)
	was, ok := bytes.CutPrefix(out, held)
	there := !stored && err == nil && (ttl >= 0 || len(known.candidates) > 0 && r.c.Has(r.keyOf(o.id)))
	switch {
	case !ok, stored && (ttl < 0 || isBrief(ttl) || len(was) > 0):
		return fmt.Errorf("for %v it returns %v and %.32q", ttl, stored, out)
	case err != nil && !(isBrief(ttl) && errors.Is(err, ErrTTLTooShort)):
		return err
	}
	if err := r.answered(known, there); err != nil {
		return err
	}
	switch {
	case there:
		return r.hit(o.id, was)
	case stored:
		return r.stored(o, s, ttl)
	}
	r.forget(o.id)
	return r.found(o.id, r.c.Has(r.keyOf(o.id)))
}

// valueFor returns a value for a conditional write: of those that the key may
// have, or a new one.
func (r *runner) valueFor(o op, known known) (stamp, []byte) {
	if len(known.candidates) > 0 && o.flags&1 != 0 && known.candidates[0].size <= r.maxValue() {
		s := known.candidates[0]
		return s, r.bytesOf(s)
	}
	return r.newValue(o, r.sizeOf(o))
}

func (r *runner) setIfChanged(o op) error {
	known := r.before(o.id)
	s, v := r.valueFor(o, known)
	given := bytes.Clone(v)
	changed, err := r.c.SetIfChanged(r.keyOf(o.id), v)
	if err != nil {
		return err
	}
	if changed {
		if known.there && r.wrote(known.candidates[0], given) {
			return errors.New("an equal value was written again")
		}
		return r.kept(o, s, known)
	}
	if err := r.hit(o.id, given); err != nil {
		return fmt.Errorf("not changed: %w", err)
	}
	return r.readBack(o, -1)
}

func (r *runner) compareAndSwap(o op) error {
	known := r.before(o.id)
	_, v := r.valueFor(o, known)
	old := bytes.Clone(v)
	s, v := r.newValue(o, r.sizeOf(o))
	swapped, err := r.c.CompareAndSwap(r.keyOf(o.id), old, v)
	if err != nil {
		return err
	}
	fits := slices.ContainsFunc(known.candidates, func(s stamp) bool { return r.wrote(s, old) })
	switch {
	case swapped && !fits:
		return fmt.Errorf("swapped for a value of %d bytes, want one of %v", len(old), known.candidates)
	case swapped:
		known.there = true
		return r.kept(o, s, known)
	case fits && len(known.candidates) == 1:
		return r.answered(known, false)
	}
	return nil
}

func (r *runner) update(o op) error {
	known := r.before(o.id)
	s, v := r.newValue(o, r.sizeOf(o))
	v = bytes.Clone(v)
	keep := o.flags&3 != 0
	calls := 0
	var err error
	k := bytes.Clone(r.keyOf(o.id))
	ttl, update := r.g.ttl, r.c.Update
	if o.flags&timedVariant != 0 {
		ttl = r.ttlOf(o)
		update = func(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
			return r.c.UpdateWithTTL(k, ttl, fn)
		}
	}
	there := false
	failed := update(k, func(old []byte, ok bool) ([]byte, bool) {
		there = ok
		if calls++; calls == 2 { // the first try has pushed it out itself
			known = r.before(o.id)
			known.candidates = nil
		}
		if err = r.answered(known, ok); ok && err == nil {
			err = r.hit(o.id, old)
		}
		r.c.Has(k) // no lock is held
		if len(old) >= len(v) {
			old = old[:copy(old, v)] // fn may do as it likes with its copy
			return old, keep
		}
		clear(old)
		return v, keep
	})
	if keep && !there && isBrief(ttl) && errors.Is(failed, ErrTTLTooShort) {
		keep, failed = false, nil
	}
	if err != nil || failed != nil || calls > 2 {
		return fmt.Errorf("called back %d times: %w, %w", calls, err, failed)
	}
	if !keep || !there && (ttl < 0 || isBrief(ttl)) {
		r.forget(o.id)
		return r.found(o.id, r.c.Has(k))
	}
	if there {
		return r.storedUntil(o, s, known.deadline)
	}
	return r.stored(o, s, ttl)
}

func (r *runner) append(o op) error {
	known := r.before(o.id)
	s, v := r.newValue(o, r.sizeOf(o)%100)
	long := 0
	for _, c := range known.candidates {
		long = max(long, c.size)
	}
	if err := r.c.Append(r.keyOf(o.id), v); err != nil {
		if errors.Is(err, ErrTooLarge) && long+len(v) > r.maxValue() {
			r.forget(o.id)
			return nil
		}
		return err
	}
	if len(known.candidates) == 0 {
		return r.stored(o, s, r.g.ttl)
	}
	// It was there or not, so there are two possible answers.
	got, ok := r.c.HasGet(nil, r.keyOf(o.id))
	for _, c := range known.candidates {
		r.version++
		both := stamp{id: o.id, version: r.version, size: c.size + s.size}
		r.parts[both.version] = append(r.partsOf(c), s)
		if ok && r.wrote(both, got) {
			known.there = known.there || c.size > 0 // behind an empty value it looks like a new one
			return r.kept(o, both, known)
		}
		delete(r.parts, both.version)
	}
	if known.there && !r.dropped[o.id] {
		return fmt.Errorf("found %d bytes (%v), want %v and %v", len(got), ok, known.candidates, s)
	}
	return r.stored(o, s, r.g.ttl)
}

// partsOf returns what a value was put together of.
func (l *life) partsOf(s stamp) []stamp {
	if parts, ok := l.parts[s.version]; ok {
		return slices.Clone(parts)
	}
	return []stamp{s}
}

func (r *runner) getAndDel(o op) error {
	known := r.before(o.id)
	held := []byte("held before")
	got, ok := r.c.GetAndDel(held, r.keyOf(o.id))
	if !bytes.HasPrefix(got, held) {
		return fmt.Errorf("dst held %q, the result begins with %.32q", held, got)
	}
	if err := r.answered(known, ok); err != nil {
		return err
	}
	v := got[len(held):]
	if ok && !slices.ContainsFunc(known.candidates, func(s stamp) bool { return r.wrote(s, v) }) {
		return fmt.Errorf("found %d bytes, want one of %v", len(v), known.candidates)
	}
	r.forget(o.id)
	return r.found(o.id, r.c.Has(r.keyOf(o.id)))
}
