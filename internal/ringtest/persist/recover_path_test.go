//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// Which files a cache opens, makes, replaces and removes, and which it leaves alone.

// openError opens a cache and returns the error.
func openError(t *testing.T, path string) error {
	t.Helper()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: path})
	if err == nil {
		require.NoError(t, c.Close())
		require.Fail(t, "opened", path)
	}
	require.ErrorContains(t, err, "ringcache: ")
	return err
}

// listDir returns the names in a directory.
func listDir(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// openPacked opens a cache with a cold part and a first dictionary.
func openPacked(t *testing.T, path string) *ringtest.PackedCache {
	t.Helper()
	g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), ringtest.FlateCompressor{})
	g.ByHand = true
	return &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path), Size: 300}
}

// A relative path means what it does when the cache is made.
func TestFile_WorkingDirectoryChanges(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	t.Chdir(one)
	p := openPacked(t, "cache")
	t.Chdir(two)
	p.MakeDict(t)
	require.NoError(t, p.Close())
	require.Equal(t, []string{"cache", "cache.dict"}, listDir(t, one))
	t.Chdir(one)
	require.Empty(t, listDir(t, two))
}

// Options.File may be a link to a file that is missing, as one in /dev/shm is after a reboot. Its
// names and dictionaries are stored in the directory of that file, not of the link.
func TestFile_LinkToAMissingFile(t *testing.T) {
	dir, there := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(there, "cache"), link))
	for _, want := range []bool{false, true} {
		c := ringtest.OpenFile(t, link, 1<<20)
		require.Equal(t, want, c.Namespace("n").Has([]byte("k")))
		require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
		require.NoError(t, c.Close())
		require.Equal(t, []string{"link"}, listDir(t, dir))
		require.Equal(t, []string{"cache", "cache.names"}, listDir(t, there))
	}
}

// A bound that Resize would refuse is refused, and the file stays as it is.
func TestFile_BoundBelowTheSmallest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.OpenFile(t, path, 1<<30)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.NoError(t, c.Close())
	err := openError(t, path)
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	require.ErrorContains(t, err, "33554432")
	require.ErrorContains(t, err, "134217728")
	c = ringtest.OpenFile(t, path, 128<<20)
	require.Equal(t, "v", string(c.Get(nil, []byte("k"))))
	require.ErrorIs(t, c.Resize(128<<20-1), ringcache.ErrInvalidOptions)
	require.NoError(t, c.Close())
}

// A file keeps the secret of its cache, which tells nothing of that of other caches.
func TestFile_HasItsOwnSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c, other := ringtest.OpenFile(t, path, 32<<20), ringtest.OpenFile(t, path+"2", 32<<20)
	seed := ringtest.Shared(c).Seed
	require.NotEqual(t, ringtest.Default(ringtest.MinBytes).Seed, seed)
	require.NotEqual(t, ringtest.Shared(other).Seed, seed)
	require.NoError(t, errors.Join(c.Close(), other.Close()))
	c = ringtest.OpenFile(t, path, 32<<20)
	require.Equal(t, seed, ringtest.Shared(c).Seed)
	require.NoError(t, c.Close())
}

func TestFile_OwnerAndMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	p := openPacked(t, path)
	p.MakeDict(t)
	require.NoError(t, p.Close())
	for _, name := range []string{path, path + ".dict"} {
		require.NoError(t, os.Chmod(name, 0o666))
	}
	require.NoError(t, openPacked(t, path).Close())
	for _, name := range []string{path, path + ".dict"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
	}
	if os.Geteuid() != 0 {
		return // it takes root to give a file to another user
	}
	require.NoError(t, os.Chown(path, 12345, -1))
	err := openError(t, path)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "its owner is user 12345")
	require.NotErrorIs(t, err, ringcache.ErrCorrupt)
}

