package ringgroupcache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgroupcache"
)

func newCache(t testing.TB) *ringgroupcache.Cache {
	c := ringgroupcache.New(ringcache.New(32 << 20))
	t.Cleanup(c.Close)
	return c
}

func requireValue(t *testing.T, c groupcache.Cache, key, want string) {
	t.Helper()
	v, ok := c.Get(key)
	require.True(t, ok, key)
	require.Equal(t, want, v.String())
	require.Equal(t, len(want), v.Len())
}

func requireNone(t *testing.T, c groupcache.Cache, key string) {
	t.Helper()
	v, ok := c.Get(key)
	require.False(t, ok, key)
	require.Equal(t, transport.ByteView{}, v)
}

func TestCache_AddGetRemove(t *testing.T) {
	c := newCache(t)
	requireNone(t, c, "key")
	c.Remove("key")
	for _, length := range []int{0, 1, 8, 9, 10, 1014, 1015, 1016, 1024, 100_000} {
		for _, keyLength := range []int{0, 1, 127, 128, 129, 65_000} {
			key, value := strings.Repeat("k", keyLength), strings.Repeat("v", length)
			for name, view := range map[string]transport.ByteView{
				"bytes": transport.ByteViewFrom([]byte(value)), "string": transport.ByteViewFrom(value),
				"a part": transport.ByteViewFrom("<"+value+">").Slice(1, 1+length),
			} {
				c.Add(key, transport.ByteViewFrom("old"))
				c.Add(key, view)
				requireValue(t, c, key, value)
				got, _ := c.Get(key)
				require.True(t, got.Expire().IsZero(), name)
				require.True(t, got.Equal(view), name)
				c.Remove(key)
				requireNone(t, c, key)
			}
		}
	}
	c.Add("nothing", transport.ByteView{})
	requireValue(t, c, "nothing", "")
}

// Peers get the expiry of a view.
func TestCache_ExpiryComesBack(t *testing.T) {
	c := newCache(t)
	for _, value := range []string{"", "value", strings.Repeat("v", 5000)} {
		end := time.Now().Add(time.Hour)
		c.Add("key", transport.ByteViewWithExpire([]byte(value), end))
		requireValue(t, c, "key", value)
		got, _ := c.Get("key")
		require.True(t, got.Expire().Equal(end))

		c.Add("key", transport.ByteViewFrom(value))
		got, _ = c.Get("key")
		require.True(t, got.Expire().IsZero(), "the new value has none")
	}
}

func TestCache_ExpiredIsRemoved(t *testing.T) {
	c := newCache(t)
	for _, end := range []time.Time{time.Now(), time.Now().Add(-time.Hour), time.Unix(1, 0)} {
		c.Add("key", transport.ByteViewFrom("old"))
		c.Add("key", transport.ByteViewWithExpire([]byte("new"), end))
		requireNone(t, c, "key")
	}
}

// A view is the same whatever happens to the entry, and nobody else's view.
func TestCache_ViewsAreCopies(t *testing.T) {
	c, value := newCache(t), []byte("value")
	c.Add("key", transport.ByteViewFrom(value))
	value[0] = 'X'
	requireValue(t, c, "key", "value")
	view, _ := c.Get("key")
	c.Add("key", transport.ByteViewFrom("other"))
	c.Close()
	require.Equal(t, "value", view.String())
}

func TestCache_TooLargeIsRejectedAndGone(t *testing.T) {
	c := newCache(t)
	c.Add("key", transport.ByteViewFrom("old"))
	c.Add("key", transport.ByteViewFrom(make([]byte, 32<<20/16)))
	requireNone(t, c, "key")
	require.EqualValues(t, 1, c.Stats().Rejected)
	c.Add(strings.Repeat("k", 1<<16), transport.ByteViewFrom("value"))
	require.EqualValues(t, 2, c.Stats().Rejected)
}

func TestCache_Stats(t *testing.T) {
	c := newCache(t)
	for i := range 10 {
		c.Add(fmt.Sprint(i), transport.ByteViewFrom("0123456789"))
	}
	for i := range 13 {
		c.Get(fmt.Sprint(i))
	}
	c.Remove("0")
	s := c.Stats()
	require.Equal(t, c.Bytes(), s.Bytes)
	require.InDelta(t, 9*(1+10), s.Bytes, 9*5)
	s.Bytes = 0
	require.Equal(t, groupcache.CacheStats{Items: 9, Gets: 13, Hits: 10}, s)

	for i := range 50_000 {
		c.Add(fmt.Sprint("large:", i), transport.ByteViewFrom(make([]byte, 1000)))
	}
	s = c.Stats()
	require.Positive(t, s.Evictions)
	require.EqualValues(t, 50_009, s.Items+s.Evictions)
	require.LessOrEqual(t, s.Bytes, int64(32<<20))
}

