// Package singleflight lists the calls in progress, each for one key, so that callers that want the
// same key join a call instead of making another.
//
// It has three features that golang.org/x/sync/singleflight lacks and a cache needs: a write
// invalidates a call, a call that has no waiters left is cancelled, and calls that would wait for
// each other in a cycle are detected. One function may serve several calls, each in its own list:
// they form a Group.
package singleflight

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Group is the calls that one function serves, and the function's context, which is cancelled when
// none of the calls is wanted any more.
type Group struct {
	wanted atomic.Int64 // unreleased calls, plus 1 while calls may still be added
	cancel context.CancelFunc
	ends   time.Duration       // deadline of its function, since the start; 0: none
	awaits map[*Group][][]byte // keys of the calls that its function waits for; guarded by circles
}

// start is when the package was initialized. (A time or a Context in a Group would keep the methods
// of a time.Time, 40 KB, in every program.)
var start = time.Now()

// NewGroup returns a group to which calls may be added until its creator calls Release, and the
// context of its function, which should end within that time; 0 is for ever.
func NewGroup(parent context.Context, within time.Duration) (ctx context.Context, g *Group) {
	g = &Group{}
	if within > 0 {
		g.ends = time.Since(start) + min(within, math.MaxInt64/2)
		ctx, g.cancel = context.WithTimeout(parent, within)
	} else {
		ctx, g.cancel = context.WithCancel(parent)
	}
	g.wanted.Store(1)
	return ctx, g
}

// Release withdraws the interest of one call, or of the group's creator.
func (g *Group) Release() {
	if g.wanted.Add(-1) == 0 {
		g.cancel()
	}
}

// Call is a call in progress. It stays in its list until it is invalidated or finished; only until
// then may others join it, and may its result be stored. Listed, Waiters and Refresh require the
// lock of the list's owner.
type Call[T any] struct {
	Key     []byte
	Hash    uint64
	Group   *Group        // that serves it
	Done    chan struct{} // closed when the call has finished
	Result  T             // written only by the call until Done is closed, and constant afterwards
	Waiters int           // number of waiting callers
	Refresh bool          // the call runs even though no caller waits

	Listed   bool // neither invalidated nor finished
	released bool // the call is no longer wanted
}

// List is the calls of one owner, whose lock guards it. The zero value is empty. Operations take
// constant time, because a batch may list thousands of calls.
type List[T any] struct {
	ByKey map[string]*Call[T] // nil if there are none
}

// overtime is how long after its deadline a function that obeys its context may still run.
const overtime = time.Second

// Find returns the listed call of a key, which others may join, or nil if there is none. It
// invalidates a call that is in its list longer than overtime after its deadline.
func (l *List[T]) Find(key []byte) *Call[T] {
	c := l.ByKey[string(key)]
	if c == nil {
		return nil
	}
	if end := c.Group.ends; end != 0 && time.Since(start)-end > overtime {
		l.Invalidate(c)
		return nil
	}
	return c
}

// Add lists a new call of a group.
func (l *List[T]) Add(key []byte, hash uint64, g *Group) *Call[T] {
	g.wanted.Add(1)
	if l.ByKey == nil {
		l.ByKey = make(map[string]*Call[T])
	}
	c := &Call[T]{Key: key, Hash: hash, Group: g, Done: make(chan struct{}), Listed: true}
	l.ByKey[string(key)] = c
	return c
}

// Invalidate removes a call from the list if it is listed; c may be nil. If no caller waits for the
// call, its group no longer needs to run for it.
func (l *List[T]) Invalidate(c *Call[T]) {
	if c == nil || !c.Listed {
		return
	}
	c.Listed = false
	if delete(l.ByKey, string(c.Key)); len(l.ByKey) == 0 {
		l.ByKey = nil // also releases the memory of a long list
	}
	if c.Waiters == 0 {
		c.release()
	}
}

// release tells the group that the call is no longer wanted.
func (c *Call[T]) release() {
	if !c.released {
		c.released = true
		c.Group.Release()
	}
}

// InvalidateAll removes all calls from the list.
func (l *List[T]) InvalidateAll() {
	for l.ByKey != nil {
		for _, c := range l.ByKey {
			l.Invalidate(c)
		}
	}
}

// Leave removes a waiting caller, or reports true if the call has already finished. Unless it is a
// refresh, a call without waiters is invalidated, and its group no longer needs to run for it.
func (l *List[T]) Leave(c *Call[T]) (finished bool) {
	select {
	case <-c.Done:
		return true
	default:
	}
	c.Waiters--
	if c.Waiters == 0 && !(c.Refresh && c.Listed) {
		l.Invalidate(c)
		c.release() // also if it was invalidated before
	}
	return false
}

// Finish ends a call, whose result must have been set. When all calls of a group have ended, its
// context is cancelled to release its resources.
func (l *List[T]) Finish(c *Call[T]) {
	l.Invalidate(c)
	close(c.Done)
	c.release()
}

// longestPause is in ticks.
const longestPause = 100

// Pause is how long calls must not be repeated that have failed or take long. It holds the tick at
// which the pause ends and, above it, its length, which is 0 after a call that has succeeded.
type Pause struct{ v atomic.Uint64 }

// Try reports whether a call may begin at tick now, and whether there has been a pause since a call
// has succeeded. If so, the next pause begins: of many callers, one tries again.
func (p *Pause) Try(now uint32) (ok, again bool) {
	if was := p.v.Load(); was>>32 == 0 {
		return now >= uint32(was), false
	}
	return p.Begin(now), true
}

// Begin begins a pause unless one is under way, and reports whether it has. Each is twice as long
// as the one before, up to a bound.
func (p *Pause) Begin(now uint32) bool {
	was := p.v.Load()
	if now < uint32(was) {
		return false
	}
	length := min(max(2*(was>>32), 1), longestPause)
	return p.v.CompareAndSwap(was, length<<32|min(uint64(now)+length+1, math.MaxUint32))
}

// End ends the pause after a call that has succeeded, and lets the next one begin at a tick.
func (p *Pause) End(next uint32) {
	if p.v.Load() != uint64(next) { // most often both are 0
		p.v.Store(uint64(next))
	}
}

const pauseBits = 12

// Pauses are the pauses of all keys, in a fixed amount of memory: keys may share one.
type Pauses struct {
	All    Pause // of calls of any key
	places [1 << pauseBits]Pause
}

// Of returns the pause of a key with this hash.
func (p *Pauses) Of(hash uint64) *Pause { return &p.places[hash>>(64-pauseBits)] }
