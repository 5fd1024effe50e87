package views

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

var errNegativeNumber = errors.New("negative number")

// decimals is a codec of numbers that are not below 0.
var decimals = codec.Func(
	func(dst []byte, n int) ([]byte, error) {
		if n < 0 {
			return append(dst, "half of it"...), errNegativeNumber
		}
		return strconv.AppendInt(dst, int64(n), 10), nil
	},
	func(data []byte) (int, error) {
		n, err := strconv.Atoi(string(data))
		if err != nil {
			return -1, err // as careless codecs do
		}
		return n, nil
	})

// viewIn returns a view of a namespace, or of the whole cache if n is nil.
func viewIn[K ringcache.Key, V any](
	c *ringcache.Cache, n *ringcache.Cache, codec ringcache.Codec[V], prefix string,
) *ringcache.Typed[K, V] {
	if n == nil {
		return ringcache.NewTyped[K](c, codec, ringcache.TypedOptions{Prefix: prefix})
	}
	return ringcache.NewTyped[K](n, codec, ringcache.TypedOptions{Prefix: prefix})
}

// typedViews returns views with every way of beginning a key.
func typedViews(c *ringcache.Cache) map[string]*ringcache.Typed[string, int] {
	n := c.Namespace("n")
	return map[string]*ringcache.Typed[string, int]{
		"plain":     ringcache.NewTyped[string](c, decimals, ringcache.TypedOptions{}),
		"prefix":    ringcache.NewTyped[string](c, decimals, ringcache.TypedOptions{Prefix: "p:"}),
		"namespace": ringcache.NewTyped[string](n, decimals, ringcache.TypedOptions{}),
		"both":      ringcache.NewTyped[string](n, decimals, ringcache.TypedOptions{Prefix: "p:"}),
	}
}

func TestTyped_GetOrLoad(t *testing.T) {
	ctx := context.Background()
	for name, view := range typedViews(ringtest.MustCache(t, ringtest.Roomy(0))) {
		t.Run(name, func(t *testing.T) {
			loads := 0
			load := func(_ context.Context, key string) (int, time.Duration, error) {
				loads++
				if key == "absent" {
					return 7, time.Hour, errors.Join(ringcache.ErrAbsent)
				}
				return len(key), time.Hour, nil
			}
			for range 3 {
				v, err := view.GetOrLoad(ctx, "four", load)
				require.NoError(t, err)
				require.Equal(t, 4, v)
			}
			require.Equal(t, 1, loads)
			ttl, ok := view.TTL("four")
			require.True(t, ok)
			require.Equal(t, time.Hour, ttl.Round(time.Minute))

			for range 3 {
				v, err := view.GetOrLoad(ctx, "absent", load)
				require.ErrorIs(t, err, ringcache.ErrAbsent)
				require.Zero(t, v)
			}
			require.Equal(t, 2, loads, "it is remembered that there is none")
			require.False(t, view.Has("absent"))

			failed := errors.New("no connection")
			for range 2 {
				v, err := view.GetOrLoad(ctx, "fails",
					func(context.Context, string) (int, time.Duration, error) {
						loads++
						return 7, 0, failed
					})
				require.ErrorIs(t, err, failed)
				require.Zero(t, v)
			}
			require.Equal(t, 4, loads, "an error is not")
			require.PanicsWithValue(t, "ringcache: GetOrLoad: nil function", func() {
				_, _ = view.GetOrLoad(ctx, "four", nil)
			})
		})
	}
}

// Keys of all kinds come to the load as they are, and are its own.
func TestTyped_GetOrLoadKeys(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	n := c.Namespace("n")
	for _, o := range []struct {
		n      *ringcache.Cache
		prefix string
	}{{nil, ""}, {nil, "p:"}, {n, ""}, {n, "p:"}} {
		key := []byte("key")
		var kept []byte
		_, err := viewIn[[]byte](c, o.n, decimals, o.prefix).GetOrLoad(context.Background(), key,
			func(_ context.Context, k []byte) (int, time.Duration, error) {
				kept = k
				return 1, 0, nil
			})
		require.NoError(t, err)
		key[0] = 'K'
		require.Equal(t, "key", string(kept))
		_, err = viewIn[int16](c, o.n, decimals, o.prefix).GetOrLoad(context.Background(), -2,
			func(_ context.Context, k int16) (int, time.Duration, error) {
				assert.Equal(t, int16(-2), k)
				return 1, 0, nil
			})
		require.NoError(t, err)
	}
}

