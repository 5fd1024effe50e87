package views

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestTyped_Batches(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	for name, view := range typedViews(c) {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 32, 33, 500} {
				var keys []string
				var vals []int
				want := map[string]int{}
				for i := range n {
					keys = append(keys, fmt.Sprint("key ", i%300, strings.Repeat("long", i%50)))
					vals = append(vals, i)
					want[keys[i]] = i
				}
				require.NoError(t, view.SetBatch(keys, vals))
				keys = append(keys, "missing", keys0(keys))
				got, found := make([]int, n+2), make([]bool, n+2)
				for i := range got {
					got[i], found[i] = -1, i%2 == 0
				}
				hits, err := view.GetBatch(keys, got, found)
				require.NoError(t, err)
				there := 0
				for i, k := range keys {
					v, ok := want[k]
					require.Equal(t, ok, found[i], "%d", i)
					require.Equal(t, v, got[i], "%d", i)
					if ok {
						there++
					}
				}
				require.Equal(t, there, hits)
			}
			require.Panics(t, func() { _ = view.SetBatch([]string{"k"}, nil) })
			require.Panics(t, func() { _, _ = view.GetBatch([]string{"k"}, nil, make([]bool, 1)) })
			require.Panics(t, func() { _, _ = view.GetBatch([]string{"k"}, make([]int, 1), nil) })
		})
	}
}

// keys0 returns the first key, or another that is missing.
func keys0(keys []string) string {
	if len(keys) == 0 {
		return "missing too"
	}
	return keys[0]
}

// A value that cannot be encoded, or decoded, is an error, and all others are as they would
// be without it.
func TestTyped_BatchErrors(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	for name, view := range typedViews(c) {
		t.Run(name, func(t *testing.T) {
			const n = 100
			keys, vals := make([]string, n), make([]int, n)
			for i := range keys {
				keys[i], vals[i] = fmt.Sprint("key ", i%60), i // 40 of them twice
				require.NoError(t, view.Set(keys[i], 1000))
			}
			for _, i := range []int{7, 8, 31, 32, 62, 99} {
				vals[i] = -1
			}
			err := view.SetBatch(keys, vals)
			require.ErrorIs(t, err, ringcache.ErrEncode)
			require.ErrorIs(t, err, errNegativeNumber)
			require.EqualError(t, err, "ringcache: set batch: index 7: set entry: "+
				"value cannot be encoded: negative number")
			last := map[string]int{}
			for i, k := range keys {
				last[k] = vals[i]
			}
			got, found := make([]int, n), make([]bool, n)
			check := func() error {
				_, err := view.GetBatch(keys, got, found)
				for i, k := range keys {
					require.Equal(t, last[k] >= 0, found[i], k)
					require.Equal(t, max(last[k], 0), got[i], k)
				}
				return err
			}
			require.NoError(t, check())
			for _, k := range []string{"key 20", "key 50"} {
				in, raw := rawKey(t, c, view, k)
				require.NoError(t, in.Set(raw, []byte("x")))
				last[k] = -1
			}
			err = check()
			require.ErrorIs(t, err, ringcache.ErrDecode)
			require.ErrorContains(t, err,
				`ringcache: get batch: index 20: get entry "key 20" of 1 bytes:`)
		})
	}
}

// Long values go in parts, and more errors than one come from either half of a call.
func TestTyped_BatchOfLongValues(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	view := ringcache.NewTyped[int](c, codec.String[string](), ringcache.TypedOptions{})
	sizes := []int{0, 1, 1000, 300_000, 1 << 20, 1<<21 + 1, 5}
	var keys []int
	var vals []string
	for i := range 50 {
		keys = append(keys, i)
		vals = append(vals, strings.Repeat(string(rune('a'+i%26)), sizes[i%len(sizes)]))
		if i > 14 {
			vals[i] = vals[i][:min(len(vals[i]), 2000)]
		}
	}
	err := view.SetBatch(keys, vals)
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.ErrorContains(t, err, "set batch: index 5: ")
	got, found := make([]string, len(keys)), make([]bool, len(keys))
	hits, err := view.GetBatch(keys, got, found)
	require.NoError(t, err)
	require.Equal(t, len(keys)-2, hits)
	for i := range keys {
		if require.Equal(t, i != 5 && i != 12, found[i], "%d", i); found[i] && got[i] != vals[i] {
			require.Fail(t, "not what was set", "%d", i)
		}
	}
}

