package ringcache

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// How a cache loads what it does not have, once however many ask for it.
//
// A flight is one call of a LoadFunc that is under way. While its bucket's list
// has it, whoever misses the key joins it, and what it brings will be stored. It
// leaves the list for good, under the bucket's lock, as soon as one of these
// comes: a write of the key, which makes the result out of date; the end of the
// last caller's patience; its own end. From then on nothing of it is stored, and
// who misses begins another (I12). So a write looks at the list, and that is all
// that loads cost it: one comparison where there are none.

// LoadFunc finds the value of a key that is not in the cache, for
// [Cache.GetOrLoad]. The context has the values of the call that began the
// load, but not its deadline: it ends when no caller waits for the load any
// more. k is a copy that the function may keep.
type LoadFunc func(ctx context.Context, k []byte) (Loaded, error)

// Loaded is what a [LoadFunc] has found.
type Loaded struct {
	// Value is the value of the key. From the function's return on it must not
	// be changed: those who wait for it copy it, each when it comes to it.
	Value []byte

	// TTL is how long the result stays in the cache at the most, as with
	// [Cache.SetWithTTL], but that 0 stands for [Options].TTL. Below 0 the
	// result goes to those who wait for it, and is not stored. 14 years are as
	// good as for ever.
	TTL time.Duration

	// Absent says that there is no value. Those who wait for it get
	// [ErrAbsent], and so does, without another load, who asks within TTL from
	// now on; it had better not be too long. Value is ignored.
	Absent bool
}

// LoadPanic is what a caller of [Cache.GetOrLoad] panics with when the load that
// it waits for does. All who wait get the same one and must not change it.
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

// GetOrLoad is [Cache.Get] that has a missing value loaded: it appends the value
// of k to dst and returns the extended slice, or returns dst as it is and an
// error. On a miss it calls load, in a goroutine that ends with it, stores the
// result, and returns it. Of many callers that miss k at once, one load serves
// all.
//
// A load's error goes to all who wait for it and is not stored: the next call
// tries again. A load that finds that there is no value may say so (see
// [Loaded]): for as long as it says, callers get [ErrAbsent] at once. For every
// other method k is not there then, but the mark takes the place of an entry and
// counts as one in [Cache.Len]. If load panics, every caller that waits for it
// panics with a [*LoadPanic]; if it calls [runtime.Goexit], they get
// [ErrLoadExited].
//
// When ctx ends, a call that waits returns ctx.Err(), and the load goes on for
// the others; when the last one has gone, the load's context is cancelled, its
// result is not stored, and another call begins another load. A call with a ctx
// that has ended hits but does not load.
//
// A load that any write of k overtakes (Set and its kin, Del, Reset) is not
// stored. Those who called before the write still get what it brings; who
// calls afterwards does not. What the cache refuses to store, since it is too
// large for example, is returned without an error, and loaded again the next
// time. What had to leave for the result, [Options].OnEvict is told of by the
// load's goroutine, and its panic is the load's. After Close, GetOrLoad returns
// [ErrClosed].
//
// With [Options].RefreshAhead, a hit on an entry that is about to expire begins
// a load and does not wait for it. Nobody hears of its error or panic, but for
// [Stats]: the entry stays until its time is over, and a call after that loads
// again.
//
// The bytes returned belong to the caller; k may be changed as soon as GetOrLoad
// returns. It must not be called by load with the same key, which would wait
// for itself. Hits do not allocate if dst has room, and lock what Get locks; but
// a function literal that uses variables around it is allocated by whoever
// writes it into the call, so it is best made once. In [Stats] a call counts as
// one lookup, and one that finds a mark as a miss.
func (c *Cache) GetOrLoad(ctx context.Context, dst, k []byte, load LoadFunc) ([]byte, error) {
	h := c.shared.hash(k)
	b := c.bucket(h)
	if out, ok := c.getHashed(dst, k, h, laneHere(), true); ok {
		if c.ahead > 0 && c.due(b, k, h) {
			c.refresh(ctx, b, k, h, load)
		}
		return out, nil
	}
	if c.marked(b, k, h) {
		return dst, errMarked
	}
	if err := ctx.Err(); err != nil {
		return dst, loadError(err)
	}
	f, out, err := c.join(ctx, b, dst, k, h, load)
	if f == nil {
		return out, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		if !b.leave(f) {
			return dst, loadError(ctx.Err())
		}
	}
	return f.deliver(dst)
}