// All who wait for a load whose value cannot be encoded hear of it, and nothing is stored.
func TestTyped_GetOrLoadOfWhatCannotBeEncoded(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	for name, view := range typedViews(c) {
		t.Run(name, func(t *testing.T) {
			const waiters = 10
			in, raw := rawKey(t, c, view, "k")
			release := make(chan bool)
			var mu sync.Mutex
			loads := 0
			var wg sync.WaitGroup
			for range waiters {
				wg.Add(1)
				go func() {
					defer wg.Done()
					v, err := view.GetOrLoad(context.Background(), "k",
						func(context.Context, string) (int, time.Duration, error) {
							mu.Lock()
							loads++
							mu.Unlock()
							<-release
							return -1, 0, nil
						})
					assert.ErrorIs(t, err, ringcache.ErrEncode)
					assert.ErrorIs(t, err, errNegativeNumber)
					assert.EqualError(t, err,
						"ringcache: load entry: value cannot be encoded: negative number")
					assert.Zero(t, v)
				}()
			}
			waiting := func() bool { return ringtest.Waiting(in, raw) == waiters }
			require.Eventually(t, waiting, ringtest.HangLimit, time.Millisecond)
			close(release)
			wg.Wait()
			require.Equal(t, 1, loads)
			require.False(t, view.Has("k"))
		})
	}
}

// rawKey returns the cache of a view, which is c or its namespace n, and the key that one of the
// view has there. It deletes the entry.
func rawKey[K ringcache.Key](
	t testing.TB, c *ringcache.Cache, view *ringcache.Typed[K, int], key K,
) (in *ringcache.Cache, raw []byte) {
	t.Helper()
	view.Del(key)
	before := map[string]bool{}
	all := []*ringcache.Cache{c, c.Namespace("n")}
	for i, of := range all {
		for k := range of.Keys() {
			before[fmt.Sprint(i, string(k))] = true
		}
	}
	require.NoError(t, view.Set(key, 1))
	for i, of := range all {
		for k := range of.Keys() {
			if !before[fmt.Sprint(i, string(k))] {
				require.Nil(t, in, "there are two new keys")
				in, raw = of, bytes.Clone(k)
			}
		}
	}
	require.True(t, view.Del(key))
	return in, raw
}

// An entry in the form of an older version is loaded anew, and replaced.
func TestTyped_GetOrLoadOfWhatCannotBeDecoded(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	for name, view := range typedViews(c) {
		t.Run(name, func(t *testing.T) {
			in, raw := rawKey(t, c, view, "k")
			require.NoError(t, in.Set(raw, []byte("six")))
			load := func(context.Context, string) (int, time.Duration, error) { return 6, 0, nil }
			v, err := view.GetOrLoad(context.Background(), "k", load)
			require.NoError(t, err)
			require.Equal(t, 6, v)
			v, ok, err := view.Get("k")
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, 6, v)
		})
	}
	// Whoever sets it meanwhile is not overruled.
	k := []byte("set meanwhile")
	view := ringcache.NewTyped[string](c, codec.Func(
		func(dst []byte, n int) ([]byte, error) { return strconv.AppendInt(dst, int64(n), 10), nil },
		func(data []byte) (int, error) {
			n, err := strconv.Atoi(string(data))
			if err != nil {
				require.NoError(t, c.Set(k, []byte("8")))
			}
			return n, err
		},
	), ringcache.TypedOptions{})
	require.NoError(t, c.Set(k, []byte("six")))
	v, err := view.GetOrLoad(context.Background(), string(k),
		func(context.Context, string) (int, time.Duration, error) { return 0, 0, ringcache.ErrAbsent })
	require.NoError(t, err)
	require.Equal(t, 8, v)
	require.True(t, view.Has(string(k)))

	broken := ringcache.NewTyped[string](c, codec.Func(
		func(dst []byte, n int) ([]byte, error) { return append(dst, "x"...), nil },
		func(data []byte) (int, error) { return 1, errNegativeNumber },
	), ringcache.TypedOptions{Prefix: "broken:"})
	loads := 0
	for range 2 {
		v, err := broken.GetOrLoad(context.Background(), "k",
			func(context.Context, string) (int, time.Duration, error) { loads++; return 6, 0, nil })
		require.ErrorIs(t, err, ringcache.ErrDecode)
		require.EqualError(t, err,
			`ringcache: load entry "k" of 1 bytes: value cannot be decoded: negative number`)
		require.Zero(t, v)
	}
	require.Equal(t, 2, loads)
}

