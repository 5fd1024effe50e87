package entries

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// valueSizes are of values that lie in one chunk, in several, and in the large
// buckets.
var valueSizes = []int{0, 1, 100, 40_000, ringtest.MaxValue}

// unlike returns values that differ from v by a byte at the end, at the
// beginning, or in length.
func unlike(v []byte) [][]byte {
	if len(v) == 0 {
		return [][]byte{[]byte("x")}
	}
	first, last := bytes.Clone(v), bytes.Clone(v)
	first[0]++
	last[len(v)-1] += 2
	return [][]byte{first, last, v[1:]}
}

// keep returns a function for Update that stores v.
func keep(v []byte) func([]byte, bool) ([]byte, bool) {
	return func([]byte, bool) ([]byte, bool) { return v, true }
}

func TestSetIfAbsent_StoresOnce(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range valueSizes {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		stored, err := ringtest.SetIfAbsent(c, k, v)
		require.NoError(t, err)
		require.True(t, stored)
		for _, other := range [][]byte{nil, []byte("other"), ringtest.Pattern("w", n),
			ringtest.Pattern("w", ringtest.MaxValue)} {
			stored, err = ringtest.SetIfAbsent(c, k, other)
			require.NoError(t, err)
			require.False(t, stored)
			require.Equal(t, string(v), string(c.Get(nil, k)))
		}
	}
}

func TestSetIfChanged_LeavesAnEqualValue(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range valueSizes {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		for _, want := range []bool{true, false, false} {
			before := ringtest.StatsOf(c)
			changed, err := c.SetIfChanged(k, v)
			require.NoError(t, err)
			require.Equal(t, want, changed)
			require.Equal(t, before.SetCalls+1, ringtest.StatsOf(c).SetCalls)
			if !want {
				require.Equal(t, before.BytesSize, ringtest.StatsOf(c).BytesSize)
				require.Equal(t, before.EvictedEntries, ringtest.StatsOf(c).EvictedEntries)
			}
		}
		for _, other := range unlike(v) {
			changed, err := c.SetIfChanged(k, other)
			require.NoError(t, err)
			require.True(t, changed)
			require.Equal(t, string(other), string(c.Get(nil, k)))
		}
		c.Del(k)
	}
}

func TestCompareAndSwap_WantsTheOldValue(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range valueSizes {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		swapped, err := c.CompareAndSwap(k, nil, v)
		require.NoError(t, err)
		require.False(t, swapped, "there is nothing to swap")
		require.False(t, c.Has(k))
		require.NoError(t, c.Set(k, v))
		for _, other := range unlike(v) {
			swapped, err = c.CompareAndSwap(k, other, []byte("new"))
			require.NoError(t, err)
			require.False(t, swapped)
			require.Equal(t, string(v), string(c.Get(nil, k)))
		}
		for _, next := range [][]byte{ringtest.Pattern("w", n), []byte("short"),
			ringtest.Pattern("long", ringtest.MaxValue), v} {
			swapped, err = c.CompareAndSwap(k, v, next)
			require.NoError(t, err)
			require.True(t, swapped)
			require.Equal(t, string(next), string(c.Get(nil, k)))
			v = next
		}
		require.True(t, c.Del(k))
	}
	require.NoError(t, c.Set([]byte("empty"), nil))
	swapped, err := c.CompareAndSwap([]byte("empty"), []byte{}, []byte("new"))
	require.NoError(t, err)
	require.True(t, swapped, "nil and empty are the same value")
}

// A write that must not be made touches nothing, however bad it is; one that
// must be and cannot removes the older value, as Set does.
func TestConditional_TooLargeRemovesOnlyWhatItReplaces(t *testing.T) {
	c := ringtest.Small(t)
	k, v, long := []byte("k"), []byte("v"), make([]byte, ringtest.MaxValue+1)
	require.NoError(t, c.Set(k, v))

	stored, err := ringtest.SetIfAbsent(c, k, long)
	require.NoError(t, err)
	require.False(t, stored)
	swapped, err := c.CompareAndSwap(k, []byte("other"), long)
	require.NoError(t, err)
	require.False(t, swapped)
	swapped, err = c.CompareAndSwap(make([]byte, 65535+1), nil, nil)
	require.NoError(t, err)
	require.False(t, swapped)
	require.True(t, c.Has(k))

	swapped, err = c.CompareAndSwap(k, v, long)
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.False(t, swapped)
	require.False(t, c.Has(k))
	for name, call := range map[string]func() error{
		"SetIfAbsent": func() error {
			_, err := ringtest.SetIfAbsent(c, []byte("none"), long)
			return err
		},
		"SetIfChanged": func() error { _, err := c.SetIfChanged(k, long); return err },
		"Append":       func() error { return c.Update(k, ringtest.Append(long[1:])) },
		"Update":       func() error { return c.Update(k, ringtest.Replace(keep(long))) },
		"long key": func() error {
			_, err := ringtest.SetIfAbsent(c, make([]byte, 65535+1), v)
			return err
		},
	} {
		require.NoError(t, c.Set(k, v))
		require.ErrorIs(t, call(), ringcache.ErrTooLarge, name)
		require.Equal(t, name == "SetIfAbsent" || name == "long key", c.Has(k), name)
	}
}

