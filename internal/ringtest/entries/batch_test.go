package entries

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestGetBatch_FindsWhatGetFinds(t *testing.T) {
	c := ringtest.Small(t)
	for i := range 300 {
		require.NoError(t, c.Set([]byte(strconv.Itoa(i)), ringtest.Pattern(strconv.Itoa(i), i)))
	}
	require.NoError(t, c.Set([]byte("large"), ringtest.Pattern("large", 100_000)))
	names := []string{"0", "7", "absent", "7", "large", "299", "absent", "0"}
	for range 3 { // more than any batch that is taken at once
		for i := range 60 {
			names = append(names, strconv.Itoa(i*5), "absent"+strconv.Itoa(i))
		}
	}
	keys := make([][]byte, len(names))
	for i, n := range names {
		keys[i] = []byte(n)
	}
	for _, dst := range [][]byte{nil, []byte("held"), make([]byte, 4, 1<<20)} {
		held := string(dst)
		vals := make([][]byte, len(keys)+1)
		for i := range vals {
			vals[i] = []byte("old")
		}
		out, hits := c.GetBatch(dst, keys, vals)
		require.Equal(t, held, string(out[:len(dst)]))
		require.Equal(t, "old", string(vals[len(keys)]))
		wantHits := 0
		for i, n := range names {
			want, ok := c.HasGet(nil, keys[i])
			if !ok {
				require.Nil(t, vals[i], "%q was never set", n)
				continue
			}
			wantHits++
			require.NotNil(t, vals[i], "%q is empty, not absent", n)
			require.True(t, bytes.Equal(want, vals[i]), "value of %q", n)
			ringtest.RequirePart(t, out[len(dst):], vals[i])
		}
		require.Equal(t, wantHits, hits)
		// The caller owns all of it: appending to one must not reach another.
		_ = append(vals[1], "overrun"...)
		require.True(t, bytes.Equal(ringtest.Pattern("large", 100_000), vals[4]))
		require.True(t, bytes.Equal(ringtest.Pattern("7", 7), vals[3]))
		clear(out)
		require.True(t, bytes.Equal(ringtest.Pattern("7", 7), c.Get(nil, []byte("7"))))
	}
}

func TestGetBatch_NeedsRoomForAllValues(t *testing.T) {
	c := ringtest.Small(t)
	out, hits := c.GetBatch(nil, nil, nil)
	require.Empty(t, out)
	require.Zero(t, hits)
	tooFew := func() { c.GetBatch(nil, [][]byte{{1}, {2}}, make([][]byte, 1)) }
	require.Panics(t, tooFew, "fewer vals than keys")
	require.NoError(t, c.Set([]byte{1}, []byte("still works")))

	// An empty value is told from a miss even where out is empty too.
	require.NoError(t, c.Set([]byte("empty"), nil))
	vals := make([][]byte, 2)
	_, hits = c.GetBatch(nil, [][]byte{[]byte("empty"), []byte("none")}, vals)
	require.Equal(t, 1, hits)
	require.NotNil(t, vals[0])
	require.Nil(t, vals[1])
}

// A batch is what so many calls of Set in its order would be.
func TestSetBatch_IsSetOfEachKeyInTurn(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 500} {
		c := ringtest.Small(t)
		var keys, vals [][]byte
		want := map[string][]byte{}
		for i := range n {
			k, v := []byte(strconv.Itoa(i%80)), ringtest.Pattern(strconv.Itoa(i), i%300)
			if i%50 == 49 {
				v = ringtest.Pattern("large", 20_000+i)
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
		require.Equal(t, uint64(n), ringtest.StatsOf(c).SetCalls)
	}
}

// The first error is told, with its index, and all others are tried.
func TestSetBatch_TellsTheFirstError(t *testing.T) {
	for _, bad := range [][]int{{0}, {1, 2}, {99}, {64, 70, 3}, {65, 64}} {
		c := ringtest.Small(t)
		keys, vals := make([][]byte, 100), make([][]byte, 100)
		for i := range keys {
			keys[i], vals[i] = []byte(strconv.Itoa(i)), []byte("value")
			require.NoError(t, c.Set(keys[i], []byte("old value")))
		}
		first := len(keys)
		for _, i := range bad {
			vals[i] = make([]byte, ringtest.MaxValue+1)
			first = min(first, i)
		}
		err := c.SetBatch(keys, vals)
		require.ErrorIs(t, err, ringcache.ErrTooLarge)
		require.ErrorContains(t, err, "ringcache: set batch: index "+strconv.Itoa(first)+": ")
		require.Equal(t, 1, bytes.Count([]byte(err.Error()), []byte("ringcache:")))
		require.Equal(t, len(keys)-len(bad), c.Len())
		for i, k := range keys {
			got, ok := c.HasGet(nil, k)
			if len(vals[i]) > ringtest.MaxValue {
				require.False(t, ok, "the old value of a refused key is out of date")
			} else {
				require.Equal(t, "value", string(got))
			}
		}
	}
	c := ringcache.New(ringtest.MinBytes)
	ringtest.CloseCache(t, c)
	require.ErrorIs(t, c.SetBatch([][]byte{{1}}, [][]byte{{2}}), ringcache.ErrClosed)
	require.NoError(t, c.SetBatch(nil, nil))
}

func TestSetBatch_NeedsAValueForEachKey(t *testing.T) {
	c := ringtest.Small(t)
	tooFew := func() { _ = c.SetBatch([][]byte{{1}, {2}}, make([][]byte, 1)) }
	require.Panics(t, tooFew, "fewer vals than keys")
	require.Zero(t, c.Len(), "nothing is stored of a batch that panics")
	require.NoError(t, c.SetBatch([][]byte{nil, {1}}, [][]byte{nil, nil}))
	require.True(t, c.Has(nil))
	require.True(t, c.Has([]byte{1}))
}
