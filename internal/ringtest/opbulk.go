package ringtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
)

// The operations of a stream that are about more than one key.

// setBatch sets entries at once, some of them twice, now and then one that is
// too large.
func (r *Runner) setBatch(o Op) error {
	n := int(o.Arg % 150)
	if r.told {
		n = min(n, 1) // of more, OnRemove tells before it is noted that they were set
	}
	keys, vals := make([][]byte, n), make([][]byte, n+int(o.flags%3))
	tooLarge := -1
	if o.Class%8 == 0 && n > 0 {
		tooLarge = int(o.Class) % n
	}
	for i := range keys {
		id := (o.ID + uint32(i)*uint32(o.Class)) % (1 << 16)
		r.version++
		s := Stamp{ID: id, Version: r.version, Size: min((i*37+int(o.flags))%200, r.maxValue())}
		keys[i], vals[i] = bytes.Clone(r.KeyOf(id)), s.Value(nil)
		if i == tooLarge {
			vals[i] = make([]byte, r.maxValue()+1)
			r.forget(id)
		} else if !r.told {
			r.forget(id)
			r.model.Set(id, s)
			r.renewed(id, r.G.TTL)
		}
	}
	err := r.C.SetBatch(keys, vals)
	switch {
	case tooLarge < 0 && err != nil:
		return fmt.Errorf("set %d entries: %w", n, err)
	case tooLarge >= 0 && !(errors.Is(err, ringcache.ErrTooLarge) &&
		strings.Contains(err.Error(), fmt.Sprintf("index %d:", tooLarge))):
		return fmt.Errorf("set %d entries, number %d too large: got %v", n, tooLarge, err)
	}
	for i, k := range keys { // both are the caller's again
		clear(k)
		clear(vals[i])
	}
	if n == 0 || tooLarge == n-1 {
		return nil
	}
	last := (o.ID + uint32(n-1)*uint32(o.Class)) % (1 << 16)
	if r.told {
		s := Stamp{ID: last, Version: r.version, Size: min(int(o.flags)%200, r.maxValue())}
		return r.stored(Op{ID: last, flags: o.flags}, s, r.G.TTL)
	}
	if r.lapsed[last] {
		return nil // it has expired at once
	}
	got, ok := r.C.HasGet(r.dst[:0], r.KeyOf(last))
	if !ok {
		return fmt.Errorf("set %d entries: a read of the last misses", n)
	}
	r.dst = got
	r.read(last)
	return r.hit(last, got)
}

// getBatch reads a few keys at once, some of them twice, some never set.
func (r *Runner) getBatch(o Op) error {
	n := int(o.Arg % 80)
	ids := make([]uint32, n)
	keys := make([][]byte, n)
	for i := range ids {
		ids[i] = (o.ID + uint32(i)*uint32(o.Class)) % (1 << 16)
		keys[i] = bytes.Clone(r.KeyOf(ids[i]))
	}
	vals := make([][]byte, n+int(o.flags%3))
	for i := range vals {
		vals[i] = []byte("left from before")
	}
	var dst []byte
	if o.flags&8 != 0 {
		dst = append(slices.Grow(r.dst[:0], int(o.Arg)), "held before"...)
	}
	before := bytes.Clone(dst)
	out, hits := r.C.GetBatch(dst, keys, vals)
	missed := func(i int) bool { return vals[i] == nil }
	if !bytes.HasPrefix(out, before) {
		return fmt.Errorf("dst held %q, the result begins with %.32q", before, out)
	}
	for i, id := range ids {
		if missed(i) {
			continue
		}
		hits--
		if err := r.hit(id, vals[i]); err != nil {
			return fmt.Errorf("value %d of %d: %w", i, n, err)
		}
		r.read(id)
	}
	r.endReading()
	for i, id := range ids {
		if missed(i) {
			if err := r.found(id, false); err != nil {
				return err
			}
		}
	}
	if hits != 0 {
		return fmt.Errorf("the count of hits is off by %d", hits)
	}
	for i, v := range vals[n:] {
		if string(v) != "left from before" {
			return fmt.Errorf("vals[%d], beyond the keys, was changed", n+i)
		}
	}
	return nil
}

// all walks the whole cache: with nothing else under way, it must see every
// entry that Len counts, once.
func (r *Runner) all() error {
	seen := map[uint32]bool{}
	for k, v := range r.C.All() {
		id := IDOf(k)
		if seen[id] {
			return fmt.Errorf("saw key %d twice", id)
		}
		seen[id] = true
		if err := r.hit(id, v); err != nil {
			return fmt.Errorf("saw key %d: %w", id, err)
		}
		clear(k) // both are the loop's buffers, not the cache's memory
		clear(v)
	}
	if n, hidden := r.C.Len(), len(r.lapsed)+len(r.negatives); len(seen) > n || len(seen) < n-hidden {
		return fmt.Errorf("saw %d entries, Len is %d with up to %d expired and negative ones",
			len(seen), n, hidden)
	}
	for k := range r.C.Keys() {
		id := IDOf(k)
		if !seen[id] {
			return fmt.Errorf("saw key %d twice, or only without its value", id)
		}
		delete(seen, id)
		_ = append(k, "overrun"...) // must not reach the next
	}
	if len(seen) > 0 {
		return fmt.Errorf("did not see %d keys without their values", len(seen))
	}
	return nil
}

// IDOf returns the id of the key that KeyOf made.
func IDOf(k []byte) uint32 {
	if len(k) == 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(k)
}

// resize gives the cache any size that it may have: at times a little smaller,
// at times the least, or larger than it was made, as far as positions reach.
func (r *Runner) resize(o Op) error {
	least := LeastBytes(r.G)
	most := r.G.MaxBytes
	if r.G.PosBits == index.PosBits {
		most *= 2
	}
	r.Bound = least
	if o.Class%4 > 0 {
		r.Bound += int(int64(o.Arg) * int64(most-least) >> 16)
	}
	if !Resize(r.C, r.Bound) {
		return errors.New("the cache is closed")
	}
	if err := Validate(r.C); err != nil {
		return fmt.Errorf("to %d bytes: %w", r.Bound, err)
	}
	return r.gauges()
}

// peek reads what a Has finds then, and is not counted.
func (r *Runner) peek(o Op) error {
	before := Counters(r.C).Sum()
	got, ok := r.C.Peek(r.dst[:0], r.KeyOf(o.ID))
	n := Counters(r.C).Sum()
	if n.Lookups != before.Lookups || n.Misses != before.Misses {
		return fmt.Errorf("Peek counted: %v, before it %v", n, before)
	}
	if r.dst = got; ok {
		if err := r.hit(o.ID, got); err != nil {
			return err
		}
	}
	return r.has(o.ID)
}

func (r *Runner) view(o Op) error {
	var err error
	calls := 0
	ok := View(r.C, r.KeyOf(o.ID), func(v []byte) {
		calls++
		err = r.hit(o.ID, v)
	})
	if ok != (calls == 1) || calls > 1 {
		return fmt.Errorf("returned %v and called back %d times", ok, calls)
	}
	if !ok {
		return r.found(o.ID, false)
	}
	r.read(o.ID)
	return err
}