// A codec may change the bytes that it decodes, as parsers in place do. An entry that it cannot
// decode is loaded anew all the same.
func TestTyped_CodecMayChangeWhatItDecodes(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	view := ringcache.NewTyped[string](c, codec.Func(
		func(dst []byte, n int) ([]byte, error) { return append(dst, byte(n)), nil },
		func(data []byte) (int, error) {
			defer clear(data)
			if len(data) != 1 {
				return 0, errNegativeNumber
			}
			return int(data[0]), nil
		},
	), ringcache.TypedOptions{})
	keys, vals, found := []string{"k", "other"}, make([]int, 2), make([]bool, 2)
	for _, load := range []func() error{
		func() (err error) {
			vals[0], err = view.GetOrLoad(t.Context(), "k",
				func(context.Context, string) (int, time.Duration, error) { return 6, 0, nil })
			return err
		},
		func() error {
			_, err := view.GetOrLoadBatch(t.Context(), keys, vals, found,
				func(context.Context, []string) ([]ringcache.Loaded[int], error) {
					return []ringcache.Loaded[int]{{Value: 6}}, nil
				})
			return err
		},
	} {
		require.NoError(t, view.Set("other", 8))
		require.NoError(t, c.Set([]byte("k"), []byte("six")))
		require.NoError(t, load())
		require.Equal(t, 6, vals[0])
		v, ok, err := view.Get("k")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 6, v)
	}
	require.Equal(t, 8, vals[1])
}

// An entry that is about to expire is loaded in the background, and returned meanwhile.
func TestTyped_GetOrLoadAhead(t *testing.T) {
	var now atomic.Int64
	g := ringtest.Roomy(0)
	g.Elapsed = func() time.Duration { return time.Duration(now.Load()) }
	g.RefreshAhead = time.Minute
	c := ringtest.MustCache(t, g)
	for name, view := range typedViews(c) {
		t.Run(name, func(t *testing.T) {
			keys := make(chan string, 1)
			next := 1
			load := func(_ context.Context, key string) (int, time.Duration, error) {
				next++
				keys <- key
				return next, time.Hour, nil
			}
			require.NoError(t, view.SetWithTTL("key", 1, time.Hour))
			v, err := view.GetOrLoad(context.Background(), "key", load)
			require.NoError(t, err)
			require.Equal(t, 1, v)
			require.Empty(t, keys)
			now.Add(int64(time.Hour - 30*time.Second))
			v, err = view.GetOrLoad(context.Background(), "key", load)
			require.NoError(t, err)
			require.Equal(t, 1, v)
			begun := func() bool { return len(keys) > 0 }
			require.Eventually(t, begun, ringtest.HangLimit, time.Millisecond)
			require.Equal(t, "key", <-keys)
			renewed := func() bool { v, _, _ := view.Get("key"); return v == 2 }
			require.Eventually(t, renewed, ringtest.HangLimit, time.Millisecond)
		})
	}
}

