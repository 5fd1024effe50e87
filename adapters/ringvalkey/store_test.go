package ringvalkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/neartest"
	"github.com/ringcache/ringcache/adapters/ringvalkey"
)

func TestNewStore_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringvalkey: make store: cache is nil",
		func() { ringvalkey.NewStore(nil) })
}

func TestStores(t *testing.T) {
	neartest.Stores[valkey.ValkeyMessage, *valkey.ValkeyMessage](t,
		func(cache *ringcache.Cache) neartest.Store[valkey.ValkeyMessage, valkey.CacheEntry] {
			return ringvalkey.NewStore(cache)(valkey.CacheStoreOption{})
		})
}
