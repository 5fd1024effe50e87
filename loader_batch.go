package ringcache

import (
	"context"
	"fmt"
	"slices"
)

// How a batch is loaded: a GetBatch, a group of loads for what that misses (loader.go), and
// both their values put in order.

// BatchLoadFunc finds the values of keys that are not in the cache, for
// [Cache.GetOrLoadBatch]. It returns a result for each key, in their order, or an error for
// all of them. The context is that of a [LoadFunc]: it ends when no caller waits for any of
// the keys any more. No key is there twice, and all are copies that the function may keep.
type BatchLoadFunc func(ctx context.Context, keys [][]byte) ([]Loaded, error)

// GetOrLoadBatch is [Cache.GetBatch] that has missing values loaded, all with one call of
// load, in a goroutine that ends with it. A key that another call loads already is waited for
// instead, and one that repeats is loaded once. out, vals and their order are those of
// GetBatch, loaded values included; hits are the keys that needed no load.
//
// One key must not fail all, so it differs from [Cache.GetOrLoad]. A key without a value
// ([Loaded].Absent, now or at an earlier load) has nil in vals, and is no error. An error of
// load goes to all who wait for any of its keys, and so does a wrong number of results.
// GetOrLoadBatch returns the first error in the order of its keys, with the index, and all
// values that there are nonetheless. A panic is raised when all loads have ended. A result
// is not stored if its own key was written meanwhile; the others are.
//
// When ctx ends, its error is that of the keys still waited for; if it ended before the call,
// it is that of all missing keys, and nothing is loaded. A load goes on while
// anybody waits for any of its keys. Hits that are due ([Options].RefreshAhead) are loaded
// with one call, and not waited for. If all keys are there and none is due, GetOrLoadBatch
// allocates and locks what GetBatch does. It panics if vals is shorter than keys.
func (c *Cache) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc,
) (out []byte, hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", keys, vals)
	from, room := len(dst), cap(dst)
	var bl lookups
	var missing, due []wanted
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var n int
		dst, n = c.getBlock(&bl, dst, keys[i:end], vals[i:end])
		hits += n
		if n < end-i || c.ahead > 0 {
			missing, due = c.collect(&bl, i, end, missing, due)
		}
	}
	if len(due) > 0 && ctx.Err() == nil {
		c.refreshAll(ctx, keys, due, load)
	}
	if len(missing) > 0 {
		n, err := c.loadAll(ctx, keys, missing, load)
		return arrange(dst, vals[:len(keys)], missing), hits + n, err
	}
	if cap(dst) != room {
		follow(dst[from:], vals[:len(keys)])
	}
	return dst, hits, nil
}

// wanted is a key of a batch that is to be loaded.
type wanted struct {
	at    int // its index
	hash  uint64
	call  *loadCall // that it waits for; nil: it is known already what becomes of it
	value []byte    // nil: it has none
	err   error
}

// collect adds the keys of a block, from index from on, that were missed or are due.
func (c *Cache) collect(
	bl *lookups, from, end int, missing, due []wanted,
) (_, _ []wanted) {
	for i := range end - from {
		switch l := &bl.found[i]; {
		case l.got == miss:
			missing = append(missing, wanted{at: from + i, hash: bl.hashes[i]})
		case l.got == hit && c.isDue(l.expiry):
			due = append(due, wanted{at: from + i, hash: bl.hashes[i]})
		}
	}
	return missing, due
}

// refreshAll begins a load of the keys that nobody waits for.
func (c *Cache) refreshAll(ctx context.Context, keys [][]byte, due []wanted, fn BatchLoadFunc) {
	g := &loadGroup{caller: ctx, byKey: map[string]*loadCall{}}
	defer g.start(c, fn)
	for _, w := range due {
		c.refresh(g, ctx, keys[w.at], w.hash)
	}
}

// loadAll gets the missing values, and returns how many were there after all, and the first
// error.
func (c *Cache) loadAll(
	ctx context.Context, keys [][]byte, missing []wanted, fn BatchLoadFunc,
) (hits int, first error) {
	c.joinAll(ctx, keys, missing, fn)
	for i := range missing {
		if w := &missing[i]; w.call != nil {
			w.err = c.await(ctx, w.call)
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
		case w.err == ErrAbsent, w.err == nil:
		case first == nil:
			first = fmt.Errorf("ringcache: load batch: index %d: %w", w.at, w.err)
		}
	}
	return hits, first
}

// joinAll joins the loads of the missing keys, and begins one of those that nobody loads.
func (c *Cache) joinAll(ctx context.Context, keys [][]byte, missing []wanted, fn BatchLoadFunc) {
	g := &loadGroup{caller: ctx, ended: ctx.Err(), byKey: map[string]*loadCall{}}
	defer g.start(c, fn) // also after a panic: others may wait for its keys by now
	for i := range missing {
		w := &missing[i]
		w.call, w.value, w.err = c.join(g, nil, keys[w.at], w.hash)
	}
}

// arrange puts the values that were loaded among those that dst ends with, in the order of
// the keys, and has vals lie there.
func arrange(dst []byte, vals [][]byte, loaded []wanted) []byte {
	more := 0
	for i := range loaded {
		more += len(loaded[i].value)
	}
	end := len(dst) + more
	dst = slices.Grow(dst, more)[:end]
	// From the last to the first: what has to move makes room for what lies before it.
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
