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
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	require.NoError(t, c.Close())
	require.Less(t, heap(), before-16<<20)
	runtime.KeepAlive(c)
}
