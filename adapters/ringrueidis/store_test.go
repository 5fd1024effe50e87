package ringrueidis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

// The other tests are in adapters/internal/neartest.
func TestNewStore_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringrueidis: make store: cache is nil",
		func() { ringrueidis.NewStore(nil) })
}
