package ringcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
)

// How a cache loads missing values, once for any number of concurrent callers.
//
// A bucket lists the loads of its keys that are in progress. A caller that misses a key joins its
// call. A call leaves the list for good, under the bucket's lock, when the key is written, which
// makes its result out of date, when the last caller's context ends, or when the call itself ends.
// From then on its result is not stored, and the next caller that misses starts another load (I12).
// A write checks the list, which is one comparison if there are no loads.
//
// One call of a user's function serves the calls of a group: of one key for GetOrLoad, of all keys
// that a batch has to load. Each call is in its own bucket's list. No caller waits before its own
// group has started, so two batches cannot wait for each other.

// LoadFunc loads the value of a key that is not in the cache, for GetOrLoad. ttl bounds how long
// the result stays in the cache: 0 means [Options].TTL, and if it is negative or below 100 ms, the
// result is returned to the callers and not stored. If err is [ErrAbsent], the key has no value,
// which the cache remembers for ttl. With any other error, value and ttl are ignored.
//
// ctx carries the values of the call that started the load, but not its deadline. It ends when no
// caller waits any more, or, for a background load, after [Options].RefreshTimeout. A function that
// itself calls GetOrLoad must pass ctx on ([ErrLoadCycle]). The function may keep key, which is a
// copy. It must not modify value after it has returned.
type LoadFunc[K, V any] func(ctx context.Context, key K) (value V, ttl time.Duration, err error)

// BatchLoadFunc loads the values of keys that are not in the cache, for GetOrLoadBatch. Its types,
// its context, and the effect of each result are those of a [LoadFunc]. It returns one result for
// each key, in the same order. An error applies to every key. The context ends when no caller waits
// for any of the keys any more. No key occurs twice. The function may keep keys and their bytes,
// and must not modify the results after it has returned.
type BatchLoadFunc[K, V any] func(ctx context.Context, keys []K) ([]Loaded[V], error)

// The functions of a Cache.
type (
	loadFunc      = LoadFunc[[]byte, []byte]
	batchLoadFunc = BatchLoadFunc[[]byte, []byte]
)

// GetOrLoad is like [Cache.Get], but loads a missing value: on a miss it calls load in a new
// goroutine, stores the result, appends it to dst and returns the extended slice, or returns dst
// unchanged and an error. One load serves all callers that miss on k while it runs. If k is written
// meanwhile, or the cache is closed or rejects the result, the callers get it, and it is not
// stored.
//
// A load's error goes to all waiting callers ([Options].StaleIfError may replace it with an expired
// value). If it is [ErrAbsent], GetOrLoad returns ErrAbsent without another load until the TTL of
// that result ends. If the load panics, or OnRemove does for an entry that the result evicts, every
// waiting caller panics with a [*LoadPanic]. A load that calls GetOrLoad for its own key, or for a
// key whose load waits for it, gets [ErrLoadCycle].
//
// If ctx ends while the call waits, GetOrLoad returns ctx.Err(), wrapped. The load continues for
// the other callers; when the last one has left, its own context is canceled, and its result is not
// stored. If ctx has already ended, the call may hit, but loads nothing.
//
// With [Options].RefreshAhead, a hit on an entry that is due starts a load and does not wait for
// it. Hits take the same locks as Get, and do not allocate if dst has room and load is an existing
// function value.
func (c *Cache) GetOrLoad(
	ctx context.Context, dst, k []byte, load LoadFunc[[]byte, []byte],
) ([]byte, error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room [stackKey]byte
	k, h := c.key(room[:0], k)
	out, got := c.getAhead(dst, k, h)
	if c.looked(got == hit || got == needsRefresh); got == hit {
		return out, nil
	}
	return c.loadMissing(ctx, out, k, h, got, load)
}

// getAhead is the first half of GetOrLoad, the lookup. h is the hash of k. A hit
// completes the call.
func (c *engine) getAhead(dst, k []byte, h uint64) (out []byte, got outcome) {
	out, expiry, got := c.lookup(dst, k, h, getMode)
	if got == hit && c.isDue(expiry) {
		got = needsRefresh
	}
	return out, got
}

