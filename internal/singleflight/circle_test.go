package singleflight

import (
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

func TestPauses(t *testing.T) {
	var p Pauses
	require.Zero(t, p.End(1<<63))
	p.Begin(1<<63, 7)
	require.EqualValues(t, 7, p.End(1<<63))
	require.Zero(t, p.End(1<<62))
}
