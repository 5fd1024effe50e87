package views

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestTyped_GetOrLoadBatch(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	for name, o := range map[string]struct {
		n      *ringcache.Cache
		prefix string
	}{
		"plain":     {},
		"prefix":    {nil, "p:"},
		"namespace": {c.Namespace("n"), "p:"},
	} {
		t.Run(name, func(t *testing.T) {
			view := viewIn[string](c, o.n, ringtest.Naturals, o.prefix)
			require.NoError(t, view.Set("there", 1))
			var asked [][]string
			load := func(_ context.Context, keys []string) ([]ringcache.Loaded[int], error) {
				asked = append(asked, keys)
				all := make([]ringcache.Loaded[int], len(keys))
				for i, k := range keys {
					all[i] = ringcache.Loaded[int]{Value: len(k), TTL: time.Hour,
						Err: ringtest.AbsentIf(k == "absent")}
				}
				return all, nil
			}
			keys := []string{"missing", "there", "absent", "", "missing"}
			for _, want := range []int{1, 4} {
				vals, found := make([]int, 6), make([]bool, 6)
				vals[2], found[2], vals[5], found[5] = 9, true, 9, true
				hits, err := view.GetOrLoadBatch(t.Context(), keys, vals, found, load)
				require.NoError(t, err)
				require.Equal(t, []int{7, 1, 0, 0, 7, 9}, vals)
				require.Equal(t, []bool{true, true, false, true, true, true}, found)
				require.Len(t, asked, 1, "it was loaded again")
				require.Equal(t, []string{"missing", "absent", ""}, asked[0])
				require.Equal(t, want, hits, "at last all but the absent one")
			}
			if n := o.n; n != nil {
				require.Equal(t, uint64(10), n.Stats().GetCalls)
				require.Equal(t, uint64(5), n.Stats().Misses)
			}
			left, ok := view.TTL("missing")
			require.True(t, ok)
			require.Greater(t, left, time.Minute)
		})
	}
}

func TestTyped_GetOrLoadBatchErrors(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	view := ringcache.NewTyped[uint16](c, ringtest.Naturals, ringcache.TypedOptions{Prefix: "n"})
	require.NoError(t, view.Set(1, 11))
	require.NoError(t, c.Set([]byte("n\x00\x02"), []byte("two")))
	vals, found := make([]int, 3), make([]bool, 3)
	var asked []uint16
	batch := func(l ringcache.Loaded[int], loadErr error) (int, error) {
		return view.GetOrLoadBatch(t.Context(), []uint16{1, 2, 3}, vals, found,
			func(_ context.Context, keys []uint16) ([]ringcache.Loaded[int], error) {
				asked = keys
				return []ringcache.Loaded[int]{l}, loadErr
			})
	}
	require.NoError(t, view.Set(3, 33))
	hits, err := batch(ringcache.Loaded[int]{Value: 22}, nil)
	require.NoError(t, err)
	require.Equal(t, 2, hits)
	require.Equal(t, []uint16{2}, asked, "what cannot be decoded is loaded anew")
	require.Equal(t, []int{11, 22, 33}, vals)
	require.Equal(t, []bool{true, true, true}, found)
	v, _, err := view.Get(2)
	require.NoError(t, err)
	require.Equal(t, 22, v)

	errDown := errors.New("it is down")
	for _, x := range []struct {
		loaded ringcache.Loaded[int]
		err    error
		want   error
	}{
		{ringcache.Loaded[int]{Value: -1}, nil, ringcache.ErrEncode},
		{ringcache.Loaded[int]{}, errDown, errDown},
	} {
		c.Reset()
		require.NoError(t, view.Set(1, 11))
		require.NoError(t, view.Set(2, 22))
		hits, err := batch(x.loaded, x.err)
		require.ErrorIs(t, err, x.want)
		require.ErrorContains(t, err, "index 2")
		require.Equal(t, 2, hits)
		require.Equal(t, []int{11, 22, 0}, vals)
		require.Equal(t, []bool{true, true, false}, found)
		require.False(t, view.Has(3))
	}
	c.Reset()
	_, err = batch(ringcache.Loaded[int]{Value: 1}, nil)
	require.ErrorContains(t, err, "1 results for 3 keys")
	require.Panics(t, func() { _, _ = view.GetOrLoadBatch(t.Context(), nil, nil, nil, nil) })
	require.PanicsWithValue(t, "ringcache: load batch: a slice of 1 for 2 keys", func() {
		_, _ = view.GetOrLoadBatch(t.Context(), make([]uint16, 2), vals, found[:1],
			func(context.Context, []uint16) ([]ringcache.Loaded[int], error) { return nil, nil })
	})
}

func TestNamespace_GetOrLoadBatch(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	n := c.Namespace("n")
	var asked []string
	load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		all := make([]ringtest.Loaded, len(keys))
		for i, k := range keys {
			asked = append(asked, string(k))
			all[i].Value = append([]byte("value of "), k...)
		}
		return all, nil
	}
	require.NoError(t, n.Set([]byte("a"), []byte("1")))
	require.NoError(t, c.Set([]byte("b"), []byte("not the namespace's")))
	keys := [][]byte{[]byte("a"), []byte("b")}
	for round, want := range []string{"1", "1", "value of a"} {
		if round == 2 {
			n.Reset()
		}
		vals := make([][]byte, 2)
		_, hits, err := n.GetOrLoadBatch(t.Context(), nil, keys, vals, load)
		require.NoError(t, err)
		require.Equal(t, want, string(vals[0]))
		require.Equal(t, "value of b", string(vals[1]))
		require.Equal(t, []int{1, 2, 0}[round], hits)
	}
	require.Equal(t, []string{"b", "a", "b"}, asked)
	s := n.Stats()
	require.Equal(t, uint64(6), s.GetCalls)
	require.Equal(t, uint64(3), s.Misses)
}