// Views in a namespace count in its statistics as their calls count in the cache's, and go
// with its entries.
func TestTyped_InNamespace(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	n := c.Namespace("n")
	view := ringcache.NewTyped[string](n, decimals, ringcache.TypedOptions{Prefix: "p:"})
	other := ringcache.NewTyped[string](n, decimals, ringcache.TypedOptions{Prefix: "q:"})
	calls := func() {
		_ = view.Set("a", 1)
		_ = view.Set("a", -1)
		_ = view.SetWithTTL("b", 2, time.Hour)
		_ = view.SetWithTTL("b", -1, time.Hour)
		_, _, _ = view.SetIfAbsent("b", 3, 0)
		_, _, _ = view.SetIfAbsent("b", 4, 0)
		_, _ = view.SetIfChanged("b", 4)
		_, _ = view.SetIfChanged("c", -4)
		_ = view.SetBatch([]string{"a", "x", "b"}, []int{1, -1, 2})
		_, _ = view.GetBatch([]string{"a", "x", "b"}, make([]int, 3), make([]bool, 3))
		_, _, _ = view.Get("a")
		_, _, _ = view.Get("x")
		view.Has("a")
		view.Has("x")
		view.TTL("a")
		view.Touch("a", time.Hour)
		_ = view.Update("a", ringtest.Replace(func(int, bool) (int, bool) { return 5, true }))
		_ = view.Update("a", ringtest.Replace(func(int, bool) (int, bool) { return -5, true }))
		_ = view.Update("a", ringtest.Replace(func(int, bool) (int, bool) { return 5, false }))
		_, _ = view.GetOrLoad(context.Background(), "l", func(context.Context, string) (
			int, time.Duration, error) {
			return 1, 0, nil
		})
		_, _ = view.GetOrLoad(context.Background(), "l", neverLoadsInt)
		_, _, _ = view.GetAndDel("b")
		view.Del("l")
	}
	calls()
	var s ringcache.Stats
	c.UpdateStats(&s)
	of := n.Stats()
	of.EntriesCount, of.BytesSize = 0, 0
	require.Equal(t, ringcache.Stats{
		GetCalls: s.GetCalls, Misses: s.Misses, SetCalls: s.SetCalls, DelCalls: s.DelCalls,
	}, of)
	require.EqualValues(t, 9, s.GetCalls)
	require.EqualValues(t, 4, s.Misses)

	require.NoError(t, view.Set("a", 1))
	require.NoError(t, other.Set("a", 2))
	require.True(t, n.Has([]byte("p:a")))
	n.Reset()
	require.False(t, view.Has("a"))
	require.False(t, other.Has("a"))
}

// neverLoadsInt is a load that a hit does not call.
func neverLoadsInt(context.Context, string) (int, time.Duration, error) { panic("it is there") }

func TestTyped_ErrorsNameTheKey(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	long := strings.Repeat("\xff", 100)
	testQuote(t, c, "a \"key\"", `"a \"key\""`)
	testQuote(t, c, "", `""`)
	testQuote(t, c, long, strconv.Quote(long[:64])+"...")
	testQuote(t, c, long[:64], strconv.Quote(long[:64]))
	testQuote(t, c, []byte("a\x00"), `"a\x00"`)
	testQuote(t, c, int8(-128), "-128")
	testQuote(t, c, int16(-2), "-2")
	testQuote(t, c, int32(1<<30), "1073741824")
	testQuote(t, c, int64(-1<<63), "-9223372036854775808")
	testQuote(t, c, -7, "-7")
	testQuote(t, c, uint8(255), "255")
	testQuote(t, c, uint16(65535), "65535")
	testQuote(t, c, uint64(1<<64-1), "18446744073709551615")
	testQuote(t, c, uintptr(7), "7")
	testQuote(t, c, time.Month(2), "2")
}

// testQuote has every method that decodes fail.
func testQuote[K ringcache.Key](t *testing.T, c *ringcache.Cache, key K, want string) {
	t.Helper()
	view := ringcache.NewTyped[K](c, decimals, ringcache.TypedOptions{Prefix: "prefix:"})
	_, k := rawKey(t, c, view, key)
	require.NoError(t, c.Set(k, []byte("four")))
	ends := " of 4 bytes: value cannot be decoded: strconv.Atoi: parsing \"four\": invalid syntax"
	check := func(err error, verb string) {
		t.Helper()
		require.ErrorIs(t, err, ringcache.ErrDecode)
		require.ErrorIs(t, err, strconv.ErrSyntax)
		require.EqualError(t, err, "ringcache: "+verb+" entry "+want+ends)
	}
	v, ok, err := view.Get(key)
	check(err, "get")
	require.False(t, ok)
	require.Zero(t, v)
	err = view.Update(key, ringtest.Replace(func(int, bool) (int, bool) {
		assert.Fail(t, "Update called its function")
		return 0, false
	}))
	check(err, "update")
	vals, found := []int{7, 7}, []bool{true, true}
	hits, err := view.GetBatch([]K{key, key}, vals, found)
	check(err, "get batch: index 0: get")
	require.Zero(t, hits)
	require.Equal(t, []int{0, 0}, vals)
	require.Equal(t, []bool{false, false}, found)
	require.Equal(t, "four", string(c.Get(nil, k)), "it stays")
	v, ok, err = view.GetAndDel(key)
	check(err, "get and delete")
	require.False(t, ok)
	require.Zero(t, v)
	require.False(t, view.Has(key), "but for GetAndDel")
}
