package ringtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringfile"
)

// MountTmpfs returns a folder with room for so many megabytes.
func MountTmpfs(t *testing.T, megabytes int) string {
	t.Helper()
	if !chunk.OffHeap {
		t.Skip("this build has no Options.File")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, TmpfsSize(megabytes)); err != nil {
		t.Skipf("mounting a tmpfs is not permitted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// FillDisk writes a file until the disk has room for little more than a head.
func FillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "another"))
	require.NoError(t, err)
	defer f.Close()
	for b := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(b)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	info, err := f.Stat()
	require.NoError(t, err)
	require.NoError(t, f.Truncate(info.Size()-2*ringfile.HeadSize))
}

// OnDisk returns the length of a file, and how much of that has its place on the disk.
func OnDisk(t *testing.T, path string) (length, held int64) {
	t.Helper()
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(path, &stat))
	return stat.Size, stat.Blocks * 512
}

// WriteAll writes to every chunk that the cache can get.
func WriteAll(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	value := bytes.Repeat([]byte{1}, 4000)
	for id := range uint32(2 * Shared(c).Bound() / len(value)) {
		require.NoError(t, c.Set(TrafficKey(nil, id), value))
	}
	require.NoError(t, Validate(c))
}

// TmpfsSize returns the mount option for a size.
func TmpfsSize(megabytes int) string { return fmt.Sprintf("size=%dm", megabytes) }
