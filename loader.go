package ringcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/torn"
)

// How a cache loads missing values.
//
// A bucket lists calls: loads of its keys that are in progress. A caller that misses a key may join
// its call. A call leaves the list for good, under the bucket's lock, for example when the key is
// written, which makes its result out of date. From then on its result is not stored, and the next
// caller that misses starts another load (I12).
//
// One call of a user's function serves the calls of a group: of one key for GetOrLoad, of several
// for a batch. Each call is in its own bucket's list. No caller waits before its own groups have
// started, so two batches cannot wait for each other.

// LoadFunc loads the value of a key for GetOrLoad. ttl is that of the result; 0 means
// [Options].TTL. If it is negative or below 100 ms, the callers get the result and nothing is
// stored. If err is [ErrAbsent], the key has no value, which the cache remembers for ttl at most.
// With any other error, value and ttl are ignored.
//
// ctx has the values of the context that the load was started with, but not its deadline. It ends
// when the last caller stops waiting or, for a refresh, at the latest after
// [Options].RefreshTimeout. Pass it on if you call GetOrLoad ([ErrLoadCycle]). The function may
// keep key, which is a copy, and must not modify value after it has returned.
type LoadFunc[K, V any] func(ctx context.Context, key K) (value V, ttl time.Duration, err error)

// loader is a LoadFunc or a BatchLoadFunc.
type loader[K, V any] interface {
	load(ctx context.Context, keys []K) ([]Loaded[V], error)
}

func (fn LoadFunc[K, V]) load(ctx context.Context, keys []K) ([]Loaded[V], error) {
	v, ttl, err := fn(ctx, keys[0])
	return []Loaded[V]{{v, ttl, err}}, nil
}

// byteLoader is the function of a Cache.
type byteLoader = loader[[]byte, []byte]

// GetOrLoad is like [Cache.Get], but on a miss it calls load in a new goroutine, stores the result,
// appends it to dst and returns the extended slice, or returns dst unchanged and an error. Callers
// that miss on k meanwhile usually share the call. If k is set or deleted meanwhile, or the cache
// is closed or rejects the result, the callers get the result but it is not stored, and later
// misses load again.
//
// All waiting callers get a load's error, or a stale value ([Options].StaleIfError). After
// [ErrAbsent], later calls return ErrAbsent without a load as long as the cache remembers that. If
// the load panics, or OnRemove does for an entry that its results remove, every waiting caller
// panics with a [*LoadPanic]. A load that would wait for itself, directly or through others, gets
// [ErrLoadCycle] if it passes on its context.
//
// If ctx ends while the call waits, GetOrLoad returns ctx.Err(), wrapped, unless there is a stale
// value or the load has just ended. The load continues for the other callers; when the last one has
// left, its own context is canceled, and its result is not stored, unless it is a refresh
// ([Options].RefreshTimeout). If ctx has already ended, the call may hit, but loads nothing.
//
// With [Options].RefreshAhead, a hit on an entry that is due may start a load, and does not wait.
// Other hits lock like Get, and normally do not allocate if dst has room, without k in it, and load
// is an existing function value.
func (c *Cache) GetOrLoad(
	ctx context.Context, dst, k []byte, load LoadFunc[[]byte, []byte],
) ([]byte, error) {
	mustBeFunc("GetOrLoad", load != nil)
	if torn.Overlaps(dst, k) {
		k = bytes.Clone(k) // it is needed after the value was appended
	}
	var room [stackKey]byte
	k, h := c.key(room[:0], k)
	out, got := c.getAhead(ctx, dst, k, h)
	switch got {
	case hit:
		return out, nil
	case needsRefresh:
		dst = out
	}
	return c.loadMissing(ctx, dst, k, h, got, load)
}

// getAhead is the first half of GetOrLoad, the lookup. h is the hash of k. A hit completes the
// call; needsRefresh is a hit that must start a load.
func (c *Cache) getAhead(ctx context.Context, dst, k []byte, h uint64) (out []byte, got outcome) {
	out, expiry, got := c.find(dst, k, h, getMode|orStale)
	return out, c.next(ctx, h, expiry, got)
}

