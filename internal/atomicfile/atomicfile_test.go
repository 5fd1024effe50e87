package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/osfile"
)

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// anyFile lets a file be replaced whatever it is.
func anyFile(string) error { return nil }

func TestFile_TakesThePlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		f, err := Create(path)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Commit(anyFile))
		f.Discard() // has no effect any more
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
		require.Equal(t, []string{"file"}, names(t, dir))
	}
	f, err := Create(path)
	require.NoError(t, err)
	f.Discard()
	f.Discard()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "two", string(b))
	require.Equal(t, []string{"file"}, names(t, dir))
}

// Another file that has come to the path may stay. It is looked at last, since all before may take
// long: the new file is complete by then, and only the new name is missing.
func TestFile_LeavesAnother(t *testing.T) {
	dir := t.TempDir()
	path, mustStay := filepath.Join(dir, "file"), errors.New("it must stay")
	f, err := Create(path)
	require.NoError(t, err)
	_, err = f.WriteString("new")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("other"), 0o600))
	require.ErrorIs(t, f.Commit(func(at string) error {
		require.Equal(t, path, at)
		b, err := os.ReadFile(at)
		require.NoError(t, err)
		require.Equal(t, "other", string(b))
		return mustStay
	}), mustStay)
	f.Discard()
	require.Equal(t, []string{"file"}, names(t, dir))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "other", string(b))
}

// What dead writers have left goes, what others are writing stays, and so does what only
// looks like it.
func TestFile_RemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	left := ".file.0123456789" + suffix
	others := []string{".file" + suffix, ".file.1.0123456789" + suffix, ".file.x" + suffix,
		".other.0123456789" + suffix, "file.0123456789" + suffix, ".file.0123456789"}
	for _, name := range append(others, left) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	one, err := Create(path)
	require.NoError(t, err)
	require.NotContains(t, names(t, dir), left)
	two, err := Create(path)
	require.NoError(t, err)
	require.Len(t, names(t, dir), len(others)+2)
	require.NoError(t, one.Commit(anyFile))
	require.NoError(t, two.Commit(anyFile))
	require.ElementsMatch(t, append(others, "file"), names(t, dir))
}

func TestFile_CannotTakeThePlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o755))
	_, err := Create(path)
	require.ErrorIs(t, err, osfile.ErrIrregular)
	other := filepath.Join(dir, "other")
	f, err := Create(other)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(other, 0o755)) // meanwhile
	require.ErrorIs(t, f.Commit(anyFile), osfile.ErrIrregular)
	f.Discard()
	require.Equal(t, []string{"folder", "other"}, names(t, dir))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Create(filepath.Join(file, "below"))
	require.Error(t, err)
	for _, c := range []string{"x", "\u20ac"} { // names have 255 bytes at most
		f, err = Create(filepath.Join(dir, strings.Repeat(c, 249/len(c))))
		require.NoError(t, err)
		require.True(t, utf8.ValidString(f.Name()))
		require.NoError(t, f.Commit(anyFile))
	}
}
