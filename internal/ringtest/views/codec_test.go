package views

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

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

// A codec that appends to what it decodes must not reach what lies behind it.
// Some of these values cross the end of a chunk, and some are copied.
func TestCodec_DecodeHasNoRoomBehindItsData(t *testing.T) {
	view := ringcache.NewTyped[int](ringtest.Small(t), codec.Func(
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
	c := ringtest.Small(t)
	careless := ringcache.NewTyped[int](c, codec.Func(
		func(_ []byte, v []byte) ([]byte, error) { return v, nil },
		func(data []byte) ([]byte, error) { return bytes.Clone(data), nil },
	), ringcache.TypedOptions{Prefix: "careless:"})
	others := ringcache.NewTyped[int](c, codec.String[string](), ringcache.TypedOptions{})
	for _, n := range []int{1, 100, 5000, 70_000} {
		mine := ringtest.Pattern("mine", n)
		require.NoError(t, careless.Set(n, mine))
		for i := range 10 {
			require.NoError(t, others.Set(i, strings.Repeat("#", n)))
		}
		require.Equal(t, ringtest.Pattern("mine", n), mine)
		v, _, err := careless.Get(n)
		require.NoError(t, err)
		require.Equal(t, mine, v)
	}
}

// A panic of a codec is its caller's to deal with, and the cache's to survive.
func TestCodec_PanicLeavesTheCacheSound(t *testing.T) {
	c := ringtest.Small(t)
	view := ringcache.NewTyped[int](c, codec.Func(
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