// Something else in place of the file of dictionaries is an error, which harms nothing: without
// a Compressor all is there.
func TestFile_NoDictionariesOfOurs(t *testing.T) {
	file := func(text string) func(string) error {
		return func(dict string) error { return os.WriteFile(dict, []byte(text), 0o600) }
	}
	link := func(to string) func(string) error {
		return func(dict string) error { return os.Symlink(to, dict) }
	}
	pipe := func(dict string) error { return syscall.Mkfifo(dict, 0o600) }
	directory := func(dict string) error { return os.Mkdir(dict, 0o700) }
	for name, tt := range map[string]struct {
		make func(dict string) error
		want error
		text string
	}{
		"somebody's": {file("words\n"), ringcache.ErrCorrupt, ""},
		"pipe":       {pipe, nil, "not a regular file: p"},
		"device":     {link("/dev/zero"), nil, "not a regular file: D"},
		"directory":  {directory, nil, "not a regular file: d"},
		"cannot be":  {link("missing/dict"), fs.ErrNotExist, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			require.NoError(t, tt.make(path+".dict"))
			g := ringtest.Tiny(1, 1024, 256)
			c := ringtest.MustOpen(t, g, path)
			require.NoError(t, c.Set([]byte("k"), []byte("v")))
			require.NoError(t, c.Close())
			before, err := os.Lstat(path + ".dict")
			for range 2 {
				with := ringtest.WithCold(g, ringtest.FlateCompressor{})
				with.ByHand = true
				_, err := ringtest.Open(with, path)
				require.Error(t, err)
				if tt.want != nil {
					require.ErrorIs(t, err, tt.want)
				}
				require.ErrorContains(t, err, tt.text)
				require.ErrorContains(t, err, path+".dict")
			}
			if err == nil {
				after, err := os.Lstat(path + ".dict")
				require.NoError(t, err)
				require.Equal(t, before.Mode(), after.Mode())
				require.Equal(t, before.Size(), after.Size())
			}
			requireClosedCleanly(t, path)
			c = ringtest.MustOpen(t, g, path)
			require.True(t, c.Has([]byte("k")))
			require.NoError(t, c.Close())
		})
	}
}

// Something else in place of the file of namespaces is an error too, and is left as it is.
func TestFile_NoNamesOfOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	names, k := path+".names", []byte("k")
	g := ringtest.Tiny(1, 1024, 256)
	c := ringtest.MustOpen(t, g, path)
	require.NoError(t, c.Set(k, []byte("v")))
	require.NoError(t, c.Close())
	require.NoFileExists(t, names, "without namespaces there is none")
	for text, place := range map[string]func() error{
		"of another kind":       func() error { return os.WriteFile(names, []byte("a\n"), 0o644) },
		"not a regular file: p": func() error { return syscall.Mkfifo(names, 0o644) },
		"not a regular file: d": func() error { return os.Mkdir(names, 0o755) },
		"no such file":          func() error { return os.Symlink("missing/names", names) },
	} {
		require.NoError(t, place())
		before, err := os.Lstat(names)
		require.NoError(t, err)
		_, err = ringtest.Open(g, path)
		require.ErrorContains(t, err, names)
		require.ErrorContains(t, err, text)
		after, err := os.Lstat(names)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
		require.Equal(t, before.ModTime(), after.ModTime())
		require.NoError(t, os.Remove(names))
	}
	c = ringtest.MustOpen(t, g, path)
	require.True(t, c.Has(k))
	require.NoError(t, c.Close())
}

// If a crash has left .names and .dict blank, or with incomplete headers, they count as empty, and
// entries that need neither are found.
func TestFile_BlankFilesBeside(t *testing.T) {
	for _, text := range []string{"", "ring", strings.Repeat("\x00", 200)} {
		path := filepath.Join(t.TempDir(), "cache")
		p := openPacked(t, path)
		p.MakeDict(t)
		k := []byte("k")
		require.NoError(t, p.Set(k, []byte("v")))
		require.NoError(t, p.Namespace("n").Set(k, []byte("v")))
		require.NoError(t, p.Close())
		for _, name := range []string{path + ".names", path + ".dict"} {
			require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
			require.Error(t, ringcache.New(256<<10).SaveToFile(name))
		}
		p = openPacked(t, path)
		require.True(t, p.Has(k))
		require.False(t, p.Namespace("n").Has(k))
		require.NoError(t, p.Namespace("n").Set(k, []byte("v")))
		require.NoError(t, ringtest.Validate(p.Cache))
		require.NoError(t, p.Close())
		p = openPacked(t, path)
		require.True(t, p.Namespace("n").Has(k))
		require.NoError(t, p.Close())
	}
}

// Options.File may be as long as the system allows for a name with the suffix .names.
func TestFile_LongName(t *testing.T) {
	dir := t.TempDir()
	o := ringcache.Options{MaxBytes: 256 << 10, File: filepath.Join(dir, strings.Repeat("n", 250))}
	_, err := ringcache.NewWithOptions(o)
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	require.ErrorContains(t, err, "File has a name of 250 bytes, must have at most 249")
	require.Empty(t, listDir(t, dir))
	o.File = o.File[:len(o.File)-1]
	c, err := ringcache.NewWithOptions(o)
	require.NoError(t, err)
	require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
	require.NoError(t, c.Close())
	require.Len(t, listDir(t, dir), 2)
}

