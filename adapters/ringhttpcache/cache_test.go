package ringhttpcache_test

import (
	"strings"
	"testing"

	"github.com/gregjones/httpcache"
	conformance "github.com/gregjones/httpcache/test"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringhttpcache"
)

var _ httpcache.Cache = (*ringhttpcache.Cache)(nil)

const (
	cacheSize = 32 << 20
	tooLarge  = cacheSize/16 + 1 // for a value
)

// newRing returns the smallest cache, which is closed at the end of the test.
func newRing(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

func requireHit(t *testing.T, c *ringhttpcache.Cache, key, want string) {
	t.Helper()
	got, ok := c.Get(key)
	require.True(t, ok)
	require.Equal(t, want, string(got))
}

func requireMiss(t *testing.T, c *ringhttpcache.Cache, key string) {
	t.Helper()
	got, ok := c.Get(key)
	require.False(t, ok)
	require.Nil(t, got)
}

func TestCache_Conformance(t *testing.T) {
	conformance.Cache(t, ringhttpcache.New(newRing(t), ringhttpcache.Options{}))
	conformance.Cache(t, ringhttpcache.New(newRing(t), ringhttpcache.Options{Prefix: "http:"}))
}

func TestCache_BytesBelongToTheCaller(t *testing.T) {
	c := ringhttpcache.New(newRing(t), ringhttpcache.Options{})
	response := []byte("response")
	c.Set("k", response)
	response[0] = 'X'
	got, ok := c.Get("k")
	require.True(t, ok)
	require.Equal(t, "response", string(got))
	got[0] = 'Y'
	_ = append(got, "more"...)
	requireHit(t, c, "k", "response")
	c.Set("k", []byte("another!"))
	require.Equal(t, "Yesponse", string(got))
}

func TestCache_PrefixesShareARing(t *testing.T) {
	ring := newRing(t)
	a := ringhttpcache.New(ring, ringhttpcache.Options{Prefix: "a:"})
	b := ringhttpcache.New(ring, ringhttpcache.Options{Prefix: "b:"})
	long := strings.Repeat("k", 300) // longer than what is put together on the stack
	keys := []string{"", "k", "a:", "b:", long}
	for _, k := range keys {
		a.Set(k, []byte("A"+k))
		b.Set(k, []byte("B"+k))
	}
	for _, k := range keys {
		requireHit(t, a, k, "A"+k)
		require.True(t, ring.Has([]byte("a:"+k)))
		a.Delete(k)
		requireMiss(t, a, k)
		requireHit(t, b, k, "B"+k)
	}
}

func TestCache_WhatIsRefusedIsGone(t *testing.T) {
	ring := newRing(t)
	c := ringhttpcache.New(ring, ringhttpcache.Options{Prefix: "p:"})
	c.Set("k", []byte("old"))
	c.Set("k", make([]byte, tooLarge))
	requireMiss(t, c, "k")
	tooLong := strings.Repeat("k", 65534) // the prefix counts
	c.Set(tooLong, []byte("response"))
	requireMiss(t, c, tooLong)

	c.Set("k", []byte("new"))
	requireHit(t, c, "k", "new")
	require.NoError(t, ring.Close())
	requireMiss(t, c, "k")
	c.Set("k", []byte("new"))
	requireMiss(t, c, "k")
	c.Delete("k")
}

func TestCache_AllocatesTheResponseAlone(t *testing.T) {
	c := ringhttpcache.New(newRing(t), ringhttpcache.Options{Prefix: "http:"})
	url, response := "http://127.0.0.1:8080/planets/saturn?lang=en", []byte("response")
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Set(url, response) }))
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { _, _ = c.Get(url) }))
}

func TestNew_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringhttpcache: make cache: cache is nil",
		func() { ringhttpcache.New(nil, ringhttpcache.Options{}) })
}
