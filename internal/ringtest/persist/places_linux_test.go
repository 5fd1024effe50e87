package persist

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Where files of a cache may be, and what their directory, its file system and the process may not
// allow. Each error names the file and what the system answered, and changes nothing.

// bindMount mounts a file or a directory in another place as well.
func bindMount(t *testing.T, from, to string) {
	t.Helper()
	if !chunk.OffHeap {
		t.Skip("this build has no Options.File")
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(to, unix.MNT_DETACH)) })
}

// fileCache opens a cache with a dictionary file.
func fileCache(t *testing.T, path string) (*ringcache.Cache, error) {
	t.Helper()
	return ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, File: path,
		Compressor: ringtest.FlateCompressor{}})
}

// requireRefused fails unless an error names a file and what the system answered.
func requireRefused(t *testing.T, err error, errno unix.Errno, path string) {
	t.Helper()
	require.ErrorIs(t, err, errno)
	require.ErrorContains(t, err, "ringcache: ")
	require.ErrorContains(t, err, path)
}

// A directory that is mounted in two places has one file of a cache.
func TestFile_DirectoryMountedTwice(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	bindMount(t, one, two)
	c, err := fileCache(t, filepath.Join(one, "cache"))
	require.NoError(t, err)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	_, err = fileCache(t, filepath.Join(two, "cache"))
	require.ErrorIs(t, err, ringcache.ErrInUse)
	require.NoError(t, c.SaveToFile(filepath.Join(two, "snapshot")))
	require.NoError(t, c.Close())
	c, err = fileCache(t, filepath.Join(two, "cache"))
	require.NoError(t, err)
	require.True(t, c.Has([]byte("k")))
	require.NoError(t, c.Close())
	require.Equal(t, 1, ringtest.MustLoad(t, filepath.Join(one, "snapshot")).Len())
	require.Equal(t, []string{"cache", "cache.dict", "snapshot"}, listDir(t, one))
}

// A file that is mounted as such, as containers have it, can be opened, and not be replaced.
func TestFile_MountedAsSuch(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"cache", "snapshot", "other.dict"} {
		require.NoError(t, os.WriteFile(in(name), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(outside, name), nil, 0o600))
		bindMount(t, filepath.Join(outside, name), in(name))
	}
	for i := range 2 {
		c, err := fileCache(t, in("cache"))
		require.NoError(t, err)
		require.Equal(t, i, c.Len())
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
		requireRefused(t, c.SaveToFile(in("snapshot")), unix.EBUSY, in("snapshot"))
		require.NoError(t, c.Close())
	}
	require.Empty(t, ringtest.ReadFile(t, in("snapshot")))

	dict := ringtest.ReadFile(t, in("cache.dict"))
	require.NoError(t, os.WriteFile(in("other.dict"), dict, 0o600))
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, File: in("other"),
		Compressor: ringtest.NamedCompressor{Name: func() string { return "another" }}})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Contains(t, string(ringtest.ReadFile(t, in("other.dict"))), "another")
	require.Equal(t, []string{"cache", "cache.dict", "other", "other.dict", "snapshot"},
		listDir(t, dir))
}

// A file system that has no ordinary files refuses the ring file, and nothing is left there.
func TestFile_HugePagesFileSystem(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("this build has no Options.File")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "hugetlbfs", 0, ""); err != nil {
		t.Skipf("mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	path := filepath.Join(dir, "cache")
	_, err := fileCache(t, path)
	requireRefused(t, err, unix.EINVAL, path)
	require.Empty(t, listDir(t, dir))
}

// On a file system that cannot be written to, a file and its dictionaries are refused, and a
// snapshot can be read. Once it can be, all is there. It does not become read-only under a cache.
func TestFile_ReadOnlyFileSystem(t *testing.T) {
	dir := ringtest.MountTmpfs(t, 32)
	remount := func(flags uintptr) error {
		return unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")
	}
	path, saved := filepath.Join(dir, "cache"), filepath.Join(dir, "snapshot")
	c, err := fileCache(t, path)
	require.NoError(t, err)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.NoError(t, c.SaveToFile(saved))
	require.ErrorIs(t, remount(unix.MS_RDONLY), unix.EBUSY)
	require.NoError(t, c.Close())

	before := [2][]byte{ringtest.ReadFile(t, path), ringtest.ReadFile(t, saved)}
	require.NoError(t, remount(unix.MS_RDONLY))
	for _, name := range []string{path, filepath.Join(dir, "new")} {
		_, err = fileCache(t, name)
		requireRefused(t, err, unix.EROFS, name)
	}
	c = ringtest.MustLoad(t, saved)
	require.Equal(t, 1, c.Len())
	requireRefused(t, c.SaveToFile(saved), unix.EROFS, saved)
	requireRefused(t, c.SaveToFile(filepath.Join(dir, "a", "new")), unix.EROFS, "new")
	require.Equal(t, before, [2][]byte{ringtest.ReadFile(t, path), ringtest.ReadFile(t, saved)})

	require.NoError(t, remount(0))
	require.NoError(t, c.SaveToFile(saved))
	c, err = fileCache(t, path)
	require.NoError(t, err)
	require.True(t, c.Has([]byte("k")))
	require.NoError(t, c.Close())
	require.Equal(t, []string{"cache", "cache.dict", "snapshot"}, listDir(t, dir))
}

// A file system that becomes read-only by itself, after an error, takes no file from a cache: the
// cache goes on, and Close says that the file is not on the disk.
func TestFile_FileSystemBecomesReadOnly(t *testing.T) {
	skipWithout(t, "mkfs.ext4")
	if !ringtest.InChild(t) {
		return
	}
	dir := mountNew(t, "mkfs.ext4", "-e", "remount-ro")
	device, err := exec.Command("findmnt", "-no", "SOURCE", dir).Output()
	require.NoError(t, err)
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(device))),
		"trigger_fs_error")
	path, saved := filepath.Join(dir, "cache"), filepath.Join(dir, "snapshot")
	c := ringtest.OpenFile(t, path, 32<<20)
	ringtest.FillCache(t, c, 0, 10_000, 1000)
	require.NoError(t, c.SaveToFile(saved))
	if err := os.WriteFile(trigger, []byte("1"), 0); err != nil {
		t.Skip(err)
	}
	ringtest.FillCache(t, c, 0, 20_000, 1000)
	require.Equal(t, 20_000, c.Len())
	require.NoError(t, c.Resize(16<<20))
	require.NoError(t, c.Resize(32<<20))
	ringtest.WriteAll(t, c)
	require.NoError(t, ringtest.Validate(c))
	requireRefused(t, c.SaveToFile(saved), unix.EROFS, saved)
	requireRefused(t, c.Close(), unix.EROFS, path)
	_, err = ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: path})
	requireRefused(t, err, unix.EROFS, path)
	require.Equal(t, 10_000, ringtest.MustLoad(t, saved).Len())
}

