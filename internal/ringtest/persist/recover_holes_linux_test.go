package persist

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A page of the file that has no place on the disk is a signal when it is written and the disk
// is full by then.

// copySparse copies a file without those blocks of zeros for whose offset omit returns true. If it
// always does, the copy is one as by cp --sparse=always, and backups.
func copySparse(t *testing.T, from, to string, block int, omit func(off int64) bool) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close()
	b, zeros := make([]byte, block), make([]byte, block)
	for off := int64(0); ; off += int64(len(b)) {
		n, err := in.ReadAt(b, off)
		if !bytes.Equal(b[:n], zeros[:n]) || !omit(off) {
			_, err := out.WriteAt(b[:n], off)
			require.NoError(t, err)
		}
		if err == io.EOF {
			require.NoError(t, out.Truncate(off+int64(n)))
			return
		}
		require.NoError(t, err)
	}
}

func always(int64) bool { return true }

// The shapes of caches of 4 and 32 MB whose chunks are smaller than pages of the system, as where
// these have 16 KB: a chunk cannot be a hole.
var smallChunks, manySmallChunks = ringtest.Tiny(64, 2048, 32), ringtest.Tiny(512, 2048, 32)

func TestFile_HolesAreMended(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "cache"), filepath.Join(dir, "copy")
	c := ringtest.MustOpen(t, smallChunks, path)
	ringtest.FillCache(t, c, 0, 1000, 100)
	require.NoError(t, c.Close())
	copySparse(t, path, copied, 4096, always)
	length, held := ringtest.OnDisk(t, copied)
	require.Less(t, held, length)
	c = ringtest.MustOpen(t, smallChunks, copied)
	require.Equal(t, 1000, c.Len())
	length, held = ringtest.OnDisk(t, copied)
	require.GreaterOrEqual(t, held, length)
	require.NoError(t, c.Close())
}

// Where the disk is full a file that has its place there is opened, and a copy with holes ends
// before them.
func TestFile_HolesOnAFullDisk(t *testing.T) {
	for name, sparse := range map[string]bool{"whole": false, "sparse": true} {
		t.Run(name, func(t *testing.T) {
			if !ringtest.InChild(t) {
				return
			}
			dir := ringtest.MountTmpfs(t, 128)
			path, copied := filepath.Join(t.TempDir(), "cache"), filepath.Join(dir, "cache")
			if !sparse {
				path = copied
			}
			c := ringtest.OpenFile(t, path, 32<<20)
			ringtest.FillCache(t, c, 0, 1000, 100)
			require.NoError(t, c.Close())
			if sparse {
				copySparse(t, path, copied, 4096, always)
			}
			ringtest.FillDisk(t, dir)
			c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: copied})
			require.NoError(t, err)
			if !sparse {
				require.Equal(t, 1000, c.Len())
			}
			if sparse { // or there would be no room for anything
				require.NoError(t, os.Remove(filepath.Join(dir, "another")))
			}
			ringtest.WriteAll(t, c)
			require.NoError(t, c.Close())
		})
	}
}

// skipWithout skips a test of a file system where it cannot be made and mounted.
func skipWithout(t *testing.T, mkfs string) {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("it makes file systems, and mounts them as root")
	}
	if _, err := exec.LookPath(mkfs); err != nil {
		t.Skip(err)
	}
}

// mountNew makes and mounts a file system of 400 MB.
func mountNew(t *testing.T, mkfs string, options ...string) (dir string) {
	t.Helper()
	image := filepath.Join(ringtest.MountTmpfs(t, 400), "disk")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 400<<20))
	options = append(options, "-q", image)
	require.NoError(t, exec.Command(mkfs, options...).Run())
	dir, _ = mountImage(t, image)
	return dir
}

