package ringgocache_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgocache"
)

func TestNew_NilNamespacePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringgocache: make store: cache is nil",
		func() { ringgocache.New(nil) })
}

func TestGetType(t *testing.T) {
	require.Equal(t, "ringcache", newStore(t).GetType())
}

func TestGet(t *testing.T) {
	s := newStore(t)
	for key, value := range map[string]any{
		"bytes": []byte("value"), "no bytes": []byte{}, "text": "value", "no text": "",
		"": []byte("of the empty key"), "any byte": []byte{0, 255, 1},
		strings.Repeat("long", 1000): strings.Repeat("value", 10_000),
	} {
		require.NoError(t, s.Set(ctx, key, value))
		requireValue(t, s, key, value)
		require.NoError(t, s.Set(ctx, key, value, withTags("a", "", "b")))
		requireValue(t, s, key, value)
	}
	requireNone(t, s, "another")
}

// A value that was read or set may be changed.
func TestGet_ValuesAreCopies(t *testing.T) {
	s := newStore(t)
	value := []byte("value")
	require.NoError(t, s.Set(ctx, "k", value))
	value[0] = 'x'
	got, err := s.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, []byte("value"), got)
	got.([]byte)[0] = 'y'
	_ = append(got.([]byte), "more"...)
	requireValue(t, s, "k", []byte("value"))
}

func TestGet_MissDoesNotAllocate(t *testing.T) {
	s := newStore(t)
	var key any = "key"
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := s.Get(ctx, key); err == nil {
			t.Error("a hit")
		}
	}))
}

func TestGetWithTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, expireAfter(time.Hour))
		require.NoError(t, s.Set(ctx, "default", []byte("v")))
		require.NoError(t, s.Set(ctx, "minute", []byte("v"), expireAfter(time.Minute)))
		require.NoError(t, s.Set(ctx, "for ever", []byte("v"), expireAfter(0)))
		for key, want := range map[string]time.Duration{
			"default": time.Hour, "minute": time.Minute, "for ever": 0,
		} {
			value, ttl, err := s.GetWithTTL(ctx, key)
			require.NoError(t, err)
			require.Equal(t, []byte("v"), value)
			require.InDelta(t, want, ttl, float64(100*time.Millisecond), key)
		}
		time.Sleep(time.Minute)
		requireNone(t, s, "minute")
		requireValue(t, s, "default", []byte("v"))
		time.Sleep(time.Hour)
		requireNone(t, s, "default")
		requireValue(t, s, "for ever", []byte("v"))
	})
}

// Without an expiration, the time to live is that of the cache.
func TestSet_TimeToLiveOfTheCache(t *testing.T) {
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, TTL: time.Hour})
	require.NoError(t, err)
	defer cache.Close()
	s := ringgocache.New(cache.Namespace(""))
	require.NoError(t, s.Set(ctx, "k", []byte("v")))
	_, ttl, err := s.GetWithTTL(ctx, "k")
	require.NoError(t, err)
	require.InDelta(t, time.Hour, ttl, float64(time.Minute))
}

// What expires at once is removed, and so is what was there.
func TestSet_TimeToLiveThatIsTooShort(t *testing.T) {
	s := newStore(t)
	for _, ttl := range []time.Duration{time.Millisecond, 1, -time.Second} {
		require.NoError(t, s.Set(ctx, "k", []byte("old")))
		require.NoError(t, s.Set(ctx, "k", []byte("new"), expireAfter(ttl)))
		requireNone(t, s, "k")
	}
}

func TestSet_OfWhatIsTooLarge(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Set(ctx, "k", "old"))
	err := s.Set(ctx, "k", strings.Repeat("v", 32<<20))
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.ErrorContains(t, err, `ringgocache: set "k": `)
	requireNone(t, s, "k")
}

func TestSet_ValueOfAnotherType(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Set(ctx, "k", "old"))
	for _, value := range []any{nil, 1, struct{}{}, []string{"v"}} {
		require.ErrorIs(t, s.Set(ctx, "k", value), ringgocache.ErrValueType)
	}
	requireValue(t, s, "k", "old")
}

func TestKeyOfAnotherType(t *testing.T) {
	s := newStore(t)
	for _, key := range []any{nil, 1, []byte("k")} {
		value, err := s.Get(ctx, key)
		require.ErrorIs(t, err, ringgocache.ErrKeyType)
		require.Nil(t, value)
		value, ttl, err := s.GetWithTTL(ctx, key)
		require.ErrorIs(t, err, ringgocache.ErrKeyType)
		require.Nil(t, value)
		require.Zero(t, ttl)
		require.ErrorIs(t, s.Set(ctx, key, []byte("v")), ringgocache.ErrKeyType)
		require.ErrorIs(t, s.Delete(ctx, key), ringgocache.ErrKeyType)
	}
}

func TestDelete(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Set(ctx, "a", []byte("1")))
	require.NoError(t, s.Set(ctx, "b", []byte("2"), withTags("tag")))
	require.NoError(t, s.Set(ctx, "c", []byte("3")))
	require.NoError(t, s.Delete(ctx, "a"))
	require.NoError(t, s.Delete(ctx, "b"))
	require.NoError(t, s.Delete(ctx, "never there"))
	requireNone(t, s, "a")
	requireNone(t, s, "b")
	requireValue(t, s, "c", []byte("3"))
}

// Clear leaves alone what else is in the cache.
func TestClear(t *testing.T) {
	cache := newCache(t)
	s := ringgocache.New(cache.Namespace("a"))
	other := ringgocache.New(cache.Namespace("b"))
	require.NoError(t, s.Set(ctx, "k", []byte("v")))
	require.NoError(t, s.Set(ctx, "tagged", []byte("v"), withTags("tag")))
	require.NoError(t, other.Set(ctx, "k", []byte("other")))
	require.NoError(t, cache.Set([]byte("k"), []byte("of the cache")))
	require.NoError(t, s.Clear(ctx))
	requireNone(t, s, "k")
	requireNone(t, s, "tagged")
	requireValue(t, other, "k", []byte("other"))
	require.True(t, cache.Has([]byte("k")))
	require.NoError(t, s.Set(ctx, "k", []byte("new"), withTags("tag")))
	requireValue(t, s, "k", []byte("new"))
}

func TestStore_OnAClosedCache(t *testing.T) {
	cache := newCache(t)
	s := ringgocache.New(cache.Namespace(""))
	require.NoError(t, s.Set(ctx, "k", []byte("v")))
	require.NoError(t, cache.Close())
	requireNone(t, s, "k")
	require.ErrorIs(t, s.Set(ctx, "k", []byte("v")), ringcache.ErrClosed)
	require.NoError(t, s.Clear(ctx))
	require.NoError(t, s.Delete(ctx, "k"))
	invalidate(t, s, "tag")
}

// Values of an earlier process are found, but none that has tags: it is not known what has been
// invalidated since.
func TestStore_ValuesOfAnotherProcess(t *testing.T) {
	before := newCache(t)
	s := ringgocache.New(before.Namespace("n"))
	require.NoError(t, s.Set(ctx, "plain", []byte("v")))
	require.NoError(t, s.Set(ctx, "tagged", []byte("v"), withTags("tag")))
	path := t.TempDir() + "/snapshot"
	require.NoError(t, before.SaveToFile(path))

	after, err := ringcache.LoadFromFile(path)
	require.NoError(t, err)
	defer after.Close()
	s = ringgocache.New(after.Namespace("n"))
	requireValue(t, s, "plain", []byte("v"))
	requireNone(t, s, "tagged")
}