func TestCache_Close(t *testing.T) {
	c := newCache(t)
	c.Add("key", transport.ByteViewFrom("value"))
	c.Close()
	requireNone(t, c, "key")
	c.Add("key", transport.ByteViewFrom("value"))
	requireNone(t, c, "key")
	c.Close()
}

// What others have put into the cache is a miss, and no panic.
func TestCache_EntriesOfOthers(t *testing.T) {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	c := ringgroupcache.New(cache)
	for _, value := range []string{"", "\x01", "1234567\x01", "\x02", "value\xff"} {
		require.NoError(t, cache.Set([]byte("key"), []byte(value)))
		require.NotPanics(t, func() { requireNone(t, c, "key") }, "%q", value)
	}
}

func TestNew_NilCache(t *testing.T) {
	require.PanicsWithValue(t, "ringgroupcache: make cache: cache is nil",
		func() { ringgroupcache.New(nil) })
}

func TestFactory_Bounds(t *testing.T) {
	factory := ringgroupcache.Factory(ringcache.Options{MaxBytes: 1})
	for _, n := range []int64{1, 1 << 20, 40 << 20} {
		c, err := factory(n)
		require.NoError(t, err)
		for i := range max(n, 32<<20) / 1000 {
			c.Add(fmt.Sprint(i), transport.ByteViewFrom(make([]byte, 1000)))
		}
		require.InDelta(t, max(n, 32<<20), c.Bytes(), 0.1*float64(max(n, 32<<20)))
		c.Close()
	}
	for _, n := range []int64{0, -1, math.MinInt64} { // a group that does not cache
		c, err := factory(n)
		require.NoError(t, err)
		c.Add("key", transport.ByteViewFrom("value"))
		requireNone(t, c, "key")
		c.Remove("key")
		require.Zero(t, c.Bytes())
		require.Zero(t, c.Stats())
		c.Close()
	}
}

func TestFactory_Errors(t *testing.T) {
	for _, test := range []struct {
		o    ringcache.Options
		n    int64
		want string
	}{
		{ringcache.Options{File: "file"}, 64 << 20, `Options.File is "file", must be empty`},
		{ringcache.Options{TTL: -1}, 64 << 20, "TTL"},
		{ringcache.Options{}, math.MaxInt64, "MaxBytes is"},
	} {
		c, err := ringgroupcache.Factory(test.o)(test.n)
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.ErrorContains(t, err, "ringgroupcache: make cache: ")
		require.ErrorContains(t, err, test.want)
		require.Nil(t, c)
	}
}

// One process without peers: groupcache itself loads, caches and removes.
func TestGroup(t *testing.T) {
	var loads atomic.Int64
	failure := errors.New("no database")
	load := func(_ context.Context, key string, dest transport.Sink) error {
		if key == "bad" {
			return failure
		}
		loads.Add(1)
		return dest.SetString("value of "+key, time.Now().Add(time.Hour))
	}
	instance := groupcache.New(groupcache.Options{
		CacheFactory: ringgroupcache.Factory(ringcache.Options{}),
	})
	group, err := instance.NewGroup("products", 64<<20, groupcache.GetterFunc(load))
	require.NoError(t, err)
	get := func(key string) (value string, err error) {
		err = group.Get(t.Context(), key, transport.StringSink(&value))
		return value, err
	}
	for range 3 {
		value, err := get("a")
		require.NoError(t, err)
		require.Equal(t, "value of a", value)
	}
	require.EqualValues(t, 1, loads.Load())
	_, err = get("bad")
	require.ErrorIs(t, err, failure)

	require.NoError(t, group.Set(t.Context(), "b", []byte("set"), time.Time{}, false))
	value, err := get("b")
	require.NoError(t, err)
	require.Equal(t, "set", value)
	require.NoError(t, group.Remove(t.Context(), "a"))
	_, err = get("a")
	require.NoError(t, err)
	require.EqualValues(t, 2, loads.Load())

	mainBytes, hotBytes := group.UsedBytes()
	require.Positive(t, mainBytes)
	require.Zero(t, hotBytes)
}

// FuzzGet reads any bytes that are in the cache: they are a miss, or a value that is their
// beginning, and one copy of them is allocated.
func FuzzGet(f *testing.F) {
	cache := ringcache.New(1 << 20)
	c := ringgroupcache.New(cache)
	f.Cleanup(c.Close)
	f.Add([]byte("value\x00"))
	f.Add([]byte("value\x01"))
	f.Add([]byte("value12345678\x01"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, rec []byte) {
		if cache.Set([]byte("k"), rec) != nil {
			return // too long
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, ok := c.Get("k")
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(2*len(rec)+16<<10))
		if ok {
			require.True(t, strings.HasPrefix(string(rec), v.String()))
		}
	})
}
