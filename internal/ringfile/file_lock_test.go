//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/osfile"
)

// A child that was forked just now, for os/exec, has all descriptors of its parent until it
// executes its program. Nothing that is closed meanwhile seems to be in use.
func TestStore_ForkedChildKeepsNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for name, end := range map[string]func(f *File){
		"Close":   func(f *File) { require.NoError(t, f.Close(clock.Mark{}, true)) },
		"Release": func(f *File) { f.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			f, h, err := Open(path, 1, freshHeader())
			require.NoError(t, err)
			require.NoError(t, f.Use(&h))
			child, err := unix.Dup(int(f.file.Fd())) // as fork does
			require.NoError(t, err)
			defer unix.Close(child)
			_, _, err = Open(path, 1, freshHeader())
			require.ErrorIs(t, err, osfile.ErrLocked)
			end(f)
			f, _, err = Open(path, 1, freshHeader())
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
		_, _, err = open(file, 1, freshHeader(), false)
		require.ErrorIs(t, err, osfile.ErrForeign)
		_, _, err = Open(path, 1, freshHeader())
		require.ErrorIs(t, err, osfile.ErrForeign, "and not in use")
	})
}

// noLocks is a file on a file system without locks.
type noLocks struct{ *os.File }

func (noLocks) Fd() uintptr { return ^uintptr(0) }

// A file whose lock could not be had stays: without it, nobody knows whose it is by now.
func TestOpen_RemovesNothingWithoutALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("somebody's"), 0o600))
	_, _, err = open(noLocks{file}, 1, freshHeader(), true)
	require.ErrorIs(t, err, unix.EBADF)
	require.FileExists(t, path)
}
