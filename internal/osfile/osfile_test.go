package osfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a path means is what it means to the kernel: a ".." behind a link is the parent of where
// that leads, and the file that a link at the end leads to is the one to replace.
func TestTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	sep := string(filepath.Separator)
	require.NoError(t, os.MkdirAll(in("a", "b"), 0o755))
	require.NoError(t, os.WriteFile(in("a", "file"), nil, 0o600))
	if err := os.Symlink(in("a", "b"), in("link")); err != nil {
		t.Skipf("there are no symbolic links here: %v", err)
	}
	require.NoError(t, os.Symlink(in("a", "file"), in("one")))
	require.NoError(t, os.Symlink("one", in("two")))
	require.NoError(t, os.Symlink("missing", in("dangling")))
	t.Chdir(in("link"))
	for path, want := range map[string]string{
		in("file"):           in("file"),
		in("link", "file"):   in("link", "file"),
		in("a", "file"):      in("a", "file"),
		in("one"):            in("a", "file"),
		in("two"):            in("a", "file"),
		".." + sep + "file":  in("a", "file"),
		".." + sep + "other": in("a", "other"),
	} {
		full, err := Abs(path)
		require.NoError(t, err)
		got, err := Target(full)
		require.NoError(t, err)
		require.Equal(t, filepath.Base(want), filepath.Base(got), path)
		wantDir, err := os.Stat(filepath.Dir(want))
		require.NoError(t, err)
		gotDir, _ := filepath.Split(got)
		requireSame(t, wantDir, gotDir)
	}
	_, err = Target(in("link"))
	require.ErrorIs(t, err, ErrIrregular)
	_, err = Target(in("dangling"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// requireSame fails unless path is the file.
func requireSame(t *testing.T, want os.FileInfo, path string) {
	t.Helper()
	got, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(want, got), path)
}

func TestOpen_Directory(t *testing.T) {
	_, err := Open(t.TempDir(), os.O_RDONLY)
	require.ErrorIs(t, err, ErrIrregular)
	require.ErrorContains(t, err, "not a regular file: d")
}