// loadMissing is the second half of GetOrLoad. dst and got are the results of the first half.
func (c *Cache) loadMissing(
	ctx context.Context, dst, k []byte, h uint64, got outcome, load loadFunc,
) ([]byte, error) {
	switch got {
	case needsRefresh:
		if ctx.Err() != nil {
			return dst, nil
		}
		if g := c.refresh(nil, ctx, k, h); g != nil {
			g.start(c.engine, load.ofOne)
		}
		return dst, nil
	case negative:
		c.counters.Here().Negative.Add(1)
		return dst, errNegative
	}
	g := c.newLoad(ctx)
	f, out, err := c.join(g, dst, k, h)
	if f == nil {
		return out, loadError(err)
	}
	g.start(c.engine, load.ofOne)
	if err := c.await(g, f); err != nil {
		return dst, loadError(err)
	}
	v, err := c.result(f)
	return append(dst, v...), loadError(err)
}

// ofOne adapts load to a BatchLoadFunc for one key.
func (load LoadFunc[K, V]) ofOne(ctx context.Context, keys []K) ([]Loaded[V], error) {
	v, ttl, err := load(ctx, keys[0])
	return []Loaded[V]{{v, ttl, err}}, nil
}

// errNegative is the error for a negative entry. It is made once: hits do not allocate.
var errNegative = fmt.Errorf("ringcache: load entry: %w", ErrAbsent)

// loadError returns the error of GetOrLoad for its cause, which may be nil.
func loadError(err error) error {
	switch err {
	case nil:
		return nil
	case ErrAbsent:
		return errNegative
	}
	return fmt.Errorf("ringcache: load entry: %w", err)
}

// refreshTries is the number of failing loads that refreshes may make for a key before its entry
// expires.
const refreshTries = 8

// errLoadExited is the error of a load that has ended its goroutine.
var errLoadExited = errors.New("the load called runtime.Goexit, as t.FailNow does")

// loadGroup is the loads that one call of a user's function serves.
type loadGroup struct {
	caller  context.Context
	within  *singleflight.Group // whose function makes this call; may be nil
	ended   error               // of caller: then nothing is loaded
	refresh bool                // no caller waits
	kind    record.Kind         // of records with the results
	calls   []*loadCall
	byKey   map[string]*loadCall // of a batch; nil: there is only one key

	ctx   context.Context // of the function
	group *singleflight.Group
}

// loading is the context key of the *singleflight.Group to which the function belongs.
type loading struct{}

// newLoad returns an empty group for a caller that is going to wait.
func (c *Cache) newLoad(ctx context.Context) *loadGroup {
	within, _ := ctx.Value(loading{}).(*singleflight.Group)
	return &loadGroup{caller: ctx, within: within, ended: ctx.Err(), kind: c.kind()}
}

// addLocked lists a load of a key in its bucket. A batch loads a key only once, even if a write has
// come since it was listed.
func (c *engine) addLocked(b *bucket, g *loadGroup, k []byte, h uint64) *loadCall {
	if f := g.byKey[string(k)]; f != nil {
		return f
	}
	if g.group == nil {
		ctx, cancel := context.WithoutCancel(g.caller), context.CancelFunc(nil)
		if g.refresh {
			ctx, cancel = context.WithTimeout(ctx, c.options.RefreshTimeout)
		} else {
			ctx, cancel = context.WithCancel(ctx)
		}
		g.group = singleflight.NewGroup(cancel)
		g.ctx = context.WithValue(ctx, loading{}, g.group)
	}
	f := b.calls.Add(bytes.Clone(k), h, g.group)
	f.Refresh, f.Result.kind = g.refresh, g.kind
	g.calls = append(g.calls, f)
	if g.byKey != nil {
		g.byKey[string(k)] = f
	}
	c.loads.started.Add(1)
	return f
}

// start calls fn for the listed loads, if there are any.
func (g *loadGroup) start(c *engine, fn batchLoadFunc) {
	if len(g.calls) > 0 {
		go c.run(g, fn)
		g.group.Release()
	}
}

