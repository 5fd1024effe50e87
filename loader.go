package ringcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ringcache/ringcache/internal/singleflight"
)

// How a cache loads what it does not have, once however many ask for it.
//
// A bucket lists the loads of its keys that are under way. Whoever misses a key joins its
// call. A call leaves the list for good, under the bucket's lock, when the key is written,
// which makes its result out of date, when the last caller's context ends, or when it
// ends itself. From then on nothing of it is stored, and who misses starts another (I12).
// A write looks at the list: one comparison where there are no loads.

// LoadFunc finds the value of a key that is not in the cache, for [Cache.GetOrLoad]. The
// context has the values of the call that began the load, but not its deadline: it ends when
// no caller waits for the load any more. k is a copy that the function may keep.
type LoadFunc func(ctx context.Context, k []byte) (Loaded, error)

// Loaded is what a [LoadFunc] has found.
type Loaded struct {
	// Value is the value of the key. From the function's return on it must not be changed:
	// those who wait for it copy it, each when it comes to it.
	Value []byte

	// TTL is how long the result stays in the cache at the most, as with
	// [Cache.SetWithTTL], but that 0 stands for [Options].TTL. Below 0, or below a tick of
	// 100 ms, the result goes to those who wait for it, and is not stored.
	TTL time.Duration

	// Absent says that there is no value; an error that is [ErrAbsent] says it too. Those
	// who wait for it get ErrAbsent, and so does, without another load, who asks within
	// TTL from now on. Value is ignored.
	Absent bool
}

// LoadPanic is what a caller of [Cache.GetOrLoad] panics with when the load that it waits for
// does. All who wait get the same one and must not change it.
type LoadPanic struct {
	Value any    // what the load panicked with
	Stack []byte // of the load, as of [debug.Stack]
}