// errMarked is what a mark answers. It is made once, as hits do not allocate.
var errMarked = loadError(ErrAbsent)

func loadError(err error) error { return fmt.Errorf("ringcache: load entry: %w", err) }

// flight is a load that is under way. What is above done is guarded by the
// bucket's lock; what is below is the load's own until done is closed, and does
// not change afterwards.
type flight struct {
	key     []byte
	h       uint64
	next    *flight // in the bucket's list
	listed  bool    // it is in that list (I12)
	refresh bool    // it goes on if nobody waits
	waiters int
	cancel  context.CancelFunc
	done    chan struct{}

	result   Loaded
	err      error
	panicked *LoadPanic
	returned bool // neither panicked nor exited
}

// deliver gives a caller what the load has brought.
func (f *flight) deliver(dst []byte) ([]byte, error) {
	switch {
	case f.panicked != nil:
		panic(f.panicked)
	case f.err != nil:
		return dst, f.err
	case f.result.Absent:
		return dst, errMarked
	}
	return append(dst, f.result.Value...), nil
}

// join adds a caller to those who wait for the load of the key, and begins one
// if none is under way. There is no flight if the key has been stored since the
// caller has looked: then it returns what is to be returned.
func (c *Cache) join(ctx context.Context, b *bucket, dst, k []byte, h uint64, load LoadFunc) (f *flight, out []byte, err error) {
	b.lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, dst, loadError(ErrClosed)
	}
	switch out, a := c.answerLocked(b, dst, k, h); a {
	case present:
		return nil, out, nil
	case absent:
		return nil, dst, errMarked
	}
	if f = b.flightLocked(k, h); f == nil {
		f = c.takeOffLocked(ctx, b, k, h, load)
	}
	f.waiters++
	return f, dst, nil
}

// leave takes a caller away from those who wait, and reports true if the load
// has ended nonetheless. One that nobody waits for is called off.
func (b *bucket) leave(f *flight) (ended bool) {
	b.lock()
	defer b.mu.Unlock()
	select {
	case <-f.done:
		return true
	default:
	}
	f.waiters--
	if f.waiters == 0 && !(f.refresh && f.listed) {
		b.unlistLocked(f)
		f.cancel() // also what had been overtaken before
	}
	return false
}

// due reports whether the entry of the key is about to expire and no load of it
// is under way.
func (c *Cache) due(b *bucket, k []byte, h uint64) bool {
	_, expiry, ok := c.peek(nil, &write{k: k, h: h}, false)
	if !ok || expiry == 0 || c.shared.left(expiry) > c.ahead {
		return false
	}
	b.hold()
	defer b.mu.release()
	return b.flightLocked(k, h) == nil
}

// refresh begins a load of the key that nobody waits for, if none is under way.
func (c *Cache) refresh(ctx context.Context, b *bucket, k []byte, h uint64, load LoadFunc) {
	b.lock()
	defer b.mu.Unlock()
	if !b.closed && b.flightLocked(k, h) == nil {
		c.takeOffLocked(ctx, b, k, h, load).refresh = true
	}
}

// takeOffLocked begins a load of the key.
func (c *Cache) takeOffLocked(ctx context.Context, b *bucket, k []byte, h uint64, load LoadFunc) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{
		key:    bytes.Clone(k),
		h:      h,
		next:   b.flights,
		listed: true,
		cancel: cancel,
		done:   make(chan struct{}),
	}
	b.flights = f
	b.loads++
	go c.fly(ctx, b, f, load)
	return f
}

// fly calls load, stores what it returns, and tells those who wait.
func (c *Cache) fly(ctx context.Context, b *bucket, f *flight, load LoadFunc) {
	defer b.land(f) // after Goexit too
	defer f.catch()
	if f.result, f.err = load(ctx, bytes.Clone(f.key)); f.err != nil {
		f.err = loadError(f.err)
	} else {
		c.keep(b, f)
	}
	f.returned = true
}

