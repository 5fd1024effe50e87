package ringcache_test

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// testCodec sends values through a cache, twice with other values between, so
// that buffers which are used again would show.
func testCodec[V any](t *testing.T, kind string, codec ringcache.Codec[V], values ...V) {
	t.Helper()
	t.Run(kind, func(t *testing.T) {
		view := ringcache.NewTyped[int](small(t), codec, ringcache.TypedOptions{})
		for range 2 {
			for i, v := range values {
				require.NoError(t, view.Set(i, v))
			}
			read := make([]V, len(values))
			for i := range values {
				v, ok, err := view.Get(i)
				require.NoError(t, err)
				require.True(t, ok)
				read[i] = v
			}
			for i := range values { // others have come after it by now
				require.Equal(t, values[i], read[i])
			}
		}
		v, ok, err := view.Get(-1)
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, v)
	})
}

func TestCodec_BringsValuesBack(t *testing.T) {
	type user struct {
		Name string
		Tags []string
		Born *int `json:",omitempty"`
	}
	born := 1815
	users := []user{
		{},
		{Name: "Ada", Tags: []string{"a", "b"}, Born: &born},
		{Name: strings.Repeat("x", 5000)},
		{Name: "Bo"},
	}
	texts := []string{
		"", "short", strings.Repeat("m", 1024), strings.Repeat("n", 1025),
		strings.Repeat("l", 100_000), strings.Repeat("h", 1<<20), "last",
	}
	var slices [][]byte
	var names []name
	for _, s := range texts {
		slices = append(slices, []byte(s))
		names = append(names, name(s))
	}

	testCodec(t, "json of structs", ringcache.JSONCodec[user](), users...)
	testCodec(t, "json of pointers", ringcache.JSONCodec[*user](), &users[1], nil, &users[2])
	testCodec[any](t, "json of any", ringcache.JSONCodec[any](), 1.5, "text", nil, []any{true, "x"})
	testCodec(t, "strings", ringcache.StringCodec[string](), texts...)
	testCodec(t, "named strings", ringcache.StringCodec[name](), names...)
	testCodec(t, "bytes", ringcache.BytesCodec[[]byte](), slices...)
	testCodec(t, "named bytes", ringcache.BytesCodec[digest](), digest("sum"), digest{})
	testCodec(t, "functions", pointCodec(), point{}, point{1, -2.5}, point{math.Inf(1), 0})
	testCodec(t, "binary, by value", ringcache.BinaryCodec[time.Time](),
		time.Unix(1, 2).UTC(), time.Time{}, time.Unix(1<<33, 0).UTC())
	testCodec(t, "binary, with pointers inside", ringcache.BinaryCodec[netip.Addr](),
		netip.MustParseAddr("fe80::1%eth0"), netip.Addr{}, netip.MustParseAddr("10.0.0.1"))
	testCodec(t, "binary, by pointer", ringcache.BinaryCodec[list](),
		list{[]int{1, 2, 3}}, list{[]int{4}}, list{make([]int, 1000)})
}

// list encodes itself through pointers, and its decoder relies on being given
// the zero value.
type list struct{ items []int }

func (l *list) AppendBinary(dst []byte) ([]byte, error) {
	for _, n := range l.items {
		dst = append(dst, byte(n))
	}
	return dst, nil
}

func (l *list) UnmarshalBinary(data []byte) error {
	for _, b := range data {
		l.items = append(l.items, int(b))
	}
	return nil
}

func TestCodec_NilBytesComeBackEmpty(t *testing.T) {
	view := ringcache.NewTyped[int](small(t), ringcache.BytesCodec[[]byte](), ringcache.TypedOptions{})
	require.NoError(t, view.Set(1, nil))
	v, ok, err := view.Get(1)
	require.NoError(t, err)
	require.True(t, ok)
	require.NotNil(t, v)
	require.Empty(t, v)
}

// A codec that appends to what it decodes must not reach what lies behind it.
// Some of these values cross the end of a chunk, and some are copied.
func TestCodec_DecodeHasNoRoomBehindItsData(t *testing.T) {
	view := ringcache.NewTyped[int](small(t), ringcache.FuncCodec(
		func(dst []byte, n int) ([]byte, error) { return append(dst, make([]byte, n)...), nil },
		func(data []byte) (int, error) {
			if len(data) != cap(data) {
				return 0, fmt.Errorf("%d bytes of %d", len(data), cap(data))
			}
			return len(data), nil
		},
	), ringcache.TypedOptions{})
	sizes := []int{0, 1, 500, 1000, 1024, 1025, 2500, 60_000, 70_000}
	for key := range 5000 { // many to each bucket
		want := sizes[key%len(sizes)]
		require.NoError(t, view.Set(key, want))
		n, ok, err := view.Get(key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, n)
	}
}

// A codec may return bytes of its caller's instead of appending them; they must
// not become a buffer that other Sets write to.
func TestCodec_MayReturnBytesOfItsCallers(t *testing.T) {
	c := small(t)
	careless := ringcache.NewTyped[int](c, ringcache.FuncCodec(
		func(_ []byte, v []byte) ([]byte, error) { return v, nil },
		func(data []byte) ([]byte, error) { return bytes.Clone(data), nil },
	), ringcache.TypedOptions{Prefix: "careless:"})
	others := ringcache.NewTyped[int](c, ringcache.StringCodec[string](), ringcache.TypedOptions{})
	for _, n := range []int{1, 100, 5000, 70_000} {
		mine := pattern("mine", n)
		require.NoError(t, careless.Set(n, mine))
		for i := range 10 {
			require.NoError(t, others.Set(i, strings.Repeat("#", n)))
		}
		require.Equal(t, pattern("mine", n), mine)
		v, _, err := careless.Get(n)
		require.NoError(t, err)
		require.Equal(t, mine, v)
	}
}

// A panic of a codec is its caller's to deal with, and the cache's to survive.
func TestCodec_PanicLeavesTheCacheSound(t *testing.T) {
	c := small(t)
	view := ringcache.NewTyped[int](c, ringcache.FuncCodec(
		func(dst []byte, n int) ([]byte, error) {
			if n < 0 {
				panic("append")
			}
			return append(dst, make([]byte, n)...), nil
		},
		func(data []byte) (int, error) { panic("decode") },
	), ringcache.TypedOptions{})
	for _, n := range []int{10, 5000} {
		require.NoError(t, view.Set(n, n))
		require.PanicsWithValue(t, "decode", func() { _, _, _ = view.Get(n) })
		require.PanicsWithValue(t, "append", func() { _ = view.Set(n, -1) })
		require.True(t, view.Has(n))
		require.NoError(t, view.Set(n, n+1))
		require.True(t, view.Del(n))
	}
}
