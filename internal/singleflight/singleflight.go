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
	"sync/atomic"
)

// Group is the calls that one function serves, and the function's context, which is cancelled when
// none of the calls is wanted any more.
type Group struct {
	wanted atomic.Int64 // unreleased calls, plus 1 while calls may still be added
	cancel context.CancelFunc
	awaits map[*Group]map[string]int // waits of its function, by key; guarded by circles
}

// NewGroup returns a group to which calls may be added until its creator calls Release.
func NewGroup(cancel context.CancelFunc) *Group {
	g := &Group{cancel: cancel}
	g.wanted.Store(1)
	return g
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

// Find returns the listed call of a key, which others may join, or nil if there is none.
func (l *List[T]) Find(key []byte) *Call[T] { return l.ByKey[string(key)] }

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

// Leave removes a waiting caller, or reports true if the call has already finished. A call without
// waiters is invalidated, and its group no longer needs to run for it.
func (l *List[T]) Leave(c *Call[T]) (finished bool) {
	select {
	case <-c.Done:
		return true
	default:
	}
	c.Waiters--
	if c.Waiters == 0 {
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

const pauseBits = 12

// Pauses records, in a fixed amount of memory, how long calls that have failed must not be
// repeated. Keys may share a place; they then share a pause, or a pause ends early.
type Pauses [1 << pauseBits]atomic.Uint32

// Begin makes the calls of a key with this hash pause until the given time, which must not be 0.
func (p *Pauses) Begin(hash uint64, until uint32) { p[hash>>(64-pauseBits)].Store(until) }

// End returns the time at which the last pause of the key ends or has ended, or 0 if there was
// none.
func (p *Pauses) End(hash uint64) uint32 { return p[hash>>(64-pauseBits)].Load() }
