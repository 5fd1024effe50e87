package ringcache

import (
	"context"
	"fmt"
	"slices"
)

// How a batch is loaded: a GetBatch, a group of loads for the missing keys (loader.go), and a merge
// of both sets of values in order.

// BatchError is the error of [Cache.GetOrLoadBatch]: the errors of all keys that failed. The
// results of the other keys are valid. [errors.Is] finds each of the errors, and [errors.As] the
// *BatchError.
type BatchError struct {
	Failed []KeyError // at least one, in the order of the keys
}

// KeyError is the error of one key of a batch.
type KeyError struct {
	Index int   // of the key in the batch
	Err   error // like those of [Cache.GetOrLoad], without the name of the method
}

// Error returns the first error with its index, and the number of further ones.
func (e *BatchError) Error() string {
	first := e.Failed[0]
	s := fmt.Sprintf("ringcache: load batch: index %d: %v", first.Index, first.Err)
	if n := len(e.Failed) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Unwrap returns the errors of all keys that failed, one for each key.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, k := range e.Failed {
		errs[i] = k.Err
	}
	return errs
}

// orNil returns e as an error, which is nil if e is nil.
func (e *BatchError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// with returns e with the error of one more key. e may be nil.
func (e *BatchError) with(index int, err error) *BatchError {
	if e == nil {
		e = new(BatchError)
	}
	e.Failed = append(e.Failed, KeyError{index, err})
	return e
}

// sort puts the errors in the order of the keys.
func (e *BatchError) sort() {
	if e != nil {
		slices.SortFunc(e.Failed, func(a, b KeyError) int { return a.Index - b.Index })
	}
}

// GetOrLoadBatch is like [Cache.GetBatch], but loads the missing values, all with one call of load.
// It joins loads of other callers that are in progress, and loads a repeated key once. hits is the
// number of keys whose values were in the cache.
//
// Each key is treated as by [Cache.GetOrLoad], except that a key without a value ([ErrAbsent]) is
// not an error: its value in vals is nil. The value of a failed key is nil too, and err is then a
// [*BatchError] that lists its index. An error from load applies to each key that load was to load.
// A panic is raised when all loads have ended.
//
// When ctx ends, its error applies to the keys still waited for; if it ended before the call,
// nothing is loaded. Hits that are due ([Options].RefreshAhead) are loaded in the background. If
// all keys are present and none is due, GetOrLoadBatch allocates and locks like GetBatch.
func (c *Cache) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc[[]byte, []byte],
) (out []byte, hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", keys, vals)
	if c.space != nil {
		raw, room := make([][]byte, len(keys)), joined{buf: make([]byte, 0, stackKey/4*len(keys))}
		for i, k := range keys {
			raw[i] = room.took(append(c.start(room.next()), k...))
		}
		keys = raw
	}
	out, hits, failed := c.getOrLoadBatch(ctx, dst, keys, vals, load, nil)
	c.lookedFor(len(keys), hits)
	return out, hits, failed.orNil()
}

// getOrLoadBatch is GetOrLoadBatch that also loads the keys whose values are present but not
// usable; usable must remove such entries. If usable is nil, all values are usable.
func (c *Cache) getOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load batchLoadFunc,
	usable func(i int, v []byte) bool,
) (out []byte, hits int, failed *BatchError) {
	from, room := len(dst), cap(dst)
	var bl lookups
	var missing, due []toLoad
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var n int
		dst, n = c.getBlock(&bl, dst, keys[i:end], vals[i:end])
		if usable != nil {
			n -= bl.dropUnusable(i, vals[i:end], usable)
		}
		hits += n
		if n < end-i || c.options.RefreshAhead > 0 {
			missing, due = c.collect(&bl, i, end, missing, due)
		}
	}
	if len(due) > 0 && ctx.Err() == nil {
		c.refreshAll(ctx, keys, due, load)
	}
	if len(missing) > 0 {
		n, failed := c.loadAll(ctx, keys, missing, load)
		return arrange(dst, vals[:len(keys)], missing), hits + n, failed
	}
	if cap(dst) != room {
		rebase(dst[from:], vals[:len(keys)])
	}
	return dst, hits, nil
}

