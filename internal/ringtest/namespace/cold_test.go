package namespace

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
)

// An entry that comes back from the cold part is still one of its namespace.
func TestNamespace_ColdEntriesStayInIt(t *testing.T) {
	if *ringtest.ColdOn {
		t.Skip("all caches have a cold part, and SinkAll leaves it to their goroutines")
	}
	g := ringtest.WithCold(ringtest.Tiny(2, 1024, 128), ringtest.FlateCompressor{})
	g.ByHand = true
	c := ringtest.MustCache(t, g)
	n := c.Namespace("tenant")
	const keys = 40
	for i := range keys {
		require.NoError(t, n.Set(fmt.Appendf(nil, "key %d", i), ringtest.Text(i, 300)))
	}
	require.NotZero(t, ringtest.SinkAll(c))
	for range 3 {
		for i := range keys {
			require.True(t, n.Has(fmt.Appendf(nil, "key %d", i)))
		}
	}
	require.Equal(t, keys, n.Len())
	require.Zero(t, c.Len(), "entries of a namespace are among those of the whole cache")
	for k := range c.Keys() {
		require.Fail(t, "a raw key", "%x", k)
	}
	require.NoError(t, ringtest.Validate(c))
}
