package singleflight

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// circleOf returns the keys that Await returns, joined.
func circleOf(g, on *Group, key string) (s string) {
	for _, k := range g.Await(on, []byte(key)) {
		s += string(k) + " "
	}
	return s
}

// The wait that would close a circle is refused, and no other.
func TestGroup_AwaitRefusesCircles(t *testing.T) {
	a, b, c, d := new(Group), new(Group), new(Group), new(Group)
	require.Equal(t, "a ", circleOf(a, a, "a"))
	require.Empty(t, circleOf(a, b, "b"))
	require.Empty(t, circleOf(a, d, "d"))
	require.Empty(t, circleOf(b, c, "c"))
	require.Empty(t, circleOf(b, d, "d"), "two wait for one")
	require.Equal(t, "a b c ", circleOf(c, a, "a"))
	require.Empty(t, circleOf(c, d, "d"), "nothing of it was noted")
	require.NotEmpty(t, circleOf(d, a, "a"), "there are three ways")

	require.Empty(t, circleOf(a, b, "b"))
	require.Empty(t, circleOf(a, b, "b again"))
	a.Awaited(b, []byte("b"))
	require.Contains(t, []string{"a b c ", "a b again c "}, circleOf(c, a, "a"))
	a.Awaited(b, []byte("b"))
	require.Equal(t, "a b again c ", circleOf(c, a, "a"), "a key that it still waits for")
	a.Awaited(b, []byte("b again"))
	require.Empty(t, circleOf(c, a, "a"))
	require.NotEmpty(t, circleOf(a, b, "b"))

	require.Empty(t, circleOf(nil, a, "a"), "nobody waits for a caller from outside")
	(*Group)(nil).Awaited(a, nil)
}

// Pauses double up to a bound, and of many callers one tries again after each.
func TestPauses(t *testing.T) {
	const h, now = 1 << 63, 1000
	var all Pauses
	p := all.Of(h)
	require.Same(t, p, all.Of(h+1))
	require.NotSame(t, p, all.Of(1<<62))
	try := func(now uint32) [2]bool {
		ok, again := p.Try(now)
		return [2]bool{ok, again}
	}
	require.Equal(t, [2]bool{true, false}, try(now))
	require.Equal(t, [2]bool{true, false}, try(now), "nothing has failed")
	require.True(t, p.Begin(now))
	require.False(t, p.Begin(now+1), "it is under way")
	at := uint32(now)
	for _, length := range []uint32{1, 2, 4, 8, 16, 32, 64, 100, 100} {
		require.Equal(t, [2]bool{false, true}, try(at+length), "after %d ticks", length)
		at += length + 1
		require.Equal(t, [2]bool{true, true}, try(at), "after %d ticks", length)
		require.Equal(t, [2]bool{false, true}, try(at), "another caller")
	}
	p.End(at + 5)
	require.Equal(t, [2]bool{false, false}, try(at+4))
	require.Equal(t, [2]bool{true, false}, try(at+5))
	p.End(0)
	p.Begin(math.MaxUint32 - 1) // the clock's end
	require.Equal(t, [2]bool{false, true}, try(math.MaxUint32-1))
}
