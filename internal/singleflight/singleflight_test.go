package singleflight

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// newGroup returns a group; n counts its cancellations.
func newGroup(n *int) *Group {
	_, g := NewGroup(context.Background(), 0)
	cancel := g.cancel
	g.cancel = func() {
		*n++
		cancel()
	}
	return g
}

// add adds a call with one waiter; n counts its cancellations.
func add(l *List[int], key string, hash uint64, n *int) *Call[int] {
	g := newGroup(n)
	defer g.Release()
	c := l.Add([]byte(key), hash, g)
	c.Waiters++
	return c
}

func isDone(c *Call[int]) bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

func TestList_FindsByKey(t *testing.T) {
	var l List[int]
	var n int
	require.Nil(t, l.ByKey)
	a, b := add(&l, "a", 1, &n), add(&l, "b", 1, &n)
	require.Same(t, a, l.Find([]byte("a")))
	require.Same(t, b, l.Find([]byte("b")))
	require.Nil(t, l.Find([]byte("c")))
}

// An invalidated call goes on for those who wait, but nobody joins it any more.
func TestList_InvalidatedCallGoesOnForWaiters(t *testing.T) {
	var l List[int]
	var n int
	c := add(&l, "a", 1, &n)
	l.Invalidate(c)
	l.Invalidate(c) // does nothing
	l.Invalidate(nil)
	require.False(t, c.Listed)
	require.Nil(t, l.Find([]byte("a")))
	require.Zero(t, n, "somebody waits")
	next := add(&l, "a", 1, &n)
	require.Same(t, next, l.Find([]byte("a")))
	c.Result = 7
	l.Finish(c)
	require.True(t, isDone(c))
	require.True(t, l.Leave(c), "it has finished nonetheless")
	require.Equal(t, 1, n, "what its context holds")
	require.Same(t, next, l.Find([]byte("a")), "another call of the key")
}

// A call that nobody waits for any more is cancelled.
func TestList_LastWaiterCancels(t *testing.T) {
	var l List[int]
	var n int
	c := add(&l, "a", 1, &n)
	c.Waiters++
	require.False(t, l.Leave(c))
	require.Zero(t, n)
	require.True(t, c.Listed)
	require.False(t, l.Leave(c))
	require.False(t, c.Listed)
	require.Equal(t, 1, n)
}

func TestList_InvalidateAll(t *testing.T) {
	var l List[int]
	var n int
	calls := []*Call[int]{add(&l, "a", 1, &n), add(&l, "b", 2, &n), add(&l, "c", 3, &n)}
	l.Invalidate(calls[1]) // from the middle
	require.NotNil(t, l.Find([]byte("a")))
	require.NotNil(t, l.Find([]byte("c")))
	l.Leave(calls[1])
	require.Equal(t, 1, n, "what was invalidated before, and is left now")
	calls[2].Refresh, calls[2].Waiters = true, 0
	l.InvalidateAll()
	require.Nil(t, l.ByKey)
	require.Equal(t, 2, n, "the refresh that nobody waits for")
	require.False(t, isDone(calls[0]))
}

// A group is cancelled once, when the last of its calls has been left or has ended, and not
// before all have been added.
func TestGroup_LastCallCancels(t *testing.T) {
	var l, other List[int]
	n := 0
	g := newGroup(&n)
	a := l.Add([]byte("a"), 1, g)
	a.Waiters++
	require.False(t, l.Leave(a))
	require.Zero(t, n, "others may be added")
	b, c := other.Add([]byte("b"), 2, g), l.Add([]byte("c"), 3, g)
	b.Waiters, c.Waiters = 2, 1
	g.Release()
	other.Leave(b)
	l.Invalidate(c)
	l.Leave(c)
	require.Zero(t, n, "one waits for b")
	l.Finish(a)
	l.Finish(c)
	require.Zero(t, n, "they have been counted")
	other.Leave(b)
	require.Equal(t, 1, n)
	other.Finish(b)
	require.Equal(t, 1, n)
}