// dirOfUser returns a directory of a user that files do not obey, unlike root, and lets the process
// be that user until the test ends.
func dirOfUser(t *testing.T) string {
	t.Helper()
	dir := ringtest.DirInMemory(t)
	const user = 12345
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, user, user))
		require.NoError(t, unix.Setresuid(user, user, 0))
		t.Cleanup(func() { require.NoError(t, unix.Setresuid(0, 0, 0)) })
	}
	return dir
}

// Whatever the umask, only the owner can use the files, and the owner can.
func TestFile_Umask(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	dir := dirOfUser(t)
	for _, mask := range []int{0o277, 0o777, 0o077, 0} {
		old := unix.Umask(mask)
		path, saved := filepath.Join(dir, "cache"), filepath.Join(dir, "snapshot")
		for i := range 2 {
			c, err := fileCache(t, path)
			require.NoError(t, err, "umask %o", mask)
			require.Equal(t, i, c.Len())
			require.NoError(t, c.Set([]byte("k"), []byte("v")))
			require.NoError(t, c.SaveToFile(saved))
			require.NoError(t, c.Close())
			require.Equal(t, 1, ringtest.MustLoad(t, saved).Len())
		}
		unix.Umask(old)
		for _, name := range listDir(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode(), "umask %o: %s", mask, name)
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
}

// A file that cannot be read may be another user's cache: Save does not replace it, although the
// directory permits that.
func TestSave_NotOverWhatItCannotRead(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	dir := dirOfUser(t)
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("another's"), 0o200))
	c := ringcache.New(1 << 20)
	defer ringtest.CloseCache(t, c)
	requireRefused(t, c.SaveToFile(path), unix.EACCES, path)
	require.NoError(t, os.Chmod(path, 0o600))
	require.Equal(t, "another's", string(ringtest.ReadFile(t, path)))
	require.NoError(t, c.SaveToFile(path))
}

// A process without descriptors opens no file. A cache that has its file goes on, also to more of
// it, and is closed.
func TestFile_NoDescriptors(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "cache")
	saved := path + ".snapshot"
	c := ringtest.OpenFile(t, path, 4<<20)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.NoError(t, c.SaveToFile(saved))
	before := ringtest.ReadFile(t, saved)

	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	none := old
	none.Cur = 3
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	_, err := fileCache(t, path+"2")
	requireRefused(t, err, unix.EMFILE, path+"2")
	requireRefused(t, c.SaveToFile(saved), unix.EMFILE, saved)
	_, err = ringcache.LoadFromFile(saved)
	requireRefused(t, err, unix.EMFILE, saved)
	require.NoError(t, c.Resize(1<<20))
	require.NoError(t, c.Resize(4<<20))
	ringtest.FillCache(t, c, 0, 1000, 1000)
	require.NoError(t, c.Close())
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))

	require.Equal(t, before, ringtest.ReadFile(t, saved))
	require.Equal(t, []string{"cache", "cache.snapshot"}, listDir(t, filepath.Dir(path)))
	c = ringtest.OpenFile(t, path, 4<<20)
	require.Equal(t, 1001, c.Len())
	require.NoError(t, c.Close())
}

// Where a process may have only files of that length, the cache is as large as such a file, and
// does not try to have a longer one, which is a signal. A file that is longer already is opened,
// and keeps what it has.
func TestFile_LimitOnTheLengthOfFiles(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "cache")
	limit := unix.Rlimit{Cur: 8 << 20, Max: unix.RLIM_INFINITY}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	c := ringtest.OpenFile(t, path, 32<<20)
	ringtest.WriteAll(t, c)
	require.InEpsilon(t, 8<<20, c.Stats().EffectiveMaxBytes, 0.1)
	n := c.Len()
	require.NoError(t, c.Close())

	for _, limit.Cur = range []uint64{8 << 20, 1 << 20, 0} {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		c = ringtest.OpenFile(t, path, 32<<20)
		require.Equal(t, n, c.Len())
		require.NoError(t, ringtest.Validate(c))
		require.NoError(t, c.Close())
	}
	_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: path + "2"})
	require.ErrorIs(t, err, ringcache.ErrNoMemory)
	requireRefused(t, err, unix.EFBIG, path+"2")
	require.NoFileExists(t, path+"2")
	require.Empty(t, signals)
}
