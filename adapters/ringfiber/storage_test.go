package ringfiber_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringfiber"
)

func requireValue(t *testing.T, s fiber.Storage, key, want string) {
	t.Helper()
	got, err := s.Get(key)
	require.NoError(t, err)
	require.NotNil(t, got)
	require.Equal(t, want, string(got))
}

func requireMiss(t *testing.T, s fiber.Storage, key string) {
	t.Helper()
	got, err := s.Get(key)
	require.NoError(t, err)
	require.Nil(t, got)
}

func TestStorage_SetGetDelete(t *testing.T) {
	s := ringfiber.New(newCache(t), ringfiber.Options{})
	requireMiss(t, s, "k")
	require.NoError(t, s.Delete("k"))

	require.NoError(t, s.Set("k", []byte("old"), 0))
	require.NoError(t, s.Set("k", []byte("v"), hour))
	requireValue(t, s, "k", "v")
	require.NoError(t, s.Delete("k"))
	requireMiss(t, s, "k")

	ctx := context.Background()
	require.NoError(t, s.SetWithContext(ctx, "k", []byte("w"), hour))
	got, err := s.GetWithContext(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "w", string(got))
	require.NoError(t, s.DeleteWithContext(ctx, "k"))
	got, err = s.GetWithContext(ctx, "k")
	require.NoError(t, err)
	require.Nil(t, got)
}

// fiber: "Empty key or value will be ignored without an error."
func TestStorage_EmptyKeyOrValueIsIgnored(t *testing.T) {
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{})
	require.NoError(t, s.Set("", []byte("v"), 0))
	require.NoError(t, s.Set("k", nil, 0))
	require.NoError(t, s.Set("k_body", []byte{}, 0))
	require.Zero(t, cache.Len())
	requireMiss(t, s, "")

	require.NoError(t, s.Set("k", []byte("v"), 0))
	require.NoError(t, s.Set("k", nil, 0))
	requireValue(t, s, "k", "v")

	// The empty key of the cache itself is another's.
	require.NoError(t, cache.Set(nil, []byte("other")))
	requireMiss(t, s, "")
	require.NoError(t, s.Delete(""))
	require.True(t, cache.Has(nil))
}

func TestStorage_Expiry(t *testing.T) {
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: cacheSize, TTL: time.Minute})
	require.NoError(t, err)
	defer cache.Close()
	s := ringfiber.New(cache, ringfiber.Options{})

	require.NoError(t, s.Set("k", []byte("v"), hour))
	left, ok := cache.TTL([]byte("k"))
	require.True(t, ok)
	require.InDelta(t, hour, left, float64(time.Minute/2))

	require.NoError(t, s.Set("k", []byte("v"), 0))
	left, ok = cache.TTL([]byte("k"))
	require.True(t, ok)
	require.Zero(t, left, "0 is for ever, whatever the cache says")

	require.NoError(t, s.Set("k", []byte("v"), math.MaxInt64))
	requireValue(t, s, "k", "v")
}

func TestStorage_EntryExpiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ringfiber.New(newCache(t), ringfiber.Options{})
		require.NoError(t, s.Set("k", []byte("v"), time.Second))
		time.Sleep(900 * time.Millisecond)
		requireValue(t, s, "k", "v")
		time.Sleep(100 * time.Millisecond)
		requireMiss(t, s, "k")
	})
}

// fiber passes on what is left of a response's time, which may be next to nothing.
func TestStorage_LessThanATickHasExpired(t *testing.T) {
	for _, responses := range []bool{false, true} {
		s := ringfiber.New(newCache(t), ringfiber.Options{Responses: responses})
		for _, exp := range []time.Duration{-hour, -1, 1, 50 * time.Millisecond} {
			require.NoError(t, s.Set("k_body", []byte("body"), 0))
			require.NoError(t, s.Set("k", []byte("old"), 0))
			requireValue(t, s, "k", "old")
			require.NoError(t, s.Set("k", []byte("new"), exp), "%v", exp)
			requireMiss(t, s, "k")
		}
	}
}

func TestStorage_BytesBelongToTheCaller(t *testing.T) {
	s := ringfiber.New(newCache(t), ringfiber.Options{})
	val := []byte("value")
	require.NoError(t, s.Set("k", val, 0))
	val[0] = 'X'
	got, err := s.Get("k")
	require.NoError(t, err)
	require.Equal(t, "value", string(got))

	got[0] = 'X'
	_ = append(got, "more"...)
	requireValue(t, s, "k", "value")
	require.NoError(t, s.Set("k", []byte("other"), 0))
	require.Equal(t, "Xalue", string(got))
}