// A large value that is not to be stored pushes nothing out.
func TestConditional_UnmetTouchesNothing(t *testing.T) {
	c := ringtest.Small(t)
	long := make([]byte, ringtest.MaxValue)
	for i := range 80_000 { // more than fits
		require.NoError(t, c.Set([]byte("small"+strconv.Itoa(i)), make([]byte, 400)))
	}
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	before := ringtest.StatsOf(c)
	for range 20 {
		stored, err := ringtest.SetIfAbsent(c, []byte("k"), long)
		require.NoError(t, err)
		require.False(t, stored)
		swapped, err := c.CompareAndSwap([]byte("k"), []byte("w"), long)
		require.NoError(t, err)
		require.False(t, swapped)
	}
	after := ringtest.StatsOf(c)
	require.Positive(t, before.EvictedEntries)
	require.Equal(t, before.EvictedEntries, after.EvictedEntries)
	require.Equal(t, before.EntriesCount, after.EntriesCount)
}

func TestConditional_Closed(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	k, large := []byte("k"), make([]byte, ringtest.MaxValue)
	require.NoError(t, c.Set(k, k))
	ringtest.CloseCache(t, c)
	for name, call := range map[string]func() error{
		"SetWithTTL":     func() error { return c.SetWithTTL(k, k, time.Hour) },
		"SetWithTTL(-1)": func() error { return c.SetWithTTL(k, k, -1) },
		"SetIfAbsent":    func() error { _, err := ringtest.SetIfAbsent(c, k, k); return err },
		"SetIfChanged":   func() error { _, err := c.SetIfChanged(k, k); return err },
		"CompareAndSwap": func() error { _, err := c.CompareAndSwap(k, k, k); return err },
		"large":          func() error { _, err := c.CompareAndSwap(k, k, large); return err },
		"Append":         func() error { return c.Update(k, ringtest.Append(k)) },
		"Update":         func() error { return c.Update(k, ringtest.Replace(keep(k))) },
	} {
		require.ErrorIs(t, call(), ringcache.ErrClosed, name)
	}
	require.NoError(t, c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
		return nil, false
	})))
	_, ok := c.GetAndDel(nil, k)
	require.False(t, ok)
	require.False(t, c.Touch(k, time.Hour))
	require.Zero(t, c.DeleteExpired())
	_, ok = c.TTL(k)
	require.False(t, ok)
}

func TestUpdate_ReplacesOrRemoves(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range valueSizes {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		require.NoError(t, c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			require.False(t, ok)
			require.Empty(t, old)
			return v, true
		})))
		require.NoError(t, c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			require.True(t, ok)
			require.Equal(t, string(v), string(old))
			clear(old) // a copy
			require.Equal(t, string(v), string(c.Get(nil, k)))
			return old, true
		})))
		require.Equal(t, string(make([]byte, n)), string(c.Get(nil, k)))
		require.NoError(t, c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
			return v, false
		})))
		require.False(t, c.Has(k))
		require.NoError(t, c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
			return v, false
		})))
		require.False(t, c.Has(k))
	}
}

// fn may call the cache, of the same key too, and panic.
func TestUpdate_MayPanicAndCallTheCache(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	k := []byte("k")
	require.NoError(t, c.Set(k, []byte("1")))
	ringtest.Within(t, func() {
		calls := 0
		require.NoError(t, c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			if calls++; calls == 1 {
				require.NoError(t, c.Set(k, []byte("2"))) // so it has to begin again
			}
			return append(old, 'x'), true
		})))
		require.Equal(t, 2, calls)
		require.Equal(t, "2x", string(c.Get(nil, k)))
		require.Panics(t, func() {
			_ = c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
				panic("mine")
			}))
		})
		require.Equal(t, "2x", string(c.Get(nil, k)))
		ringtest.CloseCache(t, c)
	})
}

