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
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
)

// How a cache loads what it does not have, once however many ask for it.
//
// A bucket lists the loads of its keys that are under way. Whoever misses a key joins its
// call. A call leaves the list for good, under the bucket's lock, when the key is written,
// which makes its result out of date, when the last caller's context ends, or when it
// ends itself. From then on nothing of it is stored, and who misses starts another (I12).
// A write looks at the list: one comparison where there are no loads.
//
// One call of a user's function answers the calls of a group: of one key for GetOrLoad, of
// all keys that a batch has to load. Each stands in its own bucket's list. Nobody waits
// before his own group has begun, so two batches cannot wait for each other.

// LoadFunc loads the value of a key that is not in the cache, for GetOrLoad. K and V are []byte for
// a [Cache] or [Namespace], and the types of the view for a [Typed].
//
// ttl is how long the result stays in the cache at most: see the section Times to live of the
// package. 0 stands for [Options].TTL, and [Options].TTLJitter may shorten it. If it is negative or
// below a tick of 100 ms, the result is returned to the callers and not stored. An error that is
// [ErrAbsent] means that the key has no value. That is remembered for ttl, during which GetOrLoad
// returns ErrAbsent without another load. After any error value is ignored, after others ttl too.
//
// ctx has the values of the call that began the load, but not its deadline: it ends when no caller
// waits for the load any more, or, where none ever does, after [Options].RefreshTimeout. A function
// that calls GetOrLoad itself must pass ctx on, or loads that wait for each other are not detected
// ([ErrLoadCycle]). The function may keep key, which is a copy, and must not modify value after it
// has returned: callers copy it later.
type LoadFunc[K, V any] func(ctx context.Context, key K) (value V, ttl time.Duration, err error)

// BatchLoadFunc loads the values of keys that are not in the cache, for GetOrLoadBatch. Its
// types, its context, and the effect of each result are those of a [LoadFunc]. It returns a result
// for each key, in the same order. An error is that of every key. The context ends when no caller
// waits for any of the keys any more. No key occurs twice. The function may keep keys and their
// bytes, and must not modify the results after it has returned.
type BatchLoadFunc[K, V any] func(ctx context.Context, keys []K) ([]Loaded[V], error)

// Those of Cache.
type (
	loadFunc      = LoadFunc[[]byte, []byte]
	batchLoadFunc = BatchLoadFunc[[]byte, []byte]
)

// GetOrLoad is [Cache.Get] that loads a missing value: it appends the value of k to dst, or
// returns dst as it is and an error. On a miss it calls load, in a goroutine that ends with it,
// stores the result and returns it. One load serves all who miss k meanwhile. A write of k
// meanwhile (Set and its kin, Del, Reset) wins: the callers get what was loaded, and it is not
// stored. Nor is a result that the cache refuses, and after Close none is.
//
// A load's error goes to all who wait, and is not stored ([Options].StaleIfError may give them
// an expired value instead). If the error is [ErrAbsent], there is no value: until the TTL of that
// result is over, GetOrLoad returns ErrAbsent without another load. If the load panics, or OnRemove
// for an entry that the result evicts, every caller panics with a [*LoadPanic]. If it ends its
// goroutine by [runtime.Goexit], as t.FailNow does, the callers get an error that says so, and no
// stale value. If load asks for k itself, or for a key whose load waits for it, it gets
// [ErrLoadCycle].
//
// When ctx ends while the call waits, it returns ctx.Err(), wrapped as all its errors are (test
// with [errors.Is]). The load goes on for the others; when the last has gone, its own context is
// cancelled, and its result not stored. A call whose ctx ended before may hit, but loads nothing.
//
// With [Options].RefreshAhead, a hit on an entry that is due begins a load and does not wait.
// Hits lock what Get locks, and do not allocate if dst has room and load was made before: a
// function literal or a method value in the call may be allocated each time.
func (c *Cache) GetOrLoad(
	ctx context.Context, dst, k []byte, load LoadFunc[[]byte, []byte],
) ([]byte, error) {
	mustBeFunc("GetOrLoad", load != nil)
	out, got := c.getAhead(dst, k)
	if got == hit {
		return out, nil
	}
	return c.loadMissing(ctx, out, k, got, load)
}

// getAhead is the first half of GetOrLoad, the lookup. On a hit there is nothing left to do.
func (c *Cache) getAhead(dst, k []byte) (out []byte, got outcome) {
	out, expiry, got := c.lookup(dst, k, unhashed, getMode)
	if got == hit && c.isDue(expiry) {
		got = hitDue
	}
	return out, got
}