func TestStorage_ResetWithoutAPrefixEmptiesTheCache(t *testing.T) {
	cache := newCache(t)
	require.NoError(t, cache.Set([]byte("other"), nil))
	s := ringfiber.New(cache, ringfiber.Options{})
	require.NoError(t, s.Set("k", []byte("v"), 0))
	require.NoError(t, s.Reset())
	require.Zero(t, cache.Len())
}

func TestStorage_ResetWithAPrefixKeepsOthers(t *testing.T) {
	cache := newCache(t)
	a := ringfiber.New(cache, ringfiber.Options{Prefix: "a:"})
	b := ringfiber.New(cache, ringfiber.Options{Prefix: "b:"})
	long := strings.Repeat("k", 300) // longer than what is put together on the stack
	for _, k := range []string{"k", "a:", "b:", long, long + "2"} {
		require.NoError(t, a.Set(k, []byte("A"+k), 0))
		require.NoError(t, b.Set(k, []byte("B"+k), 0))
	}
	require.NoError(t, cache.Set([]byte("a"), nil))
	requireValue(t, a, long, "A"+long)
	require.True(t, cache.Has([]byte("a:k")))
	require.NoError(t, a.Delete("k"))

	require.NoError(t, a.Reset())
	for _, k := range []string{"k", "a:", "b:", long, long + "2"} {
		requireMiss(t, a, k)
		requireValue(t, b, k, "B"+k)
	}
	require.True(t, cache.Has([]byte("a")))
}

func TestStorage_ResetEndsWithItsContext(t *testing.T) {
	s := ringfiber.New(newCache(t), ringfiber.Options{Prefix: "a:"})
	require.NoError(t, s.Set("k", []byte("v"), 0))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.ResetWithContext(ctx), context.Canceled)
	requireValue(t, s, "k", "v")
}

func TestStorage_ErrorsComeThrough(t *testing.T) {
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{Prefix: "p:"})
	require.NoError(t, s.Set("secret", []byte("v"), 0))
	err := s.Set("secret", make([]byte, tooLarge), hour)
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.NotContains(t, err.Error(), "secret", "keys are tokens of sessions")
	requireMiss(t, s, "secret")

	tooLong := strings.Repeat("k", 65534) // the prefix counts
	require.ErrorIs(t, s.Set(tooLong, []byte("v"), hour), ringcache.ErrTooLarge)
	requireMiss(t, s, tooLong)

	require.NoError(t, cache.Close())
	require.ErrorIs(t, s.Set("k", []byte("v"), hour), ringcache.ErrClosed)
	requireMiss(t, s, "k")
	require.NoError(t, s.Delete("k"))
	require.NoError(t, s.Reset())
}

func TestStorage_CloseLeavesTheCacheOpen(t *testing.T) {
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{})
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.NoError(t, cache.Set([]byte("k"), []byte("v")))
	requireValue(t, s, "k", "v")
}

func TestNew_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringfiber: make storage: cache is nil",
		func() { ringfiber.New(nil, ringfiber.Options{}) })
}

func TestResponses_FoundOnlyWithTheirBody(t *testing.T) {
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{Prefix: "p:", Responses: true})
	require.NoError(t, s.Set("k|vary", []byte("accept"), hour))
	requireValue(t, s, "k|vary", "accept")

	require.NoError(t, s.Set("k_body", nil, hour))
	require.NoError(t, s.Set("k", []byte("entry"), hour))
	requireValue(t, s, "k", "entry")
	requireValue(t, s, "k_body", "")

	require.True(t, cache.Del([]byte("p:k_body"))) // as an eviction does
	requireMiss(t, s, "k")
}

