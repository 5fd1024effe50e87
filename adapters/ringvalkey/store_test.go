package ringvalkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringvalkey"
)

// The other tests are in adapters/internal/neartest.
func TestNewStore_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringvalkey: make store: cache is nil",
		func() { ringvalkey.NewStore(nil) })
}
