package ringtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func equals(want int) func(int) bool { return func(v int) bool { return v == want } }

func TestRefModel_OnlyTheLastValue(t *testing.T) {
	var m refModel[string, int]
	require.False(t, m.Hit("a", equals(1)), "before any write")
	m.Set("a", 1)
	m.Set("a", 2)
	require.False(t, m.Hit("a", equals(1)), "it was overwritten")
	require.True(t, m.Hit("a", equals(2)), "the last value")
	require.False(t, m.Hit("b", equals(2)), "another key's value")
}

func TestRefModel_DroppedStaysDropped(t *testing.T) {
	var m refModel[string, int]
	m.Set("a", 1)
	m.Set("b", 1)
	m.Drop("a")
	require.False(t, m.Hit("a", equals(1)))
	require.True(t, m.Hit("b", equals(1)), "Drop must take away its own key and no other")
	require.Equal(t, 1, m.Len())
	m.Reset()
	require.False(t, m.Hit("b", equals(1)))
	require.Zero(t, m.Len())
}

func TestRefModel_TryAllowsBothUntilSeen(t *testing.T) {
	var m refModel[string, int]
	m.Try("a", 1) // on an empty model too
	m.Try("a", 2)
	require.Len(t, m.Candidates("a"), 2)
	require.False(t, m.Hit("a", equals(3)), "nobody wrote it")
	require.True(t, m.Hit("a", equals(1)), "the older candidate")
	require.False(t, m.Hit("a", equals(2)), "the value changed after it had been seen")
}

func TestRefModel_Keys(t *testing.T) {
	var m refModel[string, int]
	require.Empty(t, slices.Collect(m.Keys()))
	m.Set("b", 1)
	m.Set("a", 1)
	m.Set("c", 1)
	m.Drop("c")
	require.Equal(t, []string{"a", "b"}, slices.Sorted(m.Keys()))
}
