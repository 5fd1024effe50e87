package ringfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A chunk that was given back, but could not be made a hole, still has its disk space: it can be
// used again on a full disk. One that is a hole cannot.
func TestStore_FullDiskAndChunksGivenBack(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs is not permitted here: %v", err)
	}
	defer func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	f, h, err := Open(filepath.Join(dir, "cache"), 1, freshHeader())
	require.NoError(t, err)
	size := 4 * unix.Getpagesize()
	h.ChunkSize = uint32(size)
	require.NoError(t, f.Use(&h))
	defer f.Release()
	chunks, err := f.Rings.Map(4 * size)
	require.NoError(t, err)
	kept, hole := chunks[:size], chunks[2*size:3*size]
	require.True(t, f.dropChunk(hole))

	require.NoError(t, hide(kept, unix.PROT_READ)) // as dropChunk does if there is no hole
	f.holes.hidden[f.offset(kept)/int64(size)] = true
	f.holes.count(1)

	another, err := os.Create(filepath.Join(dir, "another"))
	require.NoError(t, err)
	defer another.Close()
	for b := make([]byte, unix.Getpagesize()); err == nil; {
		_, err = another.Write(b)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorIs(t, f.fillChunk(hole), unix.ENOSPC)
	require.NoError(t, f.fillChunk(kept))
	kept[0] = 1
}
