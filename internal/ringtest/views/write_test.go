package views

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// numbers returns a view of numbers, of which those below 0 cannot be encoded, and what is
// no number cannot be decoded.
func numbers(c *ringcache.Cache) *ringcache.Typed[string, int] {
	return ringcache.NewTyped[string](c, codec.Func(
		func(dst []byte, n int) ([]byte, error) {
			if n < 0 {
				return dst, io.ErrShortWrite
			}
			return fmt.Append(dst, n), nil
		},
		func(data []byte) (int, error) {
			var n int
			err := json.Unmarshal(data, &n)
			return n, err
		},
	), ringcache.TypedOptions{Prefix: "n:"})
}

func TestTyped_Update(t *testing.T) {
	view := numbers(ringtest.Small(t))
	add := func(old int, ok bool) (int, bool) {
		require.Equal(t, ok, old > 0)
		return old + 1, true
	}
	for want := range 3 {
		require.NoError(t, view.Update("k", ringtest.Replace(add)))
		v, ok, err := view.Get("k")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want+1, v)
	}
	require.NoError(t, view.Update("k", ringtest.Replace(func(int, bool) (int, bool) {
		return 7, false
	})))
	require.False(t, view.Has("k"))
	require.NoError(t, view.Update("k", ringtest.Replace(func(int, bool) (int, bool) {
		return 7, false
	})))

	// Many at once lose nothing.
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 500 {
				assert.NoError(t, view.Update("n", ringtest.Replace(func(old int, _ bool) (int, bool) {
					return old + 1, true
				})))
			}
		}()
	}
	wg.Wait()
	v, _, err := view.Get("n")
	require.NoError(t, err)
	require.Equal(t, 2000, v)

	// A value that cannot be encoded changes nothing, not even what another call has set meanwhile.
	require.NoError(t, view.Set("k", 1))
	require.ErrorIs(t, view.Update("k", ringtest.Replace(func(int, bool) (int, bool) {
		require.NoError(t, view.Set("k", 50))
		return -1, true
	})), ringcache.ErrEncode)
	v, _, err = view.Get("k")
	require.NoError(t, err)
	require.Equal(t, 50, v)
	require.NoError(t, view.Update("k", func(e *ringcache.Entry[int]) { e.Set(-1); e.Del() }))
	require.False(t, view.Has("k"))
}

// What cannot be encoded is not stored. Set removes an older value, and an atomic write keeps it.
func TestTyped_ErrEncode(t *testing.T) {
	view := numbers(ringtest.Small(t))
	for name, call := range map[string]func() error{
		"set":         func() error { return view.Set("k", -1) },
		"set ttl":     func() error { return view.SetWithTTL("k", -1, time.Hour) },
		"set changed": func() error { _, err := view.SetIfChanged("k", -1); return err },
		"set absent":  func() error { _, _, err := view.SetIfAbsent("k", -1, 0); return err },
		"swap":        func() error { _, err := view.CompareAndSwap("k", 1, -1); return err },
		"update": func() error {
			return view.Update("k", ringtest.Replace(func(int, bool) (int, bool) { return -1, true }))
		},
	} {
		verb, _, _ := strings.Cut(name, " ")
		for _, there := range []bool{false, true} {
			view.Del("k")
			if there {
				require.NoError(t, view.Set("k", 1))
			}
			err := call()
			require.ErrorIs(t, err, ringcache.ErrEncode, name)
			require.ErrorIs(t, err, io.ErrShortWrite, name)
			want := "ringcache: " + verb + " entry: value cannot be encoded: short write"
			require.EqualError(t, err, want)
			require.Equal(t, there && name != "set" && name != "set ttl", view.Has("k"), name)
		}
	}
}

// A Set of what cannot be encoded is a failed Set, no Del: in the counts, and to OnRemove. An
// atomic write of it is neither.
func TestTyped_ErrEncodeIsNoDel(t *testing.T) {
	var gone []ringcache.RemovalReason
	g := ringtest.Tiny(4, 4096, 100)
	g.OnRemove = func(r ringcache.Removal) { gone = append(gone, r.Reason) }
	whole := ringtest.MustCache(t, g)
	replaced := []ringcache.RemovalReason{ringcache.RemovedReplaced}
	for _, c := range []*ringcache.Cache{whole, whole.Namespace("n")} {
		view := numbers(c)
		for name, set := range map[string]func() error{
			"set":       func() error { return view.Set("k", -1) },
			"set ttl":   func() error { return view.SetWithTTL("k", -1, time.Hour) },
			"batch":     func() error { return view.SetBatch([]string{"k"}, []int{-1}) },
			"batch ttl": func() error { return view.SetBatchWithTTL([]string{"k"}, []int{-1}, 0) },
		} {
			require.NoError(t, view.Set("k", 1))
			before := c.Stats()
			gone = nil
			require.ErrorIs(t, set(), ringcache.ErrEncode, name)
			require.Equal(t, replaced, gone, name)
			require.ErrorIs(t, set(), ringcache.ErrEncode, name)
			require.Equal(t, replaced, gone, name)
			counts := c.Stats().Sub(before)
			require.EqualValues(t, 2, counts.SetCalls, name)
			require.Zero(t, counts.DelCalls, name)
		}
		before := c.Stats()
		_, _, err := view.SetIfAbsent("k", -1, 0)
		require.ErrorIs(t, err, ringcache.ErrEncode)
		require.Equal(t, before, c.Stats())
	}
	require.NoError(t, ringtest.Validate(whole))
}

// A value that cannot be encoded changes nothing, and one that cannot be decoded stays.
func TestTyped_CompareAndSwapOfBadValues(t *testing.T) {
	c := ringtest.Small(t)
	view := numbers(c)
	require.NoError(t, view.Set("k", 1))
	_, err := view.CompareAndSwap("k", 1, -1)
	require.ErrorIs(t, err, ringcache.ErrEncode)
	_, err = view.CompareAndSwap("k", -1, 1)
	require.ErrorIs(t, err, ringcache.ErrEncode)
	_, _, err = view.SetIfAbsent("k", -1, time.Hour)
	require.ErrorIs(t, err, ringcache.ErrEncode)
	v, ok, err := view.Get("k")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 1, v)

	require.NoError(t, c.Set([]byte("n:k"), []byte("no number")))
	_, stored, err := view.SetIfAbsent("k", 2, time.Hour)
	require.ErrorIs(t, err, ringcache.ErrDecode)
	require.False(t, stored)
	_, ok, err = view.Peek("k")
	require.ErrorIs(t, err, ringcache.ErrDecode)
	require.False(t, ok)
	_, _, ok, err = view.GetWithTTL("k")
	require.ErrorIs(t, err, ringcache.ErrDecode)
	require.False(t, ok)
	swapped, err := view.CompareAndSwap("k", 1, 2)
	require.NoError(t, err)
	require.False(t, swapped)
	require.True(t, view.Has("k"))
	require.NoError(t, view.Update("fresh", func(e *ringcache.Entry[int]) { e.SetWithTTL(1, -1) }))
	require.False(t, view.Has("fresh"))
	was, stored, err := view.SetIfAbsent("fresh", 1, -1)
	require.NoError(t, err, "there is nothing to decode")
	require.False(t, stored)
	require.Zero(t, was)
}
