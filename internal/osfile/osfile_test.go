package osfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a path means is what it means to the system: a ".." behind a link is the parent of
// where that leads, and no part of the result is a link.
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	sep := string(filepath.Separator)
	require.NoError(t, os.MkdirAll(in("a", "b"), 0o755))
	if err := os.Symlink(in("a", "b"), in("link")); err != nil {
		t.Skipf("there are no symbolic links here: %v", err)
	}
	require.NoError(t, os.Symlink(in("a", "file"), in("b")))
	t.Chdir(in("link"))
	for path, want := range map[string]string{
		in("file"):                          in("file"),
		in("missing", "file"):               in("missing", "file"),
		in("link", "file"):                  in("a", "b", "file"),
		in("link") + sep + ".." + sep + "x": in("a", "x"),
		in("b"):                             in("a", "file"),
		in("link"):                          in("a", "b"),
		in("link") + sep:                    in("a", "b"),
		"file":                              in("a", "b", "file"),
		".." + sep + "file":                 in("a", "file"),
		".":                                 in("a", "b"),
	} {
		got, err := Resolve(path)
		require.NoError(t, err)
		require.Equal(t, want, got, path)
	}
}

func TestOpen_Directory(t *testing.T) {
	_, err := Open(t.TempDir(), os.O_RDONLY)
	require.ErrorIs(t, err, ErrIrregular)
	require.ErrorContains(t, err, "a directory")
}
