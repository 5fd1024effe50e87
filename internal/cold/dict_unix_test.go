//go:build unix

package cold_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/sidefile"
)

// dictCount counts the dictionaries of a file, by number.
func dictCount(f *sidefile.File) map[byte]int {
	n := map[byte]int{}
	for key := range f.Words() {
		if key[0] != 0 {
			n[key[0]]++
		}
	}
	return n
}

// openDicts opens a file of dictionaries and the compression that uses it, without a cache.
func openDicts(t *testing.T, path string, by *funcCompressor) (*cold.Compression, *sidefile.File) {
	t.Helper()
	f, err := sidefile.Open(path, cold.Magic, func() error { return nil })
	require.NoError(t, err)
	without, err := by.WithDict(nil)
	require.NoError(t, err)
	return cold.New(&cold.Config{By: by, ID: by.ID(), WithoutDict: without, Buckets: 1, File: f}), f
}

// newDict has a dictionary made that is unlike others.
func newDict(s *cold.Compression, seed int) {
	for i := range 1000 {
		s.Samples.Add(ringtest.Text(1000*seed+i, 200))
	}
	s.Renew()
}

// A dictionary for which the disk has no room is not used, and is not written later: Close has
// nothing left to do, and the next dictionary gets its number.
func TestDict_NoRoom(t *testing.T) {
	for _, room := range []bool{false, true} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dict")
			s, f := openDicts(t, path, &funcCompressor{})
			require.NoError(t, os.Mkdir(path, 0o700)) // in the way of the file
			newDict(s, 1)
			require.EqualValues(t, 1, s.Counts.Failed.Load())
			require.Zero(t, s.Dict)
			if room {
				require.NoError(t, os.Remove(path))
				newDict(s, 2)
				require.EqualValues(t, 1, s.Dict)
			}
			require.NoError(t, f.Close())
			if !room {
				return
			}
			f, err := sidefile.Open(path, cold.Magic, func() error { return nil })
			require.NoError(t, err)
			require.Equal(t, map[byte]int{1: 1}, dictCount(f))
			require.NoError(t, f.Close())
		})
	}
}

// The number of a dictionary that cannot be opened is not used again.
func TestDict_CannotBeOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dict")
	by := &funcCompressor{}
	s, f := openDicts(t, path, by)
	require.NoError(t, s.TakeOver())
	newDict(s, 1)
	newDict(s, 2)
	require.EqualValues(t, 2, s.Dict)
	last := string(by.FlateCompressor.BuildDict([][]byte{ringtest.Text(2000, 200)}))
	require.NoError(t, f.Close())

	by.with = func(dict []byte) (ringcache.ValueCompressor, error) {
		if len(dict) > 0 && string(dict[:len(last)]) == last {
			return nil, errBad
		}
		return by.FlateCompressor.WithDict(dict)
	}
	s, f = openDicts(t, path, by)
	require.EqualValues(t, 1, s.Dict)
	require.EqualValues(t, 1, s.Counts.Failed.Load())
	newDict(s, 3)
	require.EqualValues(t, 3, s.Dict)
	require.NoError(t, f.Close())

	by.with = nil
	s, f = openDicts(t, path, by)
	require.EqualValues(t, 3, s.Dict)
	require.Equal(t, map[byte]int{1: 1, 2: 1, 3: 1}, dictCount(f))
	require.NoError(t, f.Close())
}