// loadMissing is the second half of GetOrLoad: a batch of one key. got is the result of the first
// half, and dst its value if that is to be returned.
func (c *Cache) loadMissing(
	ctx context.Context, dst, k []byte, h uint64, got outcome, load byteLoader,
) ([]byte, error) {
	switch got {
	case needsRefresh:
		c.addRefresh(ctx, nil, bytes.Clone(k), h).start(c.engine, load)
		return dst, nil
	case negative:
		c.counters.Here().Negative.Add(1)
		return dst, errNegative
	}
	w := []wanted{{key: bytes.Clone(k), hash: h, got: got}}
	c.load(ctx, w, load)
	err := w[0].err
	if err != nil {
		err = fmt.Errorf("ringcache: load entry: %w", err)
	}
	return append(dst, w[0].value...), err
}

// errNegative is the error for a negative entry. It is made once: hits do not allocate.
var errNegative = fmt.Errorf("ringcache: load entry: %w", ErrAbsent)

// errLoadExited is the error of a load that has ended its goroutine.
var errLoadExited = errors.New("the load called runtime.Goexit, as t.FailNow does")

// wanted is a key to be loaded, and then the value or the error.
type wanted struct {
	at    int // its index in a batch
	key   []byte
	hash  uint64
	got   outcome // of engine.next: miss, stale, or needsRefresh; a hit if it was there after all
	group *loadGroup
	call  *loadCall // to wait for; may be nil
	value []byte
	err   error
}

// loadGroup is the loads that one call of a user's function serves.
type loadGroup struct {
	caller  context.Context
	ctx     context.Context     // of the function
	within  *singleflight.Group // whose function makes this call; may be nil
	refresh bool                // of values that are usable
	kind    record.Kind         // of records with the results
	calls   []*loadCall
	byKey   map[string]*loadCall
	group   *singleflight.Group
}

// loading is the context key of the *singleflight.Group to which the function belongs.
type loading struct{}

// newGroup returns a group of loads for a caller. It calls no user code: within is the caller's
// value of loading.
func (c *Cache) newGroup(
	caller context.Context, within *singleflight.Group, refresh bool,
) *loadGroup {
	timeout := time.Duration(0)
	if refresh {
		timeout = c.options.RefreshTimeout
	}
	g := &loadGroup{
		caller: caller, within: within, refresh: refresh, kind: c.kind, byKey: map[string]*loadCall{},
	}
	ctx, group := singleflight.NewGroup(context.WithoutCancel(caller), timeout)
	g.group, g.ctx = group, context.WithValue(ctx, loading{}, group)
	return g
}

// addLocked lists a load of a key in its bucket, and keeps k. A group loads a key only once, even
// if a write has come since it was listed.
func (c *engine) addLocked(b *bucket, g *loadGroup, k []byte, h uint64) *loadCall {
	if f := g.byKey[string(k)]; f != nil {
		return f
	}
	f := b.calls.Add(k, h, g.group)
	f.Refresh = g.refresh
	g.calls = append(g.calls, f)
	g.byKey[string(f.Key)] = f
	c.loads.started.Add(1)
	return f
}

// start calls fn for the listed loads, if there are any. g may be nil.
func (g *loadGroup) start(c *engine, fn byteLoader) {
	if g == nil {
		return
	}
	if len(g.calls) > 0 {
		go c.run(g, fn)
	}
	g.group.Release()
}

// load gets the values of keys, with one call of fn for those that are gone and nobody is loading,
// and one for those that are usable.
func (c *Cache) load(ctx context.Context, all []wanted, fn byteLoader) {
	c.joinAll(ctx, all, fn)
	soft, cancel := ctx, func() {}
	if c.options.StaleIfError > 0 {
		soft, cancel = context.WithTimeout(ctx, c.options.SoftTimeout)
	}
	defer cancel()
	var gone []wanted // their stale values are gone meanwhile
	for i := range all {
		if w := &all[i]; w.call != nil && !c.await(w, soft) {
			k, h := c.key(nil, w.group.usersKey(w.key)) // the namespace may have been reset
			gone = append(gone, wanted{at: i, key: k, hash: h, got: miss})
		}
	}
	for i := range all {
		if w := &all[i]; w.call != nil {
			c.takeResult(w)
		}
	}
	if gone != nil {
		c.load(ctx, gone, fn)
	}
	for _, w := range gone {
		all[w.at].got, all[w.at].value, all[w.at].err = w.got, w.value, w.err
	}
}

