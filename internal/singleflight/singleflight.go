// Package singleflight is a list of calls that are under way, each for a key, so
// that whoever wants the same joins one instead of making another.
//
// It differs from golang.org/x/sync/singleflight in what a cache needs: a write
// invalidates a call, a call that nobody waits for is cancelled, and calls that would wait
// for each other in a circle are found out. One function may answer several calls, each in its
// own list: a Group.
package singleflight

import (
	"context"
	"sync/atomic"
)

// Group is the calls that one function answers, and the function's context. It is cancelled
// when nobody wants any of them.
type Group struct {
	wanted atomic.Int64 // calls, and whoever may still add some
	cancel context.CancelFunc
	awaits map[*Group]*awaited // groups that its function waits for; guarded by circles
}

// NewGroup returns a group that more calls may be added to until Release.
func NewGroup(cancel context.CancelFunc) *Group {
	g := &Group{cancel: cancel}
	g.wanted.Store(1)
	return g
}

// Release says that one less wants the group: a call of it, or who added them.
func (g *Group) Release() {
	if g.wanted.Add(-1) == 0 {
		g.cancel()
	}
}

// Call is one call that is under way. It stands in its list until it is invalidated or
// finished; only as long may others join it, and its result be stored. Listed, Waiters
// and Refresh need the lock of the list's owner.
type Call[T any] struct {
	Key     []byte
	Hash    uint64
	Group   *Group        // that answers it
	Done    chan struct{} // closed when the call has finished
	Result  T             // the call's own until Done is closed; then it does not change
	Waiters int           // how many wait
	Refresh bool          // nobody waits, and it goes on nonetheless

	next     *Call[T]
	listed   bool
	released bool // nobody wants the call any more
}

// Listed reports whether the call is neither invalidated nor finished.
func (c *Call[T]) Listed() bool { return c.listed }

// List is the calls of one owner, whose lock guards it. The zero value is empty. It takes the
// same time whatever its length: a batch may list thousands.
type List[T any] struct {
	byHash map[uint64]*Call[T] // those of equal hashes one behind the other; nil: no call
}

// Empty reports whether there is no call.
func (l *List[T]) Empty() bool { return l.byHash == nil }

// Find returns the call of a key that others may join, nil if there is none.
func (l *List[T]) Find(key []byte, hash uint64) *Call[T] {
	c := l.byHash[hash]
	for c != nil && string(c.Key) != string(key) {
		c = c.next
	}
	return c
}

// Add lists a new call, of a group.
func (l *List[T]) Add(key []byte, hash uint64, g *Group) *Call[T] {
	g.wanted.Add(1)
	if l.byHash == nil {
		l.byHash = make(map[uint64]*Call[T])
	}
	c := &Call[T]{
		Key:    key,
		Hash:   hash,
		Group:  g,
		Done:   make(chan struct{}),
		next:   l.byHash[hash],
		listed: true,
	}
	l.byHash[hash] = c
	return c
}

// Invalidate takes a call, if not nil, off the list if it is there. For one
// that nobody waits for, its group need not go on.
func (l *List[T]) Invalidate(c *Call[T]) {
	if c == nil || !c.listed {
		return
	}
	first := l.byHash[c.Hash]
	at := &first
	for *at != c {
		at = &(*at).next
	}
	*at, c.next, c.listed = c.next, nil, false
	if first != nil {
		l.byHash[c.Hash] = first
	} else if delete(l.byHash, c.Hash); len(l.byHash) == 0 {
		l.byHash = nil // and with it the room for as many as there were
	}
	if c.Waiters == 0 {
		c.release()
	}
}

// release tells the group that nobody wants the call any more.
func (c *Call[T]) release() {
	if !c.released {
		c.released = true
		c.Group.Release()
	}
}

// InvalidateAll takes all calls off the list.
func (l *List[T]) InvalidateAll() {
	for !l.Empty() {
		for _, c := range l.byHash {
			l.Invalidate(c)
		}
	}
}

// Leave takes one away who waits, and reports true if the call has finished
// nonetheless. One that nobody waits for is invalidated, and its group need not go on for it.
func (l *List[T]) Leave(c *Call[T]) (finished bool) {
	select {
	case <-c.Done:
		return true
	default:
	}
	c.Waiters--
	if c.Waiters == 0 {
		l.Invalidate(c)
		c.release() // also what was invalidated before
	}
	return false
}

// Finish ends a call. Its result must have been set. When all of a group have ended, its
// context is cancelled, for what that holds.
func (l *List[T]) Finish(c *Call[T]) {
	l.Invalidate(c)
	close(c.Done)
	c.release()
}
