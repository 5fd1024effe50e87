package persist

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A file keeps the buckets that it was made with, whatever bound the next process has.
func TestFile_OtherBoundHasOtherBuckets(t *testing.T) {
	const entries = 500
	value := make([]byte, 200)
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	for _, bounds := range [][2]int{{1 << 20, 16 << 20}, {32 << 20, 8 << 20}, {256 << 10, 1 << 20}} {
		path := filepath.Join(t.TempDir(), "cache")
		c := ringtest.OpenFile(t, path, bounds[0])
		for i := range entries {
			require.NoError(t, c.Set(key(i), value))
		}
		buckets := ringtest.Shared(c).Buckets
		require.NoError(t, c.Close())
		c = ringtest.OpenFile(t, path, bounds[1])
		require.Equal(t, buckets, ringtest.Shared(c).Buckets)
		require.EqualValues(t, bounds[1], ringtest.StatsOf(c).MaxBytesSize)
		for i := range entries {
			require.True(t, c.Has(key(i)), "%v: %s", bounds, key(i))
		}
		for i := range 4 * bounds[1] / len(value) {
			require.NoError(t, c.Set(key(entries+i), value))
		}
		require.NoError(t, ringtest.Validate(c))
		require.Greater(t, c.Len(), bounds[1]/len(value)*3/5, "it uses its bound")
		require.NoError(t, c.Close())

		if bounds[0] == 256<<10 && math.MaxInt > math.MaxInt32 {
			_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: math.MaxInt >> 27, File: path})
			require.ErrorIs(t, err, ringcache.ErrInvalidOptions, "positions do not reach that far")
		}
	}
}

// A bound that is refused leaves the file of namespaces as it is, too: its mode, and unlocked.
func TestFile_RefusedBoundOpensNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.OpenFile(t, path, 8<<20)
	require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
	require.NoError(t, c.Close())
	require.NoError(t, os.Chmod(path+".names", 0o644))
	_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 10, File: path})
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	names, err := os.Open(path + ".names")
	require.NoError(t, err)
	defer names.Close()
	info, err := names.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 0o644, info.Mode().Perm())
	require.NoError(t, osfile.Lock(names))
}

// A value that a larger cache has left in the queue of the cold part is compressed by the smaller
// one that opens the file, which must be able to unpack it: for a lookup, and for OnRemove.
func TestFile_CompressesLongerValues(t *testing.T) {
	m := ringtest.NewFakeMachine()
	told := 0
	g := ringtest.WithCold(ringtest.Default(512<<10), ringtest.FlateCompressor{})
	g.ByHand, g.Machine, g.Seed = true, m.Machine(), ringtest.TestSeed
	g.OnRemove = func(ringcache.Removal) { told++ }
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.MustOpen(t, g, path)
	longest := ringtest.Shared(c).Longest(512<<10, false)
	ringtest.MustResize(t, c, 1<<20)
	k, v := []byte("long"), make([]byte, longest+1000)
	require.NoError(t, c.SetWithTTL(k, v, time.Minute))
	b := int(ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number)
	require.Greater(t, ringtest.SinkNext(c, b), longest, "the test proves nothing")
	ringtest.CloseCache(t, c)

	c = ringtest.MustOpen(t, g, path)
	defer ringtest.CloseCache(t, c)
	ringtest.CompressAll(c)
	require.EqualValues(t, 1, ringtest.CountPacked(c))
	got, ok := c.Peek(nil, k)
	require.True(t, ok)
	require.Equal(t, v, got)
	m.Pass(time.Hour)
	require.Equal(t, 1, c.DeleteExpired())
	require.Equal(t, 1, told)
}
