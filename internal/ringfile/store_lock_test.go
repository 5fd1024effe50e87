//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A child that was forked just now, for os/exec, has all descriptors of its parent until it
// executes its program. Nothing that is closed meanwhile seems to be in use.
func TestStore_ForkedChildKeepsNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for name, end := range map[string]func(f *Store){
		"Close":   func(f *Store) { require.NoError(t, f.Close(Mark{}, true)) },
		"Release": func(f *Store) { f.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			f, h, err := Open(path, 1, freshHeader)
			require.NoError(t, err)
			require.NoError(t, f.Use(&h))
			child, err := unix.Dup(int(f.file.Fd())) // as fork does
			require.NoError(t, err)
			defer unix.Close(child)
			_, _, err = Open(path, 1, freshHeader)
			require.ErrorIs(t, err, ErrInUse)
			end(f)
			f, _, err = Open(path, 1, freshHeader)
			require.NoError(t, err)
			f.Release()
		})
	}
	t.Run("an Open that fails", func(t *testing.T) {
		require.NoError(t, os.WriteFile(path, []byte("somebody's"), 0o600))
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		child, err := unix.Dup(int(file.Fd()))
		require.NoError(t, err)
		defer unix.Close(child)
		_, _, err = open(file, 1, freshHeader)
		require.ErrorIs(t, err, ErrForeign)
		_, _, err = Open(path, 1, freshHeader)
		require.ErrorIs(t, err, ErrForeign, "and not in use")
	})
}