// testLoop sets keys through a view and finds them, and nothing else, in its loops.
func testLoop[K ringcache.Key](t *testing.T, keys []K, text func(K) string) {
	t.Helper()
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	n := c.Namespace("n")
	for i, o := range []struct {
		n      *ringcache.Cache
		prefix string
	}{{nil, "prefix:"}, {nil, "other:"}, {n, ""}, {n, "prefix:"}} {
		view := viewIn[K](c, o.n, decimals, o.prefix)
		want := map[string]int{}
		for j, k := range keys {
			require.NoError(t, view.Set(k, 100*i+j))
			want[text(k)] = 100*i + j
		}
		raw, in := []byte(o.prefix), c
		if o.n != nil {
			in = o.n
		}
		for _, foreign := range []string{"a key of 17 bytes", "\x00\x01\x02", "four"} {
			require.NoError(t, in.Set(append(slices.Clone(raw), foreign...), []byte("no number")))
			if o.prefix != "" {
				require.NoError(t, in.Set([]byte(foreign), []byte("1")))
			}
		}
		got, seen := map[string]int{}, map[string]bool{}
		for k, v := range view.All() {
			got[text(k)] = v
		}
		if o.n != nil && o.prefix == "" {
			require.Subset(t, slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
		} else {
			require.Equal(t, want, got, "%T with %+v", keys, o)
		}
		for k := range view.Keys() {
			seen[text(k)] = true
		}
		for k := range want {
			require.True(t, seen[k], "%T: %q", keys, k)
		}
		for range view.All() {
			break
		}
		n.Reset()
	}
}

func TestTyped_Loops(t *testing.T) {
	sprint := func(k any) string { return fmt.Sprint(k) }
	testLoop(t, []string{"", "a", strings.Repeat("k", 300)}, func(k string) string { return k })
	testLoop(t, [][]byte{{}, {0}, []byte("key")}, func(k []byte) string { return string(k) })
	testLoop(t, []int8{-128, -1, 0, 127}, func(k int8) string { return sprint(k) })
	testLoop(t, []int16{-1 << 15, -1, 0, 7}, func(k int16) string { return sprint(k) })
	testLoop(t, []int32{-1 << 31, -1, 0, 7}, func(k int32) string { return sprint(k) })
	testLoop(t, []int64{-1 << 63, -1, 0, 7}, func(k int64) string { return sprint(k) })
	testLoop(t, []int{math.MinInt, -1, 0, 7}, func(k int) string { return sprint(k) })
	testLoop(t, []uint8{0, 255}, func(k uint8) string { return sprint(k) })
	testLoop(t, []uint16{0, 65535}, func(k uint16) string { return sprint(k) })
	testLoop(t, []uint32{0, 1<<32 - 1}, func(k uint32) string { return sprint(k) })
	testLoop(t, []uint64{0, 1<<64 - 1}, func(k uint64) string { return sprint(k) })
	testLoop(t, []uint{0, math.MaxUint}, func(k uint) string { return sprint(k) })
	testLoop(t, []uintptr{0, 1}, func(k uintptr) string { return sprint(k) })
	testLoop(t, []time.Month{1, 12}, func(k time.Month) string { return sprint(int(k)) })
}

// Keys yields what All passes over, and Get has the error. The body owns what it gets.
func TestTyped_LoopsAndWhatCannotBeDecoded(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	c.Namespace("a name, whose generation is no entry of anybody's")
	view := ringcache.NewTyped[[]byte](c, decimals, ringcache.TypedOptions{})
	require.NoError(t, view.Set([]byte("one"), 1))
	require.NoError(t, c.Set([]byte("broken"), []byte("x")))
	for k, v := range view.All() {
		require.Equal(t, "one", string(k))
		require.Equal(t, 1, v)
	}
	var keys [][]byte
	for k := range view.Keys() {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, slices.Compare[[]byte])
	require.Equal(t, [][]byte{[]byte("broken"), []byte("one")}, keys)
	_, _, err := view.Get(keys[0])
	require.True(t, errors.Is(err, ringcache.ErrDecode))
	require.PanicsWithValue(t, "ringcache: All: nil function", func() { view.All()(nil) })
	require.PanicsWithValue(t, "ringcache: Keys: nil function", func() { view.Keys()(nil) })
}