// joinAll joins the loads of the keys, and starts those that are not in progress.
func (c *Cache) joinAll(ctx context.Context, all []wanted, fn byteLoader) {
	var gone, usable *loadGroup
	defer func() { // even after a panic: other callers may wait for the keys by now
		gone.start(c.engine, fn)
		usable.start(c.engine, fn)
	}()
	for i := range all {
		w, g := &all[i], &usable
		if w.got == needsRefresh {
			usable = c.addRefresh(ctx, usable, w.key, w.hash)
			continue
		}
		if w.got == miss {
			g = &gone
		}
		if *g == nil {
			within, _ := ctx.Value(loading{}).(*singleflight.Group)
			*g = c.newGroup(ctx, within, w.got == stale)
		}
		c.join(*g, w)
	}
}

// join adds a caller to those that wait for the load of a key. If none is in progress, it lists one
// in g, which the caller must start. If there is nothing to wait for, w has no call, but the value
// that was stored since the caller's lookup, or the error. If it has a call, the caller must call
// await.
func (c *engine) join(g *loadGroup, w *wanted) {
	w.group = g
	for {
		cold := c.joinUnlessCold(g, w)
		if cold {
			// It moves nothing to main: OnRemove might panic, and this caller has joined other loads.
			if w.value, _, w.got = c.lookupCold(nil, w.key, w.hash, c.counters.Here(),
				withValue); w.got == hit {
				return
			}
			continue
		}
		if w.call == nil {
			return
		}
		circle := g.within.Await(w.call.Group, g.usersKey(w.call.Key))
		if circle == nil {
			return
		}
		ended := c.leave(w.call)
		if w.call = nil; !ended {
			w.err = cycleError(circle)
			return
		}
	}
}