// catch notes how a load ended that did not return.
func (f *flight) catch() {
	if f.returned {
		return
	}
	if v := recover(); v != nil {
		f.panicked = &LoadPanic{Value: v, Stack: debug.Stack()}
	} else {
		f.err = loadError(ErrLoadExited)
	}
}

// keep stores the result of a load, unless a write has overtaken it. If the
// cache does not take it, those who wait have it all the same.
func (c *Cache) keep(b *bucket, f *flight) {
	w := write{k: f.key, h: f.h, cond: ifListed, flight: f, silent: true, reason: EvictReplaced}
	r := &f.result
	if r.Absent || r.TTL < 0 {
		w.reason = EvictDeleted
	}
	if w.absent = r.Absent; !r.Absent {
		w.v = r.Value
	}
	if w.expiry = c.shared.usual(); r.TTL > 0 {
		w.expiry = c.shared.expiry(r.TTL)
	}
	if w.absent && w.expiry == 0 {
		w.expiry = math.MaxUint32 // a mark has one: the last tick that there is
	}
	store := c.apply
	if r.TTL < 0 {
		store = c.setExpired
	}
	if store(&w) != nil {
		b.lock()
		b.loadsDropped++
		b.mu.Unlock()
	}
}

// land ends a flight.
func (b *bucket) land(f *flight) {
	b.lock()
	b.unlistLocked(f)
	if f.err != nil || f.panicked != nil {
		b.loadErrors++
	}
	close(f.done)
	b.mu.Unlock()
	f.cancel() // what the context holds
}

// flightLocked returns the flight of the key that may be joined, nil if there
// is none. The lock is held, to read at least.
func (b *bucket) flightLocked(k []byte, h uint64) *flight {
	for f := b.flights; f != nil; f = f.next {
		if f.h == h && string(f.key) == string(k) {
			return f
		}
	}
	return nil
}

// overtakeLocked is what every write of a key does to the load of it. It is
// inlined: nearly always there is none.
func (b *bucket) overtakeLocked(w *write) {
	if b.flights != nil {
		b.overtakeOneLocked(w)
	}
}

func (b *bucket) overtakeOneLocked(w *write) { b.unlistLocked(b.flightLocked(w.k, w.h)) }

// overtakeAllLocked is overtakeLocked for all keys of the bucket.
func (b *bucket) overtakeAllLocked() {
	for b.flights != nil {
		b.unlistLocked(b.flights)
	}
}

// unlistLocked takes a flight, if not nil, off the list if it is there. One that
// nobody waits for is called off.
func (b *bucket) unlistLocked(f *flight) {
	if f == nil || !f.listed {
		return
	}
	at := &b.flights
	for *at != f {
		at = &(*at).next
	}
	*at, f.next, f.listed = f.next, nil, false
	if f.waiters == 0 {
		f.cancel()
	}
}

// answer is what the cache knows of a key.
type answer uint8

const (
	unknown answer = iota
	present
	absent // there is a mark that says so
)

// marked reports whether there is a mark that the key is absent.
func (c *Cache) marked(b *bucket, k []byte, h uint64) bool {
	b.hold()
	defer b.mu.release()
	_, a := c.answerLocked(b, nil, k, h)
	return a == absent
}

// answerLocked looks for the entry or the mark of a key, without counting a
// lookup, and appends a value to dst. The lock of its small bucket is held, to
// read at least.
func (c *Cache) answerLocked(b *bucket, dst, k []byte, h uint64) ([]byte, answer) {
	out, a := b.answer(dst, k, h)
	if a != unknown || c.shared.strays(h).Load() == 0 {
		return out, a
	}
	lb := c.largeBucket(h)
	lb.hold()
	defer lb.mu.release()
	return lb.answer(dst, k, h)
}

func (b *bucket) answer(dst, k []byte, h uint64) ([]byte, answer) {
	var f found
	if !b.find(&f, k, h) || b.shared.expired(f.header) {
		return dst, unknown
	}
	b.touch(&f)
	if f.absent {
		return dst, absent
	}
	return f.peek(dst, true), present
}