// toLoad is a key of a batch that is to be loaded.
type toLoad struct {
	at    int // its index
	hash  uint64
	call  *loadCall // to wait for; nil: the result is known already
	value []byte    // nil: there is none
	err   error
}

// dropUnusable turns the hits of a block, starting at index from, whose values are not usable into
// misses, and returns their number.
func (bl *lookups) dropUnusable(
	from int, vals [][]byte, usable func(i int, v []byte) bool,
) (n int) {
	for i, v := range vals {
		if l := &bl.found[i]; l.got == hit && !usable(from+i, v) {
			l.got = miss
			n++
		}
	}
	return n
}

// collect adds the keys of a block, starting at index from, that were missed or are due.
func (c *engine) collect(
	bl *lookups, from, end int, missing, due []toLoad,
) (_, _ []toLoad) {
	for i := range end - from {
		switch l := &bl.found[i]; {
		case l.got == miss:
			missing = append(missing, toLoad{at: from + i, hash: bl.hashes[i]})
		case l.got == negative:
			c.counters.Here().Negative.Add(1)
		case c.isDue(l.expiry):
			due = append(due, toLoad{at: from + i, hash: bl.hashes[i]})
		}
	}
	return missing, due
}

// refreshAll starts a background load of the keys.
func (c *Cache) refreshAll(ctx context.Context, keys [][]byte, due []toLoad, fn batchLoadFunc) {
	g := &loadGroup{caller: ctx, refresh: true, kind: c.kind(), byKey: map[string]*loadCall{}}
	defer g.start(c.engine, fn)
	for _, w := range due {
		c.refresh(g, ctx, keys[w.at], w.hash)
	}
}

// loadAll gets the missing values. It returns the number of those that were in the cache after all,
// and the errors.
func (c *Cache) loadAll(
	ctx context.Context, keys [][]byte, missing []toLoad, fn batchLoadFunc,
) (hits int, failed *BatchError) {
	g := c.joinAll(ctx, keys, missing, fn)
	for i := range missing {
		if w := &missing[i]; w.call != nil {
			w.err = c.await(g, w.call)
		}
	}
	for i := range missing {
		w := &missing[i]
		if w.call == nil && w.err == nil {
			hits++
		} else if w.err == nil {
			w.value, w.err = c.result(w.call)
		}
		switch {
		case w.err == nil && w.value == nil:
			w.value = []byte{}
		case w.err != nil && w.err != ErrAbsent:
			failed = failed.with(w.at, w.err)
		}
	}
	return hits, failed
}

// joinAll joins the loads of the missing keys, and starts one for those that are not being loaded.
// It returns the group of that load.
func (c *Cache) joinAll(
	ctx context.Context, keys [][]byte, missing []toLoad, fn batchLoadFunc,
) *loadGroup {
	g := c.newLoad(ctx)
	g.byKey = map[string]*loadCall{}
	defer g.start(c.engine, fn) // even after a panic: other callers may wait for its keys by now
	for i := range missing {
		w := &missing[i]
		w.call, w.value, w.err = c.join(g, nil, keys[w.at], w.hash)
	}
	return g
}

// arrange merges the loaded values with those at the end of dst, in the order of the keys, and
// points vals to them.
func arrange(dst []byte, vals [][]byte, loaded []toLoad) []byte {
	more := 0
	for i := range loaded {
		more += len(loaded[i].value)
	}
	end := len(dst) + more
	dst = slices.Grow(dst, more)[:end]
	// From last to first: each value that moves makes room for those before it.
	for i := len(vals) - 1; i >= 0; i-- {
		v := vals[i]
		if n := len(loaded) - 1; n >= 0 && loaded[n].at == i {
			v, loaded = loaded[n].value, loaded[:n]
		}
		if vals[i] = v; len(v) > 0 { // else nil, or empty
			begin := end - len(v)
			vals[i] = dst[begin:end:end]
			copy(vals[i], v)
			end = begin
		}
	}
	return dst
}