func TestAppend_PutsBehind(t *testing.T) {
	c := ringtest.Small(t)
	k := []byte("k")
	want := ""
	for _, s := range []string{
		"", "a", "", "bc", string(ringtest.Pattern("p", 5000)), string(ringtest.Pattern("q", 100_000)),
	} {
		suffix := []byte(s)
		require.NoError(t, c.Update(k, ringtest.Append(suffix)))
		clear(suffix)
		want += s
		require.Equal(t, want, string(c.Get(nil, k)))
	}
}

func TestGetAndDel_TakesTheValue(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range valueSizes {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		dst := append(make([]byte, 0, n+4), "held"...)
		got, ok := c.GetAndDel(dst, k)
		require.False(t, ok)
		require.Equal(t, "held", string(got))
		require.NoError(t, c.Set(k, v))
		got, ok = c.GetAndDel(dst, k)
		require.True(t, ok)
		require.Equal(t, "held"+string(v), string(got))
		require.Same(t, &dst[0], &got[0])
		require.False(t, c.Has(k))
	}
	s := ringtest.StatsOf(c)
	require.EqualValues(t, 2*len(valueSizes), s.DelCalls)
	require.EqualValues(t, len(valueSizes), s.GetCalls, "those of Has")
}

// Each counts as the call that it is like, once.
func TestConditional_CountsAsOneSet(t *testing.T) {
	c := ringtest.Small(t)
	k, v := []byte("k"), []byte("v")
	for range 2 { // absent first, then there
		_, err := ringtest.SetIfAbsent(c, k, v)
		require.NoError(t, err)
		_, err = c.SetIfChanged(k, v)
		require.NoError(t, err)
		_, err = c.CompareAndSwap(k, []byte("x"), v)
		require.NoError(t, err)
		require.NoError(t, c.Update(k, ringtest.Append(v)))
		tries := 0
		require.NoError(t, c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
			if tries++; tries == 1 {
				c.Del(k)
			}
			return v, true
		})))
	}
	require.NoError(t, c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
		return nil, false
	})))
	s := ringtest.StatsOf(c)
	require.EqualValues(t, 10, s.SetCalls)
	require.EqualValues(t, 3, s.DelCalls)
	require.Zero(t, s.GetCalls)
	require.Zero(t, s.Misses)
}

// Counters of many goroutines under a few keys lose nothing, whichever way they
// are counted up, with values that move between small and large buckets.
func TestConditional_ManyCountersAtOnce(t *testing.T) {
	c := ringtest.Small(t)
	const clients, rounds = 4, 300
	add := func(k []byte, by uint64) error {
		return c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			n := by
			if ok {
				n += binary.LittleEndian.Uint64(old)
			}
			next := make([]byte, 8+n%2*40_000)
			binary.LittleEndian.PutUint64(next, n)
			return next, true
		}))
	}
	swap := func(k []byte, by uint64) error {
		for {
			old, ok := c.HasGet(nil, k)
			next := binary.LittleEndian.AppendUint64(nil, by)
			if !ok {
				if stored, err := ringtest.SetIfAbsent(c, k, next); stored || err != nil {
					return err
				}
				continue
			}
			binary.LittleEndian.PutUint64(next, by+binary.LittleEndian.Uint64(old))
			if swapped, err := c.CompareAndSwap(k, old, next); swapped || err != nil {
				return err
			}
		}
	}
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for id := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range rounds {
				k := []byte{byte(i % 2)}
				if id%2 == 0 {
					errs[id] = errors.Join(errs[id], add(k, 1))
				} else {
					errs[id] = errors.Join(errs[id], swap(k, 1))
				}
				letter := ringtest.Append([]byte{byte('a' + id)})
				errs[id] = errors.Join(errs[id], c.Update([]byte("log"), letter))
			}
		}()
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	for i := range byte(2) {
		require.EqualValues(t, clients*rounds/2, binary.LittleEndian.Uint64(c.Get(nil, []byte{i})))
	}
	var seen [clients]int
	for _, b := range c.Get(nil, []byte("log")) {
		seen[b-'a']++
	}
	require.Equal(t, [clients]int{rounds, rounds, rounds, rounds}, seen)
}

// If the key's cache is reset while the function runs, it is called again without a value.
func TestUpdate_ResetMeanwhile(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	defer ringtest.CloseCache(t, c)
	k := []byte("key")
	for _, view := range []*ringcache.Cache{c, c.Namespace("n")} {
		require.NoError(t, view.Set(k, []byte("one")))
		var seen []string
		require.NoError(t, view.Update(k, func(e *ringcache.Entry[[]byte]) {
			seen = append(seen, string(e.Value))
			if len(seen) == 1 {
				require.NoError(t, view.Set(k, []byte("two")))
				view.Reset()
			}
			e.Del()
		}))
		require.Equal(t, []string{"one", ""}, seen)
	}
}