// Error returns the panic's value and the stack of the load.
func (p *LoadPanic) Error() string {
	return fmt.Sprintf("ringcache: load entry: panic: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic's value if it is an error, else nil.
func (p *LoadPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// GetOrLoad is [Cache.Get] that has a missing value loaded: it appends the value of k to dst
// and returns the extended slice, or returns dst as it is and an error. On a miss it calls
// load, in a goroutine that ends with it, stores the result, and returns it. Of many callers
// that miss k at once, one load serves all. load must not call GetOrLoad with the same key,
// which would wait for itself.
//
// A load's error goes to all who wait for it and is not stored. A load may find that there is
// no value (see [Loaded]): for as long as it says, callers get [ErrAbsent] at once. For every
// other method k is not there then, but this negative entry takes memory and counts as one in
// [Cache.Len]. If load panics, every caller that waits panics with a [*LoadPanic]; if it calls
// [runtime.Goexit], they get [ErrLoadExited]. After Close, GetOrLoad returns [ErrClosed].
//
// When ctx ends, a call that waits returns ctx.Err(), wrapped as all errors of GetOrLoad are
// (test with [errors.Is]), and the load goes on for the others; when the last one has gone,
// the load's context is cancelled, and its result is not stored. A call with a ctx that has
// ended hits but does not load.
//
// The result of a load is not stored either if any write of k (Set and its kin, Del, Reset)
// has come meanwhile, or if the cache refuses it, since it is too large for example. Those who
// called before still get it; who calls afterwards loads again. What had to leave for it,
// [Options].OnEvict is told of by the load's goroutine, and its panic is the load's.
//
// With [Options].RefreshAhead, a hit on an entry that is about to expire begins a load and
// does not wait for it. Nobody hears of its error or panic, but for [Stats].
//
// The bytes returned belong to the caller. Hits do not allocate if dst has room, and lock what
// Get locks; a function literal that uses variables around it is allocated by whoever writes
// it into the call, so it is best made once. A call counts as one lookup in [Stats], and one
// that finds a negative entry as a miss.
func (c *Cache) GetOrLoad(ctx context.Context, dst, k []byte, load LoadFunc) ([]byte, error) {
	mustBeFunc("GetOrLoad", load != nil)
	h := c.shared.hash(k)
	out, expiry, got := c.lookup(dst, k, h, getMode)
	switch got {
	case hit:
		if c.ahead > 0 && expiry != 0 && c.shared.Until(expiry) <= c.ahead {
			c.refresh(ctx, k, h, load)
		}
		return out, nil
	case negative:
		return dst, errNegative
	}
	if err := ctx.Err(); err != nil {
		return dst, loadError(err)
	}
	f, out, err := c.join(ctx, dst, k, h, load)
	if f == nil {
		return out, err
	}
	select {
	case <-f.Done:
	case <-ctx.Done():
		if !c.leave(f) {
			return dst, loadError(ctx.Err())
		}
	}
	return f.Result.deliver(dst)
}

// errNegative is what a negative entry answers, made once: hits do not allocate.
var errNegative = loadError(ErrAbsent)

func loadError(err error) error { return fmt.Errorf("ringcache: load entry: %w", err) }

// load is what a load has brought.
type load struct {
	Loaded
	err      error
	panicked *LoadPanic
}

// loadCall is a load that is under way.
type loadCall = singleflight.Call[load]

// deliver gives a caller what the load has brought.
func (l *load) deliver(dst []byte) ([]byte, error) {
	switch {
	case l.panicked != nil:
		panic(l.panicked)
	case l.err != nil:
		return dst, loadError(l.err)
	case l.Absent:
		return dst, errNegative
	}
	return append(dst, l.Value...), nil
}

// join adds a caller to those who wait for the load of the key, and starts one if none is
// under way. If the key was stored since the caller has looked, there is no call, and join
// returns what the caller is to return.
func (c *Cache) join(
	ctx context.Context, dst, k []byte, h uint64, fn LoadFunc,
) (f *loadCall, out []byte, err error) {
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, dst, loadError(ErrClosed)
	}
	switch out, _, got := c.lookupUnder(b, dst, k, h, c.counters.Here(), withValue|touching); got {
	case hit:
		return nil, out, nil
	case negative:
		return nil, dst, errNegative
	}
	if f = b.calls.Find(k, h); f == nil {
		f = c.startLocked(ctx, b, k, h, fn)
	}
	f.Waiters++
	return f, dst, nil
}

// leave takes away a caller who waits, and reports true if the load has ended nonetheless.
func (c *Cache) leave(f *loadCall) (ended bool) {
	b := c.bucket(f.Hash)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls.Leave(f)
}

// refresh starts a load of the key that nobody waits for, if none is under way.
func (c *Cache) refresh(ctx context.Context, k []byte, h uint64, fn LoadFunc) {
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && b.calls.Find(k, h) == nil {
		c.startLocked(ctx, b, k, h, fn).Refresh = true
	}
}

// startLocked starts a load of the key.
func (c *Cache) startLocked(
	ctx context.Context, b *bucket, k []byte, h uint64, fn LoadFunc,
) *loadCall {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := b.calls.Add(bytes.Clone(k), h, cancel)
	b.loads++
	go c.run(ctx, b, f, fn)
	return f
}

// run calls fn, stores what it returns, and tells those who wait.
func (c *Cache) run(ctx context.Context, b *bucket, f *loadCall, fn LoadFunc) {
	l := &f.Result
	l.err = ErrLoadExited // unless it returns or panics
	defer b.finish(f)
	defer func() {
		if v := recover(); v != nil {
			l.panicked = &LoadPanic{Value: v, Stack: debug.Stack()}
		}
	}()
	var err error
	if l.Loaded, err = fn(ctx, bytes.Clone(f.Key)); errors.Is(err, ErrAbsent) {
		l.Absent, err = true, nil
	}
	if err == nil {
		c.keep(b, f)
	}
	l.err = err
}

// keep stores the result of a load, unless a write has invalidated it.
func (c *Cache) keep(b *bucket, f *loadCall) {
	l := &f.Result
	w := write{k: f.Key, v: l.Value, h: f.Hash, cond: ifListed, call: f, silent: true,
		reason: EvictReplaced, expiry: c.shared.Default()}
	if l.Absent {
		w.v, w.negative, w.reason = nil, true, EvictDeleted
	}
	var err error
	if l.TTL == 0 {
		err = c.apply(&w, "load")
	} else {
		err = c.applyFor(&w, l.TTL, "load")
	}
	if err != nil {
		b.mu.Lock()
		b.loadsDropped++
		b.mu.Unlock()
	}
}

// finish ends a call.
func (b *bucket) finish(f *loadCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.Result.err != nil || f.Result.panicked != nil {
		b.loadErrors++
	}
	b.calls.Finish(f)
}
