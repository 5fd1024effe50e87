package persist

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// fullDisk returns a folder with room for n bytes: a separate file system or, without the rights
// to mount one, a folder of any with a limit on the size of files.
func fullDisk(t *testing.T, n uint64) string {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", n)); err == nil {
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		return dir
	}
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	limit := old
	limit.Cur = n
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	return dir
}

// Where the disk is full, the cache goes on as a smaller one, also when it is opened again.
func TestFile_FullDisk(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) {
		return
	}
	path := filepath.Join(fullDisk(t, 40<<20), "cache")
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 128 << 20, File: path})
	require.NoError(t, err)
	ringtest.FillLimited(t, c, 40<<20)
	require.NoError(t, ringtest.Validate(c))
	n := c.Len()
	require.NoError(t, c.Close())
	c, err = ringcache.NewWithOptions(ringcache.Options{MaxBytes: 128 << 20, File: path})
	require.NoError(t, err)
	require.Equal(t, n, c.Len())
	for id := range uint32(40_000) { // of another length
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, 3000)))
		require.True(t, c.Has(ringtest.TrafficKey(nil, id)))
	}
	require.InEpsilon(t, 40<<20, c.Stats().EffectiveMaxBytes, 0.1)
	require.NoError(t, ringtest.Validate(c))
	require.NoError(t, c.Close())
}

func TestFile_FullDiskAtNew(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	dir := fullDisk(t, 32<<10)
	_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 20,
		File: filepath.Join(dir, "cache")})
	require.ErrorIs(t, err, ringcache.ErrNoMemory)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(entries), 1)
}