// The cache drops the body between the middleware's two calls.
func TestResponses_BodyIsHandedOver(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what is handed over may be collected
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{Responses: true})
	set := func(body string) {
		require.NoError(t, s.Set("k_body", []byte(body), hour))
		require.NoError(t, s.Set("k", []byte("entry"), hour))
	}
	set("body")
	requireValue(t, s, "k", "entry")
	requireValue(t, s, "k", "entry")
	require.True(t, cache.Del([]byte("k_body")))
	requireValue(t, s, "k_body", "body")
	requireValue(t, s, "k_body", "body")
	requireMiss(t, s, "k_body")

	// A body that nobody has asked for is not taken for that of a later response.
	set("old")
	requireValue(t, s, "k", "entry")
	require.NoError(t, cache.Set([]byte("k_body"), []byte("new")))
	requireValue(t, s, "k", "entry")
	requireValue(t, s, "k_body", "new")

	for name, change := range map[string]func(){
		"Set":    func() { require.NoError(t, s.Set("k_body", []byte("new"), hour)) },
		"Delete": func() { require.NoError(t, s.Delete("k_body")) },
		"Reset":  func() { require.NoError(t, s.Reset()) },
	} {
		set("old")
		requireValue(t, s, "k", "entry")
		requireValue(t, s, "k", "entry")
		change()
		cache.Del([]byte("k_body"))
		got, err := s.Get("k_body")
		require.NoError(t, err)
		require.Nil(t, got, name)
	}
}

// Many responses are found before the body of the first is asked for.
func TestResponses_MoreThanCanBeHandedOver(t *testing.T) {
	s := ringfiber.New(newCache(t), ringfiber.Options{Responses: true})
	const n = 200
	for i := range n {
		require.NoError(t, s.Set(fmt.Sprint(i, "_body"), []byte(fmt.Sprint("body ", i)), hour))
		require.NoError(t, s.Set(fmt.Sprint(i), []byte("entry"), hour))
	}
	for i := range n {
		requireValue(t, s, fmt.Sprint(i), "entry")
	}
	for i := range n {
		requireValue(t, s, fmt.Sprint(i, "_body"), fmt.Sprint("body ", i))
	}
}

// A response that is found and not used keeps nothing on the Go heap.
func TestResponses_BodyThatNobodyAsksForIsCollected(t *testing.T) {
	s := ringfiber.New(newCache(t), ringfiber.Options{Responses: true})
	require.NoError(t, s.Set("k_body", make([]byte, 1<<20), hour))
	require.NoError(t, s.Set("k", []byte("entry"), hour))
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for range 32 {
		requireValue(t, s, "k", "entry")
	}
	require.Less(t, heap()-before, int64(4<<20))
	got, err := s.Get("k_body")
	require.NoError(t, err)
	require.Len(t, got, 1<<20)
}

// The body is set first, so it would go first, if the clock ticks in between.
func TestResponses_BodyIsThereUntilTheResponseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := newCache(t)
		s := ringfiber.New(cache, ringfiber.Options{Responses: true})
		require.NoError(t, s.Set("k_body", []byte("body"), time.Second))
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, s.Set("k", []byte("entry"), time.Second))
		time.Sleep(900 * time.Millisecond)
		requireValue(t, s, "k", "entry")
		time.Sleep(100 * time.Millisecond)
		requireMiss(t, s, "k")
	})
}

func TestResponses_BodyLivesLonger(t *testing.T) {
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{Responses: true})
	require.NoError(t, s.Set("k_body", []byte("body"), hour))
	left, ok := cache.TTL([]byte("k_body"))
	require.True(t, ok)
	require.Greater(t, left, hour)

	for _, exp := range []time.Duration{0, math.MaxInt64} {
		require.NoError(t, s.Set("k_body", []byte("body"), exp))
		left, ok = cache.TTL([]byte("k_body"))
		require.True(t, ok)
		require.Zero(t, left, "it never expires")
	}
	require.NoError(t, s.Set("k_body", []byte("body"), -1))
	requireMiss(t, s, "k_body")
}

func TestResponses_TooLargeIsNoError(t *testing.T) {
	cache := newCache(t)
	s := ringfiber.New(cache, ringfiber.Options{Responses: true})
	require.NoError(t, s.Set("k_body", []byte("old"), hour))
	require.NoError(t, s.Set("k", []byte("entry"), hour))
	require.NoError(t, s.Set("k_body", make([]byte, tooLarge), hour))
	require.NoError(t, s.Set("k", []byte("entry"), hour))
	requireMiss(t, s, "k")

	require.NoError(t, cache.Close())
	require.ErrorIs(t, s.Set("k", []byte("v"), hour), ringcache.ErrClosed)
}

func TestStorage_AllocatesTheValueAlone(t *testing.T) {
	s := ringfiber.New(newCache(t), ringfiber.Options{Prefix: "p:"})
	val := []byte("value")
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = s.Set("k", val, hour) }))
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { _, _ = s.Get("k") }))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = s.Get("absent") }))
}
