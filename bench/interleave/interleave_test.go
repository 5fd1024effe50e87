package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTurns(t *testing.T) {
	s := Stores{Names: []string{"a", "b", "c"}}
	for _, test := range []struct {
		turn, round int
		want        []string
	}{
		{0, 0, []string{"a", "b", "c"}},
		{2, 0, []string{"c", "a", "b"}},
		{0, 1, []string{"b", "a", "c"}},
		{1, 1, []string{"c", "b", "a"}},
		{4, 2, []string{"a", "b", "c"}},
	} {
		require.Equal(t, test.want, s.Turns(test.turn, test.round), "%+v", test)
	}
	require.Equal(t, []string{"a", "b", "c"}, s.Names)
}

func TestNew_WithoutBaseline(t *testing.T) {
	s, err := New("ringcache,fastcache", "")
	require.NoError(t, err)
	require.Equal(t, []string{"ringcache", "fastcache"}, s.Names)
	for _, bad := range []string{"nothing", "ringcache-baseline", ""} {
		_, err := New(bad, "")
		require.Error(t, err, bad)
	}
}
