package ringtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
)

// getOrLoad is a GetOrLoad that finds a value, finds a negative entry, or loads one of
// the two.
func (r *Runner) getOrLoad(o Op) error {
	ttl := r.ttlOf(o)
	s, v := r.newValue(o, r.sizeOf(o))
	// OnRemove is not told of negative entries, so what it says would not add up with them.
	absent := !r.told && o.flags&4 != 0
	known, calls := r.before(o.ID), 0
	k := bytes.Clone(r.KeyOf(o.ID))
	load := func(_ context.Context, key []byte) ([]byte, time.Duration, error) {
		calls++
		if !bytes.Equal(k, key) {
			return nil, 0, fmt.Errorf("asked to load %.32x", key)
		}
		return v, ttl, AbsentIf(absent)
	}
	get := r.C.GetOrLoad
	if _, bad := r.G.Compressor.(*BadCompressor); o.Class&64 != 0 && !bad {
		get = r.loadTwice // with a bad one, the second may miss
	}
	got, err := get(context.Background(), r.dst[:0], k, load)
	if r.dst = got; err != nil && !errors.Is(err, ringcache.ErrAbsent) {
		return err
	}
	if err == nil && calls == 0 {
		r.read(o.ID)
		return r.hit(o.ID, got)
	}
	if err := r.answered(known, false); err != nil {
		return err
	}
	if calls == 0 {
		at, ok := r.negatives[o.ID]
		if !ok || r.over(at) {
			return fmt.Errorf("ErrAbsent at %v, and no load has said so, or for as long (%v)", r.age, at)
		}
		r.negativeHits++
		return nil
	}
	if calls > 1 || absent != (err != nil) || !absent && !bytes.Equal(v, got) {
		return fmt.Errorf("%d loads, %v, %d bytes", calls, err, len(got))
	}
	r.forget(o.ID)
	notStored := ttl < 0 || IsBrief(ttl)
	if ttl == 0 {
		ttl = r.G.TTL
	}
	switch {
	case notStored:
		return r.has(o.ID)
	case absent:
		r.negatives[o.ID] = r.idleEnd(r.deadline(ttl))
		if err := r.has(o.ID); err != nil || o.flags&8 == 0 {
			return err
		}
		o.flags &^= 8 // ask once more, before the negative entry is driven out
		return r.getOrLoad(o)
	}
	return r.stored(o, s, ttl)
}

// loadTwice is GetOrLoad by a batch that names the key twice.
func (r *Runner) loadTwice(
	ctx context.Context, dst, k []byte, load LoadFunc,
) ([]byte, error) {
	vals := make([][]byte, 2)
	out, _, err := r.C.GetOrLoadBatch(ctx, dst, [][]byte{k, bytes.Clone(k)}, vals, OfOne(load))
	switch {
	case err != nil:
		return dst, err
	case (vals[0] == nil) != (vals[1] == nil) || !bytes.Equal(vals[0], vals[1]):
		return dst, errors.New("a batch has two values for one key")
	case vals[0] == nil:
		return dst, ringcache.ErrAbsent
	}
	return out[:len(dst)+len(vals[0])], nil
}

// countNegatives returns how many negative entries there are.
func (r *Runner) countNegatives() int {
	n := 0
	for id := range r.negatives {
		k := r.makeKey(nil, id)
		if IsNegative(r.C, k) {
			n++
		}
	}
	return n
}
