package ringcache_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// A batch is what so many calls of Set in its order would be.
func TestContract_SetBatch(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 500} {
		c := small(t)
		var keys, vals [][]byte
		want := map[string][]byte{}
		for i := range n {
			k, v := []byte(strconv.Itoa(i%80)), pattern(strconv.Itoa(i), i%300)
			if i%50 == 49 {
				v = pattern("large", 20_000+i)
			}
			keys, vals = append(keys, k), append(vals, v)
			want[string(k)] = bytes.Clone(v)
		}
		require.NoError(t, c.SetBatch(keys, append(vals, []byte("beyond the keys"))))
		for i := range keys { // the cache keeps copies
			clear(keys[i])
			clear(vals[i])
		}
		require.Equal(t, len(want), c.Len())
		for k, v := range want {
			got, ok := c.HasGet(nil, []byte(k))
			require.True(t, ok, "key %q of %d", k, n)
			require.True(t, bytes.Equal(v, got), "key %q of %d: the last value wins", k, n)
		}
		require.Equal(t, uint64(n), stats(c).SetCalls)
	}
}

// The first error is told, with its index, and all others are tried.
func TestContract_SetBatchErrors(t *testing.T) {
	for _, bad := range [][]int{{0}, {1, 2}, {99}, {64, 70, 3}, {65, 64}} {
		c := small(t)
		keys, vals := make([][]byte, 100), make([][]byte, 100)
		for i := range keys {
			keys[i], vals[i] = []byte(strconv.Itoa(i)), []byte("value")
			require.NoError(t, c.Set(keys[i], []byte("old value")))
		}
		first := len(keys)
		for _, i := range bad {
			vals[i] = make([]byte, maxValue+1)
			first = min(first, i)
		}
		err := c.SetBatch(keys, vals)
		require.ErrorIs(t, err, ringcache.ErrTooLarge)
		require.ErrorContains(t, err, "ringcache: set batch: index "+strconv.Itoa(first)+": ")
		require.Equal(t, 1, bytes.Count([]byte(err.Error()), []byte("ringcache:")))
		require.Equal(t, len(keys)-len(bad), c.Len())
		for i, k := range keys {
			got, ok := c.HasGet(nil, k)
			if len(vals[i]) > maxValue {
				require.False(t, ok, "the old value of a refused key is out of date")
			} else {
				require.Equal(t, "value", string(got))
			}
		}
	}
	c := ringcache.New(1)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SetBatch([][]byte{{1}}, [][]byte{{2}}), ringcache.ErrClosed)
	require.NoError(t, c.SetBatch(nil, nil))
}

func TestContract_SetBatchBounds(t *testing.T) {
	c := small(t)
	require.Panics(t, func() { _ = c.SetBatch([][]byte{{1}, {2}}, make([][]byte, 1)) }, "fewer vals than keys")
	require.Zero(t, c.Len(), "nothing is stored of a batch that panics")
	require.NoError(t, c.SetBatch([][]byte{nil, {1}}, [][]byte{nil, nil}))
	require.True(t, c.Has(nil))
	require.True(t, c.Has([]byte{1}))
}
