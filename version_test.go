package ringcache_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// ofVersion opens a cache of a version of the program, on a file if path is not empty.
func ofVersion(t *testing.T, version uint64, path string) *ringcache.Cache {
	t.Helper()
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20, Version: version, File: path,
	})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// A file of another version, older or newer, is emptied, and Stats says so.
func TestVersion_File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for i, step := range []struct {
		version uint64
		found   bool
	}{{0, false}, {0, true}, {2, false}, {2, true}, {1, false}, {1 << 63, false}, {0, false}} {
		c := ofVersion(t, step.version, path)
		require.Equal(t, step.found, c.Has([]byte("k")), "step %d", i)
		require.Equal(t, i > 0 && !step.found, c.Stats().File.DiscardedFiles == 1, "step %d", i)
		require.NoError(t, c.Set([]byte("k"), nil))
		require.NoError(t, c.Close())
	}
}

// A snapshot of another version is refused, by every way to read one, and adds nothing.
func TestVersion_Snapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	for _, saved := range []uint64{0, 3} {
		c := ofVersion(t, saved, "")
		require.NoError(t, c.Set([]byte("k"), nil))
		require.NoError(t, c.SaveToFile(path))
		b, err := os.ReadFile(path)
		require.NoError(t, err)

		for _, reading := range []uint64{0, 3, 4} {
			for name, r := range map[string]io.Reader{
				"seekable": bytes.NewReader(b), "stream": io.MultiReader(bytes.NewReader(b)),
			} {
				d := ofVersion(t, reading, "")
				_, err = d.ReadSnapshot(r)
				require.Equal(t, reading != saved, errors.Is(err, ringcache.ErrVersion), name)
				require.NotErrorIs(t, err, ringcache.ErrCorrupt)
				require.Equal(t, reading == saved, d.Has([]byte("k")))
			}
		}
		_, err = ringcache.LoadFromFile(path)
		require.Equal(t, saved != 0, errors.Is(err, ringcache.ErrVersion))
		for _, reading := range []uint64{0, 3, 4} {
			d, report, err := ringcache.Load(path,
				ringcache.Options{MaxBytes: 32 << 20, Version: reading})
			require.NoError(t, err)
			require.Equal(t, reading == saved, d.Has([]byte("k")))
			require.Equal(t, reading != saved, errors.Is(report.Err, ringcache.ErrVersion))
			require.NotErrorIs(t, report.Err, ringcache.ErrCorrupt)
			require.Equal(t, reading != saved, report.DiscardedBlocks == 1)
			require.NoError(t, d.Close())
		}
	}
}
