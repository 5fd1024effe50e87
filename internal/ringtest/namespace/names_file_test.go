package namespace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Close writes the name of a namespace that could not be written when the namespace was made. If it
// cannot either, it says so, and the next process lacks the entries of that namespace.
func TestNamespace_NameIsWrittenByClose(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	for _, inTime := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "cache")
		g := ringtest.Tiny(1, 4096, 64)
		c := ringtest.MustOpen(t, g, path)
		names := path + ".names"
		require.NoError(t, os.Mkdir(names, 0o700)) // as good as a disk that is full
		k, v := []byte("k"), []byte("v")
		require.NoError(t, c.Namespace("n").Set(k, v))
		require.True(t, c.Namespace("n").Has(k))
		require.NoError(t, c.Set(k, v))
		if inTime {
			require.NoError(t, os.Remove(names))
			require.NoError(t, c.Close())
		} else {
			require.ErrorContains(t, c.Close(), names)
			require.NoError(t, os.Remove(names))
		}
		c = ringtest.MustOpen(t, g, path)
		require.True(t, c.Has(k))
		require.Equal(t, inTime, c.Namespace("n").Has(k))
		require.NoError(t, c.Close())
	}
}

// If the names are missing, the entries of namespaces count as discarded, those of a namespace that
// was dropped do not.
func TestNamespace_EntriesWithoutNamesAreCounted(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	path, g := filepath.Join(t.TempDir(), "cache"), ringtest.Tiny(1, 4096, 64)
	c := ringtest.MustOpen(t, g, path)
	require.NoError(t, c.Set([]byte("k"), nil))
	for _, dropped := range []bool{true, false} {
		for k := range byte(5) {
			require.NoError(t, c.Namespace("n").Set([]byte{k}, nil))
		}
		want := 5
		if dropped {
			want = 0
			require.NoError(t, c.DropNamespace("n"))
		}
		require.NoError(t, c.Close())
		if !dropped {
			require.NoError(t, os.Remove(path+".names"))
		}
		c = ringtest.MustOpen(t, g, path)
		require.EqualValues(t, want, c.Stats().File.DiscardedRecords)
		require.EqualValues(t, 1, c.Stats().File.RecoveredEntries)
	}
	require.NoError(t, c.Close())
}
