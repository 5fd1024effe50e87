package ringgocache_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/eko/gocache/lib/v4/store"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgocache"
)

var ctx = context.Background()

// newCache returns a small cache that is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(32 << 20)
	t.Cleanup(func() { cache.Close() })
	return cache
}

func newStore(t testing.TB, options ...store.Option) *ringgocache.Store {
	return ringgocache.New(newCache(t).Namespace("test"), options...)
}

// newStoreWithTags returns a store in which none of these tags shares a version with another.
func newStoreWithTags(t testing.TB, tags []string) *ringgocache.Store {
	for {
		s := newStore(t)
		var slots []uint16
		for _, tag := range tags {
			slots = append(slots, s.Slot(tag))
		}
		slices.Sort(slots)
		if len(slices.Compact(slots)) == len(tags) {
			return s
		}
	}
}

func withTags(tags ...string) store.Option { return store.WithTags(tags) }

func expireAfter(ttl time.Duration) store.Option { return store.WithExpiration(ttl) }

func invalidate(t testing.TB, s store.StoreInterface, tags ...string) {
	t.Helper()
	require.NoError(t, s.Invalidate(ctx, store.WithInvalidateTags(tags)))
}

func requireValue(t testing.TB, s store.StoreInterface, key string, want any) {
	t.Helper()
	got, err := s.Get(ctx, key)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func requireNone(t testing.TB, s store.StoreInterface, key string) {
	t.Helper()
	got, err := s.Get(ctx, key)
	require.Nil(t, got)
	requireNotFound(t, err)
	got, ttl, err := s.GetWithTTL(ctx, key)
	require.Nil(t, got)
	require.Zero(t, ttl)
	requireNotFound(t, err)
}

// requireNotFound expects the error by which programs recognize a miss of any store.
func requireNotFound(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, store.NotFound{})
	require.EqualError(t, err, store.NOT_FOUND_ERR)
	var notFound *store.NotFound
	require.True(t, errors.As(err, &notFound))
	require.ErrorContains(t, notFound.Cause(), "ringgocache: get value")
}
