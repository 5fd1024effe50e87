package ringcache

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringcache/ringcache/internal/scratch"
)

// How a batch is loaded: a GetBatch, a group of loads for the missing keys (loader.go), and a merge
// of both sets of values in order.

// BatchError is the error of [Cache.GetOrLoadBatch]: the errors of all keys that failed, each of
// which [errors.Is] finds. The results of the other keys are valid.
type BatchError struct {
	Failed []KeyError // at least one, in the order of the keys
}

// KeyError is the error of one key of a batch.
type KeyError struct {
	Index int   // of the key in the batch
	Err   error // like those of [Cache.GetOrLoad], without the name of the method
}

// Error returns the first error with its index, and the number of others.
func (e *BatchError) Error() string {
	first := e.Failed[0]
	s := fmt.Sprintf("ringcache: load batch: index %d: %v", first.Index, first.Err)
	if n := len(e.Failed) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Unwrap returns the errors of all keys that failed.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, k := range e.Failed {
		errs[i] = k.Err
	}
	return errs
}

// batchErrorOf returns the error for the keys that failed, in any order, or nil if there are none.
func batchErrorOf(failed []KeyError) error {
	if len(failed) == 0 {
		return nil
	}
	slices.SortFunc(failed, func(a, b KeyError) int { return a.Index - b.Index })
	return &BatchError{failed}
}

// GetOrLoadBatch is like [Cache.GetBatch], but loads the missing values with one call of load. It
// joins loads that are in progress, and loads a repeated key once. hits is the number of keys whose
// values were in the cache.
//
// Each key is treated as by [Cache.GetOrLoad], except that a key without a value ([ErrAbsent]) is
// not an error: its value in vals is nil. So is that of a failed key, which err, a [*BatchError],
// then lists. A panic is raised when all loads have ended. If ctx ends, its error applies to the
// keys still waited for; if it ended before the call, nothing is loaded.
//
// Hits that are due ([Options].RefreshAhead) are loaded in the background. If all keys are present
// and none is due, GetOrLoadBatch allocates and locks like GetBatch.
func (c *Cache) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc[[]byte, []byte],
) (out []byte, hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", len(keys), len(vals))
	s := scratch.Get()
	defer s.Release()
	keys = c.keysOf(s, nil, keys)
	out, hits, failed := c.getOrLoadBatch(ctx, dst, keys, vals, load, nil)
	c.lookedFor(len(keys), hits)
	return out, hits, batchErrorOf(failed)
}

// getOrLoadBatch is GetOrLoadBatch that also loads the keys whose values are present but not
// usable; usable must remove such entries. If usable is nil, all values are usable.
func (c *Cache) getOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load byteLoader,
	usable func(i int, v []byte) bool,
) (out []byte, hits int, failed []KeyError) {
	from, room := len(dst), cap(dst)
	var bl lookups
	var missing, due []wanted
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		dst, _ = c.getBlock(&bl, dst, keys[i:end], vals[i:end])
		for j, l := range bl.found[:end-i] {
			w := wanted{at: i + j, key: keys[i+j], hash: bl.hashes[j]}
			switch {
			case l.got == negative:
				c.counters.Here().Negative.Add(1)
			case l.got == miss || usable != nil && !usable(w.at, vals[w.at]):
				missing = append(missing, w)
			default:
				hits++
				if c.isDue(l.expiry) {
					due = append(due, w)
				}
			}
		}
	}
	c.refresh(ctx, due, load)
	if len(missing) > 0 {
		c.load(ctx, missing, load)
		n, failed := takeLoaded(vals, missing)
		dst = append(dst[:from], slices.Concat(vals[:len(keys)]...)...)
		rebase(dst[from:], vals[:len(keys)])
		return dst, hits + n, failed
	}
	if cap(dst) != room {
		rebase(dst[from:], vals[:len(keys)])
	}
	return dst, hits, nil
}

// refresh starts a background load of the keys.
func (c *Cache) refresh(ctx context.Context, due []wanted, load byteLoader) {
	var g *loadGroup
	defer func() { g.start(c.engine, load) }() // even after a panic: loads are listed by now
	for i := range due {
		g = c.addRefresh(ctx, g, due[i].key, due[i].hash)
	}
}

// takeLoaded puts the values that were missing into vals. It returns the number of those that were
// in the cache after all, and the errors.
func takeLoaded(vals [][]byte, missing []wanted) (hits int, failed []KeyError) {
	for i := range missing {
		w := &missing[i]
		if w.err == nil && w.call == nil {
			hits++
		}
		switch vals[w.at] = nil; w.err {
		case nil:
			vals[w.at] = append([]byte{}, w.value...) // not nil, even if it is empty
		case ErrAbsent:
		default:
			failed = append(failed, KeyError{w.at, w.err})
		}
	}
	return hits, failed
}
