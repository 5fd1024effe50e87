package persist

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The holes that Resize leaves in a file cost a byte of the Go heap each, and no more with each
// Resize.
func TestFile_ResizesTakeLittleHeap(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("the race detector needs more")
	}
	const most = 32 << 20
	c, err := ringcache.NewWithOptions(
		ringcache.Options{MaxBytes: most, File: filepath.Join(t.TempDir(), "cache")})
	require.NoError(t, err)
	defer ringtest.CloseCache(t, c)
	ringtest.FillCache(t, c, 0, most/1000, 1000)
	before := ringtest.HeapBytes()
	for range 2 {
		ringtest.MustResize(t, c, most/8)
		ringtest.MustResize(t, c, most)
	}
	ringtest.MustResize(t, c, most/8)
	holes := uint64(most / ringtest.Shared(c).Pool.ChunkSize())
	// Of each chunk, the pool has a reference in a slice that doubles, and the file has a byte.
	require.LessOrEqual(t, ringtest.HeapBytes(), before+holes*24)
}
