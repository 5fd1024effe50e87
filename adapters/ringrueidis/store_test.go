package ringrueidis_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/neartest"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

func TestNewStore_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringrueidis: make store: cache is nil",
		func() { ringrueidis.NewStore(nil) })
}

func TestStores(t *testing.T) {
	neartest.Stores[rueidis.RedisMessage, *rueidis.RedisMessage](t,
		func(cache *ringcache.Cache) neartest.Store[rueidis.RedisMessage, rueidis.CacheEntry] {
			return ringrueidis.NewStore(cache)(rueidis.CacheStoreOption{})
		})
}