// On ext2, which cannot preallocate, blocks of 1,024 bytes may be holes within a page. A few of
// them are smaller than the file's indirect blocks, which stat counts too.
func TestFile_SmallHolesAreMended(t *testing.T) {
	few := func(off int64) bool { return 2<<20 <= off && off < 2<<20+8<<10 }
	for name, omit := range map[string]func(int64) bool{"all": always, "few": few} {
		t.Run(name, func(t *testing.T) {
			skipWithout(t, "mkfs.ext2")
			if !ringtest.InChild(t) {
				return
			}
			dir := mountNew(t, "mkfs.ext2", "-b", "1024")
			path, copied := filepath.Join(dir, "cache"), filepath.Join(dir, "copy")
			c := ringtest.MustOpen(t, smallChunks, path)
			for id := range uint32(500) {
				require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, 4000)))
			}
			n := c.Len()
			require.NoError(t, c.Close())
			_, whole := ringtest.OnDisk(t, path)
			copySparse(t, path, copied, 1024, omit)
			length, held := ringtest.OnDisk(t, copied)
			require.Less(t, held, whole)
			require.Equal(t, name == "few", held >= length)
			c = ringtest.MustOpen(t, smallChunks, copied)
			require.Equal(t, n, c.Len())
			_, held = ringtest.OnDisk(t, copied)
			require.GreaterOrEqual(t, held, whole)
			require.NoError(t, c.Close())
		})
	}
}

// Where the disk is full, a copy that shares its pages with another file has no separate space
// for them: it is not opened as if it had. A file that shares none is.
func TestFile_SharedPagesOnAFullDisk(t *testing.T) {
	skipWithout(t, "mkfs.xfs")
	if !ringtest.InChild(t) {
		return
	}
	dir := mountNew(t, "mkfs.xfs")
	first, path := filepath.Join(dir, "first"), filepath.Join(dir, "cache")
	copied := filepath.Join(dir, "copy")
	c := ringtest.OpenFile(t, first, 32<<20)
	ringtest.WriteAll(t, c)
	n := c.Len()
	require.NoError(t, c.Close())
	// What was never written would be a hole in the copy.
	runOrSkip(t, "cp", "--reflink=never", "--sparse=never", first, path)
	runOrSkip(t, "cp", "--reflink=always", path, copied)
	ringtest.FillDisk(t, dir)
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: copied})
	if err == nil {
		require.Less(t, c.Len(), n, "as if it had pages")
		for id := range uint32(2 * ringtest.Shared(c).Bound() / 4000) {
			_ = c.Set(ringtest.TrafficKey(nil, id), make([]byte, 4000))
		}
		require.NoError(t, c.Close())
	} else {
		require.ErrorIs(t, err, ringcache.ErrNoMemory)
	}

	require.NoError(t, os.Remove(copied))
	c = ringtest.OpenFile(t, path, 32<<20)
	require.Equal(t, n, c.Len())
	ringtest.WriteAll(t, c)
	require.NoError(t, c.Close())
}

// Where a written page takes a new place on the disk, a cache has its pages written in place: on
// btrfs, and in a copy of a file of XFS that shares them with the file.
func TestFile_CopyOnWriteOnAFullDisk(t *testing.T) {
	t.Parallel()
	for mkfs, reflink := range map[string]bool{"mkfs.btrfs": false, "mkfs.xfs": true} {
		t.Run(mkfs, func(t *testing.T) {
			skipWithout(t, mkfs)
			if !ringtest.InChild(t) {
				return
			}
			dir := mountNew(t, mkfs)
			path := filepath.Join(dir, "cache")
			c := ringtest.MustOpen(t, manySmallChunks, path)
			ringtest.WriteAll(t, c)
			require.NoError(t, c.Close())
			if reflink {
				runOrSkip(t, "cp", "--reflink=always", path, path+".copy")
				path += ".copy"
			}
			for range 2 {
				c = ringtest.MustOpen(t, manySmallChunks, path)
				ringtest.FillDisk(t, dir)
				ringtest.WriteAll(t, c)
				require.NoError(t, c.Close())
			}
		})
	}
}