// The namespaces of a file that is emptied, because it has another version, are gone for good.
func TestFile_AnotherVersionHasNoNamespaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for version, want := range []int{0, 1, 1, 0, 0} {
		c, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: 256 << 10, File: path, Version: uint64(version / 3)})
		require.NoError(t, err)
		require.Len(t, maps.Collect(c.Namespaces()), want, "%d", version)
		if version == 0 {
			require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
		}
		require.NoError(t, c.Close())
	}
}

// SaveToFile does not replace the files of a cache, its own or those of another that may be in use
// or be opened again, under whatever name.
func TestSave_NotOverFilesOfACache(t *testing.T) {
	dir := t.TempDir()
	path, link, hard := dir+"/cache", dir+"/link", dir+"/hard"
	require.NoError(t, os.Symlink("cache", link))
	require.NoError(t, os.Mkdir(dir+"/sub", 0o700))
	k := []byte("k")
	open := func() *ringcache.Cache {
		c, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: 1 << 20, File: path, Compressor: ringtest.FlateCompressor{}})
		require.NoError(t, err)
		return c
	}
	own := open()
	require.NoError(t, own.Namespace("n").Set(k, []byte("v")))
	require.NoError(t, os.Link(path, hard))
	other := ringcache.New(1 << 20)
	defer ringtest.CloseCache(t, other)
	refuses := func(c *ringcache.Cache) {
		for _, to := range []string{path, path + ".names", path + ".dict", link, hard,
			dir + "/sub/../cache", dir + "//cache.names"} {
			err := c.SaveToFile(to)
			require.ErrorContains(t, err, "Options.File", to)
			require.ErrorContains(t, err, to)
		}
	}
	refuses(own)
	refuses(other)
	require.Equal(t, []string{"cache", "cache.dict", "cache.names", "hard", "link", "sub"},
		listDir(t, dir))
	for _, to := range []string{path + ".snapshot", path + "2", dir + "/sub/cache"} {
		require.NoError(t, own.SaveToFile(to))
		require.NoError(t, other.SaveToFile(to), "over a snapshot")
	}
	require.NoError(t, own.Close())
	refuses(other)
	own = open()
	require.True(t, own.Namespace("n").Has(k))
	require.NoError(t, own.Close())
	require.NoError(t, os.Remove(path+".names")) // as before there are namespaces
	refuses(other)
	require.NoFileExists(t, path+".names")
	require.NoError(t, os.WriteFile(path, []byte("ring"), 0o600)) // of nobody
	require.NoError(t, other.SaveToFile(path))
	require.NoError(t, other.SaveToFile(path+".names"))
}

// anotherBoot is not the ID of the boot of this machine.
const anotherBoot = 1

// A file that is refused, for whatever reason, is unchanged: bytes, permissions and time.
func TestFile_RefusedIsUnchanged(t *testing.T) {
	g := ringtest.Tiny(1, 1024, 256)
	packed := ringtest.WithCold(g, ringtest.FlateCompressor{})
	smaller := g
	smaller.MaxBytes = 1024
	for name, tt := range map[string]struct {
		g     ringtest.Shape
		spoil func(path string) error
	}{
		"foreign": {g, func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("words\n", 20_000)), 0o600)
		}},
		"foreign dictionaries": {packed, func(path string) error {
			return os.WriteFile(path+".dict", []byte("words\n"), 0o600)
		}},
		"too small a bound": {smaller, func(string) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			c := ringtest.MustOpen(t, g, path)
			require.NoError(t, c.Set([]byte("k"), []byte("v")))
			require.NoError(t, c.Close())
			require.NoError(t, tt.spoil(path))
			require.NoError(t, os.Chmod(path, 0o644))
			old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			require.NoError(t, os.Chtimes(path, old, old))
			bytes := ringtest.ReadFile(t, path)
			_, err := ringtest.Open(tt.g, path)
			require.Error(t, err)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
			require.True(t, old.Equal(info.ModTime()))
			require.Equal(t, bytes, ringtest.ReadFile(t, path))
		})
	}
	dir := filepath.Join(t.TempDir(), "directory") + "/"
	require.Error(t, openError(t, dir))
	require.NoFileExists(t, filepath.Clean(dir))
}