// joinUnlessCold is join that reports true for an entry that lookupCold has to read.
func (c *engine) joinUnlessCold(g *loadGroup, w *wanted) (cold bool) {
	var ended error
	if !g.refresh { // await takes the usable value
		ended = g.caller.Err()
	}
	b := c.bucket(w.hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	n := c.counters.Here()
	out, _, got := c.lookupUnder(b, nil, w.key, w.hash, n, withValue|touching)
	switch {
	case got == hit:
		w.value, w.got = out, hit
	case got == negative:
		n.Negative.Add(1)
		w.err = ErrAbsent
	case got == inCold:
		return true
	default:
		if w.err = ended; w.err == nil {
			w.call = c.waitLocked(b, g, w)
		}
	}
	return false
}

// waitLocked adds a caller to those that wait for the load of a key, and returns the load.
func (c *engine) waitLocked(b *bucket, g *loadGroup, w *wanted) *loadCall {
	f := b.calls.Find(w.key)
	if f != nil && f.Refresh && !g.refresh && f.Group != g.within {
		// It may hang, and this caller has no value to go on with: it starts its own load.
		b.calls.Invalidate(f)
		f = nil
	}
	if f == nil {
		f = c.addLocked(b, g, w.key, w.hash)
	}
	f.Waiters++
	return f
}

// await waits for a load that the caller has joined, until the caller's context ends. It waits for
// a refresh until soft ends, which the caller's context ends too, and takes the value that is there
// then. It reports false if the caller must load again: that value is gone, and the refresh may
// hang.
func (c *engine) await(w *wanted, soft context.Context) (done bool) {
	f, g := w.call, w.group
	defer g.within.Awaited(f.Group, g.usersKey(f.Key))
	if !g.refresh {
		soft = g.caller
	}
	select {
	case <-f.Done:
		return true
	case <-soft.Done():
	}
	if c.leave(f) {
		return true // both may have ended while the caller waited for another load
	}
	w.call = nil
	if g.refresh {
		if soft.Err() == context.DeadlineExceeded {
			c.holdOff(f.Hash, g.caller.Err() == nil)
		}
		if w.value, done = c.usable(w); done {
			return true
		}
	}
	w.err = g.caller.Err()
	return w.err != nil
}

// usersKey returns a key of the group's namespace as its caller wrote it.
func (g *loadGroup) usersKey(k []byte) []byte {
	if g.kind&record.Spaced != 0 {
		return k[generation.Size:]
	}
	return k
}

// leave removes a waiting caller, and reports whether the load has ended nevertheless.
func (c *engine) leave(f *loadCall) (ended bool) {
	b := c.bucket(f.Hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls.Leave(f)
}

// addRefresh lists a refresh for which the caller does not wait, unless a load is in progress. It
// lists it in g, which it creates if it is nil, and returns g.
func (c *Cache) addRefresh(ctx context.Context, g *loadGroup, k []byte, h uint64) *loadGroup {
	within, _ := ctx.Value(loading{}).(*singleflight.Group) // user code: not under the lock
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Closed || b.calls.Find(k) != nil {
		return g
	}
	if g == nil {
		g = c.newGroup(ctx, within, true)
	}
	c.addLocked(b, g, k, h)
	return g
}

// run calls fn, stores its results, and wakes the waiting callers.
func (c *engine) run(g *loadGroup, fn byteLoader) {
	keys := make([][]byte, len(g.calls))
	for i, f := range g.calls {
		keys[i] = bytes.Clone(g.usersKey(f.Key))
		f.Result.Err = errLoadExited // unless fn returns or panics
	}
	begin := time.Now()
	end := func(f *loadCall) { c.endLoad(f, time.Since(begin) > c.options.SoftTimeout) }
	defer func() {
		for _, f := range g.calls {
			end(f)
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
		if errors.Is(l.Err, ErrAbsent) {
			l.Err = ErrAbsent
		}
		g.calls[i].Result.loaded = l
	}
	// OnRemove may ask for these keys: it is called once none of them is still being loaded.
	g.calls = slices.DeleteFunc(g.calls, func(f *loadCall) bool {
		failed := f.Result.failed()
		if failed {
			end(f)
		}
		return failed
	})
	var removed *store.Removals
	for i, f := range g.calls {
		removed = c.storeResult(f, g.kind, removed, i == len(g.calls)-1)
	}
}

// call calls fn and returns a result for each key. An error of fn applies to every key.
func (g *loadGroup) call(fn byteLoader, keys [][]byte) []loaded {
	all, err := fn.load(g.ctx, keys)
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

// storeResult stores the result of a load that has not failed in a record of that kind, unless it
// was invalidated. It passes what was removed for this result and earlier ones to OnRemove if it is
// the last, else it returns it.
func (c *engine) storeResult(
	f *loadCall, kind record.Kind, removed *store.Removals, last bool,
) *store.Removals {
	l := &f.Result
	w := write{cond: ifListed, call: f, counted: true, quiet: !last, removals: removed}
	w.Key, w.Value, w.Hash, w.Reason = f.Key, l.Value, f.Hash, store.Replaced
	w.Kind = kind
	if l.Err == ErrAbsent {
		w.Value, w.Kind, w.Reason = nil, w.Kind|record.Negative, store.Deleted
	}
	if l.TTL = c.shared.Jittered(l.TTL); l.TTL != 0 {
		w.life = withTTL(l.TTL)
	}
	if err := c.put(nil, &w, "load"); err != nil {
		c.loads.dropped.Add(1)
	}
	return w.removals
}

// endLoad ends a call. After a refresh that has failed or was late, the next one is delayed. So it
// is after one that has stored an entry that is due at once: otherwise each hit would start another
// one.
func (c *engine) endLoad(f *loadCall, late bool) {
	failed, panicked, ttl := f.Result.failed(), f.Result.panicked != nil, f.Result.TTL
	b := c.bucket(f.Hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed && (panicked || f.Listed || f.Waiters > 0 || !f.Refresh) { // else a write canceled it
		c.loads.failed.Add(1)
	}
	if f.Refresh && (late || failed && f.Listed) {
		c.holdOff(f.Hash, true)
	}
	if !failed && c.pauses != nil {
		next := uint32(0)
		if f.Refresh && ttl > 0 && ttl <= c.options.RefreshAhead {
			next = c.shared.In(ttl / 2)
		}
		c.pauses.Of(f.Hash).End(next)
		if f.Refresh && !late {
			c.pauses.All.End(0)
		}
	}
	b.calls.Finish(f)
}
