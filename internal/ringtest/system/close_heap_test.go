package system

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Where the cache lies on the Go heap, Close lets the collector have it, index and all.
func TestClose_HeapMemoryIsFree(t *testing.T) {
	if chunk.OffHeap {
		t.Skip("the cache does not lie on the Go heap")
	}
	c := ringcache.New(ringtest.MinBytes)
	ringtest.FillCache(t, c, 0, 200_000, 50)
	before := ringtest.HeapBytes()
	require.NoError(t, c.Close())
	require.Less(t, ringtest.HeapBytes(), before-16<<20)
	runtime.KeepAlive(c)
}