// loadMissing is the second half of GetOrLoad. dst and got are what the first half returned.
func (c *Cache) loadMissing(
	ctx context.Context, dst, k []byte, got outcome, load loadFunc,
) ([]byte, error) {
	h := c.shared.Hash(k)
	switch got {
	case hitDue:
		if ctx.Err() != nil {
			return dst, nil
		}
		if g := c.refresh(nil, ctx, k, h); g != nil {
			g.start(c, load.ofOne)
		}
		return dst, nil
	case negative:
		c.counters.Here().Negative.Add(1)
		return dst, errNegative
	}
	g := newLoad(ctx)
	f, out, err := c.join(g, dst, k, h)
	if f == nil {
		return out, loadError(err)
	}
	g.start(c, load.ofOne)
	if err := c.await(g, f); err != nil {
		return dst, loadError(err)
	}
	v, err := c.result(f)
	return append(dst, v...), loadError(err)
}

// ofOne is a BatchLoadFunc for one key.
func (load LoadFunc[K, V]) ofOne(ctx context.Context, keys []K) ([]Loaded[V], error) {
	v, ttl, err := load(ctx, keys[0])
	return []Loaded[V]{{v, ttl, err}}, nil
}

// errNegative is what a negative entry answers, made once: hits do not allocate.
var errNegative = fmt.Errorf("ringcache: load entry: %w", ErrAbsent)

// loadError returns an error of GetOrLoad for its cause, which may be nil.
func loadError(err error) error {
	switch err {
	case nil:
		return nil
	case ErrAbsent:
		return errNegative
	}
	return fmt.Errorf("ringcache: load entry: %w", err)
}

// refreshTries is how many loads that fail a refresh may make of a key before its entry expires.
const refreshTries = 8

// errLoadExited is the error of a load that has returned nothing.
var errLoadExited = errors.New("the load called runtime.Goexit, as t.FailNow does")

// loadGroup is the loads that one call of a user's function answers.
type loadGroup struct {
	caller  context.Context
	within  *singleflight.Group // whose function the caller is, or a part of it; may be nil
	ended   error               // of caller: it loads nothing
	refresh bool                // nobody waits
	calls   []*loadCall
	byKey   map[string]*loadCall // those of a batch; nil: there is one key only

	ctx   context.Context // of the function
	group *singleflight.Group
}

// loading is the key of a value of a function's context: its *singleflight.Group.
type loading struct{}

// newLoad returns a group without loads for a caller who is going to wait.
func newLoad(ctx context.Context) *loadGroup {
	within, _ := ctx.Value(loading{}).(*singleflight.Group)
	return &loadGroup{caller: ctx, within: within, ended: ctx.Err()}
}

// addLocked lists a load of a key in its bucket. A batch loads a key once, also if a write
// has come since it was listed.
func (c *Cache) addLocked(b *bucket, g *loadGroup, k []byte, h uint64) *loadCall {
	if f := g.byKey[string(k)]; f != nil {
		return f
	}
	if g.group == nil {
		ctx, cancel := context.WithoutCancel(g.caller), context.CancelFunc(nil)
		if g.refresh {
			ctx, cancel = context.WithTimeout(ctx, c.timeout)
		} else {
			ctx, cancel = context.WithCancel(ctx)
		}
		g.group = singleflight.NewGroup(cancel)
		g.ctx = context.WithValue(ctx, loading{}, g.group)
	}
	f := b.calls.Add(bytes.Clone(k), h, g.group)
	f.Refresh = g.refresh
	g.calls = append(g.calls, f)
	if g.byKey != nil {
		g.byKey[string(k)] = f
	}
	c.loads.started.Add(1)
	return f
}

// start calls fn for the loads that were listed, if there are any.
func (g *loadGroup) start(c *Cache, fn batchLoadFunc) {
	if len(g.calls) > 0 {
		go c.run(g, fn)
		g.group.Release()
	}
}

