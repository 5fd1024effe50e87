package system

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// With Options.File the memory of records, which is the file's, and that of the index, which
// is not, are within the bound together.

// requireWithinBound checks that what the file of a cache takes of its file system, together with
// the index, is no more than the bound, the file's head and its directories, and extent bytes for
// each chunk.
func requireWithinBound(t *testing.T, c *ringcache.Cache, path string, extent int) {
	t.Helper()
	require.NoError(t, ringtest.Validate(c))
	s := ringtest.Shared(c)
	length, held := ringtest.OnDisk(t, path)
	index, chunks := s.Pool.PageBytes(), chunksInFile(s)
	bound, besides := s.Bound(), int(length)-chunks*s.Pool.ChunkSize()+chunks*extent
	const in = "%d in the file, %d in the index; %d are allowed besides the bound"
	require.LessOrEqual(t, int(held)+index, bound+besides, in, held, index, besides)
	require.GreaterOrEqual(t, int(held)+index, bound*3/4, in, held, index, besides)
}

// chunksInFile returns the number of chunks in the file, those without disk space included.
func chunksInFile(s *store.Shared) int {
	held, free := s.File.Rings.Chunks()
	n := len(free)
	for _, chunks := range held {
		n += len(chunks)
	}
	return n
}

// setUntilEvicted sets new keys with values of n bytes until the cache has turned over.
func setUntilEvicted(t *testing.T, c *ringcache.Cache, keyLen, n int) {
	t.Helper()
	key, value := make([]byte, keyLen), make([]byte, n)
	for id := range uint32(ringtest.Shared(c).Bound() * 5 / 4 / (keyLen + n + 8)) {
		binary.LittleEndian.PutUint32(key, id)
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
	require.NotZero(t, c.Stats().EvictedEntries)
}

func TestFile_IsWithinTheBound(t *testing.T) {
	t.Parallel()
	t.Run("tmpfs", func(t *testing.T) { fillWithinBound(t, ringtest.MountTmpfs(t, 96), 0) })

	// The page cache of an ext4 has large folios. If one covers a hole and a chunk in use, a write
	// to the chunk fills the hole too. Its extents take 12 bytes each, in blocks that are at least
	// half full; between holes, each chunk may have its own.
	t.Run("ext4", func(t *testing.T) { fillWithinBound(t, dirOnExt4(t), 2*12) })
}

// fillWithinBound fills a cache in a file in dir with large entries, with small ones, which need
// a larger index, and with large ones again.
func fillWithinBound(t *testing.T, dir string, extent int) {
	bound := 16 << 20
	if *ringtest.LongRun {
		bound = 64 << 20
	}
	path := filepath.Join(dir, "cache")
	c := ringtest.OpenFile(t, path, bound)
	for _, n := range []int{1000, 28, 1000} {
		setUntilEvicted(t, c, 4, n)
		requireWithinBound(t, c, path, extent)
	}
	require.NoError(t, c.Close())
}

// dirOnExt4 returns a folder on an ext4, or skips the test.
func dirOnExt4(t *testing.T) string {
	t.Helper()
	if !chunk.OffHeap {
		t.Skip("this build has no Options.File")
	}
	dir := t.TempDir()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if int64(fs.Type) != unix.EXT4_SUPER_MAGIC {
		t.Skip("the folder for temporary files is not on an ext4")
	}
	return dir
}

func TestFile_IsWithinAnotherBound(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) { // a 32-bit process that has run other tests may lack addresses
		return
	}
	large, small := 40<<20, 16<<20
	if *ringtest.LongRun {
		large, small = 160<<20, 64<<20
	}
	path := filepath.Join(ringtest.MountTmpfs(t, 256), "cache")
	c := ringtest.OpenFile(t, path, large)
	setUntilEvicted(t, c, 8, 1000)
	ringtest.MustResize(t, c, small)
	requireWithinBound(t, c, path, 0)
	ringtest.MustResize(t, c, large)
	setUntilEvicted(t, c, 8, 1000)
	requireWithinBound(t, c, path, 0)
	require.NoError(t, c.Close())
	for range 2 {
		c = ringtest.OpenFile(t, path, small)
		requireWithinBound(t, c, path, 0)
		require.NoError(t, c.Close())
	}
	c = ringtest.OpenFile(t, path, small)
	setUntilEvicted(t, c, 8, 1000)
	requireWithinBound(t, c, path, 0)
	require.NoError(t, c.Close())
}

// A full file system that refuses the place which the cache has given back makes a smaller
// cache; writes and reads of chunks that have none are no signals.
func TestFile_GivenBackAndTakenByOthers(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) {
		return
	}
	const large, small = 96 << 20, 32 << 20
	dir := ringtest.MountTmpfs(t, 128)
	path := filepath.Join(dir, "cache")
	c := ringtest.OpenFile(t, path, large)
	ringtest.WriteAll(t, c)
	var refs []func() byte
	for i := range ringtest.Shared(c).Buckets {
		for _, r := range ringtest.Nth(c, i).Rings[0].Chunks() {
			refs = append(refs, func() byte { return r.Bytes(0, 1)[0] })
		}
		for _, r := range ringtest.Nth(c, i).Rings[1].Chunks() {
			refs = append(refs, func() byte { return r.Bytes(0, 1)[0] })
		}
	}
	ringtest.MustResize(t, c, small)
	ringtest.FillDisk(t, dir)
	for _, read := range refs { // as a reader may that was stopped at the wrong moment
		read()
	}
	ringtest.MustResize(t, c, large)
	ringtest.WriteAll(t, c)
	s := c.Stats()
	require.Less(t, s.EffectiveMaxBytes, uint64(large/2))
	require.Zero(t, s.Refused.NoMemory)
	require.NoError(t, c.Close())

	c = ringtest.OpenFile(t, path, large)
	ringtest.WriteAll(t, c)
	require.NoError(t, os.Remove(filepath.Join(dir, "another")))
	requireGrowsBack(t, c)
	require.NoError(t, c.Close())
}