// join adds a caller to those that wait for the load of the key. If none is in progress, it lists
// one in g, which the caller must start. If there is nothing to wait for, it returns no call, and
// the value that was stored since the caller's lookup, or the error. If it returns a call, the
// caller must call await.
func (c *engine) join(g *loadGroup, dst, k []byte, h uint64) (f *loadCall, out []byte, err error) {
	for {
		f, out, err = c.joinUnlessCold(g, dst, k, h)
		if f != nil {
			circle := g.within.Await(f.Group, g.usersKey(f))
			if circle == nil {
				return f, out, nil
			}
			if !c.leave(f) {
				return nil, out, cycleError(circle)
			}
			continue // it has ended
		}
		if err != errCold {
			return nil, out, err
		}
		out, _, got := c.lookupCold(dst, k, h, c.counters.Here(), withValue|touching)
		if got == hit {
			return nil, out, nil
		}
	}
}

// joinUnlessCold is join that returns errCold for an entry that Cache.lookupCold has to read.
func (c *engine) joinUnlessCold(
	g *loadGroup, dst, k []byte, h uint64,
) (f *loadCall, out []byte, err error) {
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	n := c.counters.Here()
	switch out, _, got := c.lookupUnder(b, dst, k, h, n, withValue|touching); {
	case got == hit:
		return nil, out, nil
	case got == negative:
		n.Negative.Add(1)
		return nil, dst, ErrAbsent
	case got == inCold:
		return nil, dst, errCold
	case g.ended != nil:
		return nil, dst, g.ended
	}
	f = b.calls.Find(k, h)
	if f != nil && f.Refresh && f.Group != g.within {
		// No caller has watched it, so it may hang: a caller that has to wait starts its own load.
		b.calls.Invalidate(f)
		f = nil
	}
	if f == nil {
		f = c.addLocked(b, g, k, h)
	}
	f.Waiters++
	return f, dst, nil
}

// await waits for a load that the caller has joined, and returns the error of the caller's context
// if that ends first.
func (c *engine) await(g *loadGroup, f *loadCall) error {
	defer g.within.Awaited(f.Group)
	select {
	case <-f.Done:
	case <-g.caller.Done():
		if !c.leave(f) {
			return g.caller.Err()
		}
	}
	return nil
}

// cycleError returns the error of a load that would wait for itself through the loads of the given
// keys.
func cycleError(circle [][]byte) error {
	var names strings.Builder
	for _, k := range circle {
		fmt.Fprintf(&names, "%.*q -> ", longestQuote, k)
	}
	return fmt.Errorf("%s%.*q: %w", &names, longestQuote, circle[0], ErrLoadCycle)
}

// usersKey returns the key of a call of the group's namespace as its caller wrote it.
func (g *loadGroup) usersKey(f *loadCall) []byte {
	if g.kind&record.Spaced != 0 {
		return f.Key[generation.Size:]
	}
	return f.Key
}