// requireClosedCleanly fails unless a file would be found whole after the machine was started
// anew.
func requireClosedCleanly(t *testing.T, path string) {
	t.Helper()
	head := make([]byte, ringfile.HeadSize)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = io.ReadFull(f, head)
	require.NoError(t, err)
	require.True(t, ringfile.New(head, 1024, nil).IsSound(anotherBoot))
}

// Only a regular file is replaced by a snapshot, or read as one; a pipe keeps nobody waiting.
func TestSnapshot_OnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	pipe, file, link := in("pipe"), in("file"), in("link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	require.NoError(t, os.Symlink("file", link))
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	for _, path := range []string{pipe, dir} {
		before, err := os.Lstat(path)
		require.NoError(t, err)
		require.ErrorContains(t, c.SaveToFile(path), "not a regular file", path)
		after, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
		_, err = ringcache.LoadFromFile(path)
		require.ErrorContains(t, err, "not a regular file", path)
		d, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: ringtest.MinBytes})
		require.ErrorContains(t, report.Err, "not a regular file", path)
		require.Zero(t, d.Len())
	}
	_, err := ringcache.LoadFromFile(os.DevNull) // saving to it would be a risk if this failed
	require.ErrorContains(t, err, "not a regular file: D")
	require.NoError(t, c.SaveToFile(link))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink)
	require.Equal(t, 1, ringtest.MustLoad(t, file).Len())
	require.Equal(t, []string{"file", "link", "pipe"}, listDir(t, dir))
}

// idleReader returns nothing and no error, which a reader may do.
type idleReader struct{ left string }

func (r *idleReader) Read(b []byte) (int, error) {
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

func TestSnapshot_ReaderThatReturnsNothing(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	require.NoError(t, c.Set([]byte("k"), make([]byte, 100)))
	whole, _ := ringtest.SnapshotOf(t, c)
	for n := range len(whole) {
		read, err := ringtest.MustCache(t,
			ringtest.Tiny(1, 1024, 64)).ReadSnapshot(&idleReader{string(whole[:n])})
		require.ErrorIs(t, err, io.ErrNoProgress, "after %d bytes", n)
		require.EqualValues(t, n, read)
	}
	_, err := ringtest.MustCache(t,
		ringtest.Tiny(1, 1024, 64)).ReadSnapshot(&idleReader{string(whole)})
	require.NoError(t, err)
}

// A closed cache can neither store nor delete: its file has what it had at Close.
func TestFile_ClosedCacheCannotDelete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.OpenFile(t, path, 32<<20)
	for i := range 2 {
		require.NoError(t, c.Set(fmt.Appendf(nil, "key %d", i), []byte("old")))
	}
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Set([]byte("key 0"), []byte("new")), ringcache.ErrClosed)
	require.False(t, c.Del([]byte("key 1")))
	c = ringtest.OpenFile(t, path, 32<<20)
	for i := range 2 {
		require.Equal(t, "old", string(c.Get(nil, fmt.Appendf(nil, "key %d", i))))
	}
	require.NoError(t, c.Close())
}

// A packed record whose checksum is right may claim any length. One that the cache could not hold
// is dropped: no lookup allocates that much.
func TestFile_PackedRecordClaimsALength(t *testing.T) {
	path, k := filepath.Join(t.TempDir(), "cache"), []byte("k")
	for _, n := range []uint64{500, 100 << 10, 16 << 20, 1 << 40} {
		p := openPacked(t, path)
		p.FillPacked(t, 3000) // the first that the policy drops find no cold part yet
		p.SetPacked(t, k, func() error { return p.Set(k, ringtest.Text(1, 500)) })
		bound := uint64(ringtest.Shared(p.Cache).Bound())
		_, h := ringtest.KeyOf(p.Cache, k)
		b := ringtest.BucketOf(p.Cache, h)
		b.Lock()
		var f store.Found
		require.True(t, b.Find(&f, k, h))
		const lengthAt = 5
		f.Ring.Write(f.Pos+uint64(f.Size+f.KeyLen+lengthAt), binary.AppendUvarint(nil, n))
		f.Ring.WriteSum(f.Pos)
		b.Unlock()
		ringtest.Abandon(p.Cache)

		p = openPacked(t, path)
		require.NoError(t, ringtest.Validate(p.Cache))
		var v []byte
		allocated := ringtest.Allocated(func() { v = p.Get(nil, k) })
		require.Less(t, allocated, bound+1<<20, "%d bytes", n) // with the Compressor's own
		require.Equal(t, n == 500, v != nil, "%d bytes", n)
		ringtest.Abandon(p.Cache)
	}
}
