// Package singleflight is a list of calls that are under way, each for a key, so
// that whoever wants the same joins one instead of making another.
//
// It differs from golang.org/x/sync/singleflight in what a cache needs: a write
// invalidates a call, and a call that nobody waits for is cancelled.
package singleflight

import "context"

// Call is one call that is under way. It stands in its list until it is invalidated or
// finished; only as long may others join it, and its result be stored. Listed, Waiters
// and Refresh need the lock of the list's owner.
type Call[T any] struct {
	Key     []byte
	Hash    uint64
	Done    chan struct{} // closed when the call has finished
	Result  T             // the call's own until Done is closed; then it does not change
	Waiters int           // how many wait
	Refresh bool          // it goes on if nobody waits

	next   *Call[T]
	listed bool
	cancel context.CancelFunc
}

// Listed reports whether the call is neither invalidated nor finished.
func (c *Call[T]) Listed() bool { return c.listed }

// List is the calls of one owner, whose lock guards it. The zero value is empty.
type List[T any] struct{ first *Call[T] }

// Empty reports whether there is no call.
func (l *List[T]) Empty() bool { return l.first == nil }

// Find returns the call of a key that others may join, nil if there is none.
func (l *List[T]) Find(key []byte, hash uint64) *Call[T] {
	for c := l.first; c != nil; c = c.next {
		if c.Hash == hash && string(c.Key) == string(key) {
			return c
		}
	}
	return nil
}

// Add lists a new call. cancel tells it that nobody waits any more.
func (l *List[T]) Add(key []byte, hash uint64, cancel context.CancelFunc) *Call[T] {
	c := &Call[T]{
		Key:    key,
		Hash:   hash,
		Done:   make(chan struct{}),
		next:   l.first,
		listed: true,
		cancel: cancel,
	}
	l.first = c
	return c
}

// Invalidate takes a call, if not nil, off the list if it is there. One that
// nobody waits for is cancelled.
func (l *List[T]) Invalidate(c *Call[T]) {
	if c == nil || !c.listed {
		return
	}
	at := &l.first
	for *at != c {
		at = &(*at).next
	}
	*at, c.next, c.listed = c.next, nil, false
	if c.Waiters == 0 {
		c.cancel()
	}
}

// InvalidateAll takes all calls off the list.
func (l *List[T]) InvalidateAll() {
	for l.first != nil {
		l.Invalidate(l.first)
	}
}

// Leave takes one away who waits, and reports true if the call has finished
// nonetheless. One that nobody waits for is invalidated and cancelled.
func (l *List[T]) Leave(c *Call[T]) (finished bool) {
	select {
	case <-c.Done:
		return true
	default:
	}
	c.Waiters--
	if c.Waiters == 0 && !(c.Refresh && c.listed) {
		l.Invalidate(c)
		c.cancel() // also what was invalidated before
	}
	return false
}

// Finish ends a call. Its result must have been set.
func (l *List[T]) Finish(c *Call[T]) {
	l.Invalidate(c)
	close(c.Done)
	c.cancel() // what the context holds
}