// leave removes a waiting caller, and reports whether the load has ended nevertheless.
func (c *engine) leave(f *loadCall) (ended bool) {
	b := c.bucket(f.Hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls.Leave(f)
}

// isDue reports whether a hit on an entry with that expiry starts a load.
func (c *engine) isDue(expiry uint32) bool {
	return c.options.RefreshAhead > 0 && expiry != 0 && c.shared.Until(expiry) <= c.options.RefreshAhead
}

// refresh lists a background load of the key, unless one is in progress or has just failed. It
// lists it in group g, which it creates if g is nil, and returns the group.
func (c *Cache) refresh(g *loadGroup, ctx context.Context, k []byte, h uint64) *loadGroup {
	if end := c.pauses.End(h); end != 0 && c.shared.Now() < end {
		return g
	}
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Closed || b.calls.Find(k, h) != nil {
		return g
	}
	if g == nil {
		g = &loadGroup{caller: ctx, refresh: true, kind: c.kind()}
	}
	c.addLocked(b, g, k, h)
	return g
}

// pauseLocked delays the next refresh of the key if the refresh that has ended failed, or stored an
// entry that is due again at once: otherwise each hit would start another one.
func (c *engine) pauseLocked(f *loadCall, failed bool) {
	dueAgain := f.Result.TTL > 0 && f.Result.TTL <= c.options.RefreshAhead
	if f.Refresh && (failed && f.Listed() || !failed && dueAgain) {
		c.pauses.Begin(f.Hash, c.shared.In(c.options.RefreshAhead/refreshTries+clock.Tick))
	}
}

// run calls fn, stores its results, and wakes the waiting callers.
func (c *engine) run(g *loadGroup, fn batchLoadFunc) {
	keys, start := make([][]byte, len(g.calls)), 0
	if g.kind == record.Spaced {
		start = generation.Size
	}
	for i, f := range g.calls {
		keys[i] = bytes.Clone(f.Key[start:])
		f.Result.Err = errLoadExited // unless fn returns or panics
	}
	defer func() {
		for _, f := range g.calls {
			c.endLoad(f)
		}
	}()
	defer func() {
		if v := recover(); v != nil {
			p := &LoadPanic{Value: v, Stack: debug.Stack()}
			for _, f := range g.calls {
				f.Result.panicked = p
			}
		}
	}()
	for i, l := range g.call(fn, keys) {
		g.calls[i].Result.loaded = l
		c.storeResult(g.calls[i])
	}
}

// call calls fn and returns a result for each key. An error of fn applies to every key.
func (g *loadGroup) call(fn batchLoadFunc, keys [][]byte) []loaded {
	all, err := fn(g.ctx, keys)
	if err == nil && len(all) != len(keys) {
		err = fmt.Errorf("load returned %d results for %d keys", len(all), len(keys))
	}
	if err == nil {
		return all
	}
	failed := make([]loaded, len(keys))
	copy(failed, all) // with ErrAbsent, their TTLs count
	for i := range failed {
		failed[i].Err = err
	}
	return failed
}

// storeResult stores the result of a load, unless the load has failed or a write has invalidated
// it.
func (c *engine) storeResult(f *loadCall) {
	l := &f.Result
	w := write{cond: ifListed, call: f, uncounted: true}
	w.Key, w.Value, w.Hash, w.Reason = f.Key, l.Value, f.Hash, store.Replaced
	w.Kind = l.kind
	if errors.Is(l.Err, ErrAbsent) {
		l.Err = ErrAbsent
		w.Value, w.Kind, w.Reason = nil, w.Kind|record.Negative, store.Deleted
	} else if l.Err != nil {
		return
	}
	if l.TTL != 0 {
		w.life = withTTL(c.shared.Jittered(l.TTL))
	}
	if err := c.store(&w, "load"); err != nil {
		c.loads.dropped.Add(1)
	}
}

// endLoad ends a call.
func (c *engine) endLoad(f *loadCall) {
	failed := f.Result.failed()
	b := c.bucket(f.Hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed {
		c.loads.failed.Add(1)
	}
	c.pauseLocked(f, failed)
	b.calls.Finish(f)
}

// result returns the result of a load that has ended, or panics as the load has.
func (c *engine) result(f *loadCall) ([]byte, error) {
	l := &f.Result
	switch {
	case l.panicked != nil:
		panic(l.panicked)
	case l.Err == nil:
		return l.Value, nil
	case l.failed() && l.Err != errLoadExited && c.shared.Keeps():
		if v, ok := c.stale(f); ok {
			return v, nil
		}
	}
	return nil, l.Err
}

// stale returns the value to use after a failed load: the one that has expired, if that is not too
// long ago, or one that was set meanwhile. It is always that of the key's last write, because every
// write removes the value that it does not replace, expired or not.
func (c *engine) stale(f *loadCall) (v []byte, ok bool) {
	v, expiry, got := c.lookupAny(nil, f.Key, f.Hash, withValue|orStale)
	if got == hit && c.shared.Expired(expiry) {
		c.loads.stale.Add(1)
	}
	return v, got == hit
}
