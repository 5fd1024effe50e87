package system

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Options.File on a tmpfs that has less room than the cache may take, as /dev/shm has in a
// container.

// mustOpenSmall returns a cache in a file of a folder.
func mustOpenSmall(t *testing.T, maxBytes int, dir string) *ringcache.Cache {
	t.Helper()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes,
		File: filepath.Join(dir, "cache")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// writeRounds sets the same keys round after round, each time with other lengths, and
// returns what part of the last round is found.
func writeRounds(t *testing.T, c *ringcache.Cache, rounds, keys, least, most int) float64 {
	t.Helper()
	rnd, val, key := ringtest.NewRand(1), make([]byte, most), make([]byte, 8)
	found := 0
	for range rounds {
		found = 0
		for id := range keys {
			binary.LittleEndian.PutUint64(key, uint64(id))
			if err := c.Set(key, val[:least+rnd.IntN(most-least+1)]); err != nil {
				require.NoError(t, err)
			}
		}
		for id := range keys {
			binary.LittleEndian.PutUint64(key, uint64(id))
			if c.Has(key) {
				found++
			}
		}
	}
	return float64(found) / float64(keys)
}

// A working set that fits into what there is stays, whatever is dead beside it.
func TestTmpfs_SmallerThanTheBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ disk, maxMB, keys int }{
		{64, 1 << 10, 20_000}, {64, 64, 20_000}, {120, 200, 60_000},
	} {
		t.Run(fmt.Sprintf("%d of %d MB", tt.disk, tt.maxMB), func(t *testing.T) {
			c := mustOpenSmall(t, tt.maxMB<<20, ringtest.MountTmpfs(t, tt.disk))
			found := writeRounds(t, c, 8, tt.keys, 500, 1500)
			require.Greater(t, found, 0.98)
			require.Zero(t, c.Stats().Refused.NoMemory)
			require.NoError(t, ringtest.Validate(c))
		})
	}
}

// A working set that does not fit: the hit ratio stays what it was.
func TestTmpfs_HitRatioStays(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	c := mustOpenSmall(t, 256<<20, ringtest.MountTmpfs(t, 50))
	zipf := rand.NewZipf(ringtest.NewRand(1), 1.1, 10, 1<<20)
	key, val := make([]byte, 8), make([]byte, 2000)
	var first, last float64
	for range 12 {
		before := c.Stats()
		for range 33_000 {
			id := zipf.Uint64()
			binary.LittleEndian.PutUint64(key, id)
			if !c.Has(key) {
				if err := c.Set(key, val[:500+id%1500]); err != nil {
					require.NoError(t, err)
				}
			}
		}
		last = c.Stats().Sub(before).HitRatio()
		if first == 0 {
			first = last
		}
	}
	s := c.Stats()
	require.Less(t, s.EffectiveMaxBytes, s.MaxBytesSize, "it was never full")
	require.Greater(t, last, 0.98*first, "after %.3f", first)
}

// A value that is refused keeps none of the memory that it was given before, nor does a load end
// there.
func TestTmpfs_RefusedLargeValue(t *testing.T) {
	t.Parallel()
	const disk, maxMB, keys = 24, 256, 15_000
	big := make([]byte, maxMB<<20/16)
	fill := func(c *ringcache.Cache, from, to int) {
		for id := from; id < to; id++ {
			require.NoError(t, c.Set(fmt.Append(nil, id), big[:1000]))
		}
	}
	c := mustOpenSmall(t, maxMB<<20, ringtest.MountTmpfs(t, disk))
	fill(c, 0, 9000)
	require.ErrorIs(t, c.Set([]byte("big"), big), ringcache.ErrNoMemory)
	require.Equal(t, 9000, c.Len())
	fill(c, 0, keys)
	fill(c, 0, keys)
	require.Equal(t, keys, c.Len())
	require.NoError(t, ringtest.Validate(c))

	whole := ringtest.MustCache(t, ringtest.Default(maxMB<<20))
	fill(whole, 0, 9000)
	require.NoError(t, whole.Set([]byte("big"), big))
	fill(whole, 9000, keys)
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, whole.SaveToFile(path))
	loaded, report, err := ringcache.Load(path, ringcache.Options{MaxBytes: maxMB << 20,
		File: filepath.Join(ringtest.MountTmpfs(t, disk), "cache")})
	require.NoError(t, err)
	defer ringtest.CloseCache(t, loaded)
	require.NoError(t, report.Err)
	require.Equal(t, keys, loaded.Len())
}

// The cache grows to its bound once the file system does.
func TestTmpfs_Grows(t *testing.T) {
	t.Parallel()
	dir := ringtest.MountTmpfs(t, 32)
	c := mustOpenSmall(t, 100_000_000, dir) // no whole number of chunks
	ringtest.FillLimited(t, c, 32<<20)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, ringtest.TmpfsSize(150)))
	requireGrowsBack(t, c)
}

// A tmpfs without a limit reports no blocks, which is not to say that it is full.
func TestTmpfs_WithoutALimit(t *testing.T) {
	dir := ringtest.MountTmpfs(t, 0)
	c := mustOpenSmall(t, 32<<20, dir)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.Equal(t, "v", string(c.Get(nil, []byte("k"))))
}

// A cache that gets a sixteenth of its bound is as good as one made with that.
func TestTmpfs_ASixteenthOfTheBound(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 4} {
		found := map[string]int{}
		for name, c := range map[string]*ringcache.Cache{
			"file":   mustOpenSmall(t, 16*size<<20, ringtest.MountTmpfs(t, size)),
			"memory": ringcache.New(size << 20),
		} {
			value := make([]byte, 2000)
			for id := range uint32(size << 10) {
				require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), value))
			}
			found[name] = c.Len()
		}
		require.Greater(t, float64(found["file"]), .9*float64(found["memory"]), "%d MB", size)
	}
}

// A disk that others fill before the first Set: no refused Set looks for memory in other buckets,
// which have none. Once there is room, records of each size are stored.
func TestTmpfs_FilledByOthers(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 20_000, 3_000_000} {
		dir := ringtest.MountTmpfs(t, 128)
		c := mustOpenSmall(t, 64<<20, dir)
		ringtest.FillDisk(t, dir)
		v := make([]byte, size)
		for id := range uint32(2000) {
			require.ErrorIs(t, c.Set(ringtest.TrafficKey(nil, id), v), ringcache.ErrNoMemory)
		}
		require.Zero(t, ringtest.Shared(c).Hand.Load(), "buckets asked, values of %d bytes", size)
		require.Equal(t, uint64(2000), c.Stats().Refused.NoMemory)
		require.NoError(t, os.Remove(filepath.Join(dir, "another")))
		for id := range uint32(min(2000, 256<<20/size)) {
			_ = c.Set(ringtest.TrafficKey(nil, id), v)
		}
		require.NoError(t, c.Set([]byte("last"), v), "values of %d bytes", size)
		require.NoError(t, ringtest.Validate(c))
	}
}
