package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func TestFile_TakesThePlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		f, err := Create(path)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Commit())
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
	require.NoError(t, one.Commit())
	require.NoError(t, two.Commit())
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
	require.ErrorIs(t, f.Commit(), osfile.ErrIrregular)
	f.Discard()
	require.Equal(t, []string{"folder", "other"}, names(t, dir))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Create(filepath.Join(file, "below"))
	require.Error(t, err)
	long := filepath.Join(dir, strings.Repeat("x", 250)) // names have 255 bytes at most
	f, err = Create(long)
	require.NoError(t, err)
	require.NoError(t, f.Commit())
}
