package ringscs_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringscs"
)

func requireFound(t *testing.T, s *ringscs.Store, token, want string) {
	t.Helper()
	b, found, err := s.Find(token)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, string(b))
}

func requireNotFound(t *testing.T, s *ringscs.Store, token string) {
	t.Helper()
	b, found, err := s.Find(token)
	require.NoError(t, err)
	require.False(t, found)
	require.Nil(t, b)
}

func TestStore_CommitFindDelete(t *testing.T) {
	s := ringscs.New(newCache(t), ringscs.Options{})
	requireNotFound(t, s, "token")
	require.NoError(t, s.Delete("token"))
	require.NoError(t, s.Commit("token", []byte("old"), time.Now().Add(hour)))
	require.NoError(t, s.Commit("token", []byte("data"), time.Now().Add(hour)))
	requireFound(t, s, "token", "data")
	require.NoError(t, s.Commit("token", nil, time.Now().Add(hour)))
	requireFound(t, s, "token", "")
	require.NoError(t, s.Delete("token"))
	requireNotFound(t, s, "token")
}

func TestStore_ExpiredIsRemoved(t *testing.T) {
	s := ringscs.New(newCache(t), ringscs.Options{})
	for name, expiry := range map[string]func() time.Time{
		"zero":                func() time.Time { return time.Time{} },
		"past":                func() time.Time { return time.Now().Add(-hour) },
		"less than a tick":    func() time.Time { return time.Now().Add(50 * time.Millisecond) },
		"long ago, saturated": func() time.Time { return time.Unix(math.MinInt64/4, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, s.Commit("token", []byte("old"), time.Now().Add(hour)))
			require.NoError(t, s.Commit("token", []byte("new"), expiry()))
			requireNotFound(t, s, "token")
		})
	}
}

func TestStore_ExpiryIsTheTimeToLive(t *testing.T) {
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: cacheSize, TTL: time.Minute})
	require.NoError(t, err)
	defer cache.Close()
	s := ringscs.New(cache, ringscs.Options{})
	require.NoError(t, s.Commit("token", []byte("data"), time.Now().Add(hour).UTC().Round(0)))
	left, ok := cache.TTL([]byte("token"))
	require.True(t, ok)
	require.InDelta(t, hour, left, float64(time.Minute/2))

	require.NoError(t, s.Commit("token", []byte("data"), time.Now().AddDate(1000, 0, 0)))
	requireFound(t, s, "token", "data")
}

func TestStore_BytesBelongToTheCaller(t *testing.T) {
	s := ringscs.New(newCache(t), ringscs.Options{})
	data := []byte("data")
	require.NoError(t, s.Commit("token", data, time.Now().Add(hour)))
	data[0] = 'X'
	got, _, err := s.Find("token")
	require.NoError(t, err)
	got[0] = 'Y'
	_ = append(got, "more"...)
	all, err := s.All()
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"token": []byte("data")}, all)
	all["token"][0] = 'Z'
	requireFound(t, s, "token", "data")
}

func TestStore_AllIsEmptyAndNotNil(t *testing.T) {
	cache := newCache(t)
	s := ringscs.New(cache, ringscs.Options{Prefix: "p:"})
	require.NoError(t, cache.Set([]byte("q:token"), []byte("other")))
	for range 2 {
		all, err := s.All()
		require.NoError(t, err)
		require.NotNil(t, all)
		require.Empty(t, all)
		require.NoError(t, cache.Close())
	}
}

func TestStore_PrefixesShareACache(t *testing.T) {
	cache := newCache(t)
	a := ringscs.New(cache, ringscs.Options{Prefix: "a:"})
	b := ringscs.New(cache, ringscs.Options{Prefix: "b:"})
	expiry := time.Now().Add(hour)
	long := strings.Repeat("k", 300) // longer than what is put together on the stack
	tokens := []string{"", "token", "a:", "b:", long}
	for _, token := range tokens {
		require.NoError(t, a.Commit(token, []byte("A"+token), expiry))
		require.NoError(t, b.Commit(token, []byte("B"+token), expiry))
	}
	require.True(t, cache.Has([]byte("a:token")))
	for _, token := range tokens {
		requireFound(t, a, token, "A"+token)
		requireFound(t, b, token, "B"+token)
	}
	require.NoError(t, a.Delete("token"))
	all, err := a.All()
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{
		"": []byte("A"), "a:": []byte("Aa:"), "b:": []byte("Ab:"), long: []byte("A" + long),
	}, all)
	all, err = b.All()
	require.NoError(t, err)
	require.Len(t, all, 5)
}

// To list sessions is not to use them.
func TestStore_AllCountsAsNoLookup(t *testing.T) {
	cache := newCache(t)
	s := ringscs.New(cache, ringscs.Options{Prefix: "p:"})
	require.NoError(t, s.Commit("token", []byte("data"), time.Now().Add(hour)))
	all, err := s.All()
	require.NoError(t, err)
	require.Len(t, all, 1)
	var stats ringcache.Stats
	cache.UpdateStats(&stats)
	require.Zero(t, stats.GetCalls)
}

func TestStore_ErrorsComeThrough(t *testing.T) {
	cache := newCache(t)
	s := ringscs.New(cache, ringscs.Options{Prefix: "p:"})
	expiry := time.Now().Add(hour)
	require.NoError(t, s.Commit("secret", []byte("old"), expiry))
	err := s.Commit("secret", make([]byte, tooLarge), expiry)
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.NotContains(t, err.Error(), "secret")
	requireNotFound(t, s, "secret")

	tooLong := strings.Repeat("k", 65534) // the prefix counts
	require.ErrorIs(t, s.Commit(tooLong, nil, expiry), ringcache.ErrTooLarge)
	requireNotFound(t, s, tooLong)

	require.NoError(t, cache.Close())
	require.ErrorIs(t, s.Commit("secret", nil, expiry), ringcache.ErrClosed)
	requireNotFound(t, s, "secret")
	require.NoError(t, s.Delete("secret"))
}

func TestStore_AllocatesTheDataAlone(t *testing.T) {
	s := ringscs.New(newCache(t), ringscs.Options{Prefix: "session:"})
	data, expiry := []byte("data"), time.Now().Add(hour)
	token := strings.Repeat("k", 43) // as long as those of scs
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = s.Commit(token, data, expiry) }))
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { _, _, _ = s.Find(token) }))
}

func TestNew_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringscs: make store: cache is nil",
		func() { ringscs.New(nil, ringscs.Options{}) })
}