// join adds a caller to those who wait for the load of the key, and lists one in g, which the
// caller starts, if none is under way. Where there is nothing to wait for, there is no call,
// and join returns the value, as it was stored since the caller has looked, or the error. With
// a call, await must follow.
func (c *Cache) join(g *loadGroup, dst, k []byte, h uint64) (f *loadCall, out []byte, err error) {
	for {
		f, out, err = c.joinUnlessCold(g, dst, k, h)
		if f != nil {
			circle := g.within.Await(f.Group, f.Key)
			if circle == nil {
				return f, out, nil
			}
			if !c.leave(f) {
				return nil, out, cycleError(circle)
			}
			continue // it has ended: there is nothing to wait for
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

// joinUnlessCold is join that returns errCold for what Cache.lookupCold has to read.
func (c *Cache) joinUnlessCold(
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
		// Nobody has watched it, so it may hang: whoever has to wait loads on his own.
		b.calls.Invalidate(f)
		f = nil
	}
	if f == nil {
		f = c.addLocked(b, g, k, h)
	}
	f.Waiters++
	return f, dst, nil
}

// await waits for a load that the caller has joined, and returns the error of his context if
// that ends before.
func (c *Cache) await(g *loadGroup, f *loadCall) error {
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

// cycleError is the error of a load that would wait for itself, by way of the loads of others
// whose keys are given.
func cycleError(circle [][]byte) error {
	var names strings.Builder
	for _, k := range circle {
		fmt.Fprintf(&names, "%.*q -> ", longestQuote, k)
	}
	return fmt.Errorf("%s%.*q: %w", &names, longestQuote, circle[0], ErrLoadCycle)
}

// leave takes away a caller who waits, and reports true if the load has ended nonetheless.
func (c *Cache) leave(f *loadCall) (ended bool) {
	b := c.bucket(f.Hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls.Leave(f)
}

// isDue reports whether a hit on an entry of that expiry begins a load.
func (c *Cache) isDue(expiry uint32) bool {
	return c.ahead > 0 && expiry != 0 && c.shared.Until(expiry) <= c.ahead
}

// refresh lists a load of the key that nobody waits for, if none is under way or has just
// failed, in group g, which it makes if it is nil, and returns the group.
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
		g = &loadGroup{caller: ctx, refresh: true}
	}
	c.addLocked(b, g, k, h)
	return g
}

// pauseLocked has the key of a refresh that has ended wait for the next one, if it has failed,
// or has brought what is due again at once: otherwise each hit would begin another.
func (c *Cache) pauseLocked(f *loadCall, failed bool) {
	dueAgain := f.Result.TTL > 0 && f.Result.TTL <= c.ahead
	if f.Refresh && (failed && f.Listed() || !failed && dueAgain) {
		c.pauses.Begin(f.Hash, c.shared.In(c.ahead/refreshTries+clock.Tick))
	}
}

// run calls fn, stores what it returns, and tells those who wait.
func (c *Cache) run(g *loadGroup, fn batchLoadFunc) {
	keys := make([][]byte, len(g.calls))
	for i, f := range g.calls {
		keys[i] = bytes.Clone(f.Key)
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

// call calls fn and returns a result for each key. An error of fn is that of every key.
func (g *loadGroup) call(fn batchLoadFunc, keys [][]byte) []loaded {
	all, err := fn(g.ctx, keys)
	if err == nil && len(all) != len(keys) {
		err = fmt.Errorf("load returned %d results for %d keys", len(all), len(keys))
	}
	if err == nil {
		return all
	}
	failed := make([]loaded, len(keys))
	copy(failed, all) // if err is ErrAbsent, their TTLs count
	for i := range failed {
		failed[i].Err = err
	}
	return failed
}

// storeResult stores the result of a load, unless the load has failed or a write has
// invalidated it.
func (c *Cache) storeResult(f *loadCall) {
	l := &f.Result
	w := write{cond: ifListed, call: f, silent: true}
	w.Key, w.Value, w.Hash, w.Reason = f.Key, l.Value, f.Hash, store.Replaced
	if errors.Is(l.Err, ErrAbsent) {
		l.Err = ErrAbsent
		w.Value, w.Negative, w.Reason = nil, true, store.Deleted
	} else if l.Err != nil {
		return
	}
	life := byOptions
	if l.TTL != 0 {
		life = withTTL(c.shared.Jittered(l.TTL))
	}
	if err := c.applyFor(&w, life, "load"); err != nil {
		c.loads.dropped.Add(1)
	}
}

// endLoad ends a call.
func (c *Cache) endLoad(f *loadCall) {
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

// result returns what a load that has ended has brought, or panics as the load has.
func (c *Cache) result(f *loadCall) ([]byte, error) {
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

// stale returns the value that stands in for what a load has failed to bring: the one that
// the key had when it expired, if that is not too long ago, or has got meanwhile. It is
// always that of the key's last write, as every write removes what it does not replace,
// whether expired or not.
func (c *Cache) stale(f *loadCall) (v []byte, ok bool) {
	v, expiry, got := c.lookupAny(nil, f.Key, f.Hash, withValue|orStale)
	if got == hit && c.shared.Expired(expiry) {
		c.loads.stale.Add(1)
	}
	return v, got == hit
}
