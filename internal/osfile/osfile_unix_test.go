//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package osfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe that nobody writes to, or reads from, keeps nobody waiting.
func TestOpen_NeverWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE} {
		_, err := Open(path, flag)
		require.ErrorIs(t, err, ErrIrregular)
		require.ErrorContains(t, err, "not a regular file: p")
	}
	_, err := Open(os.DevNull, os.O_RDONLY)
	require.ErrorContains(t, err, "not a regular file: D")
}

func TestMakePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := OpenOwn(path, os.O_RDWR|os.O_CREATE)
	require.NoError(t, err)
	defer f.Close()
	for _, mode := range []fs.FileMode{0o666, 0o644, 0o640, 0o600, 0o700, 0o400, 0} {
		require.NoError(t, f.Chmod(mode))
		require.NoError(t, MakePrivate(f))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "%o", mode)
	}
}

func TestOpenOwn_RefusesAnotherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes root to give a file to another user")
	}
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o666))
	require.NoError(t, os.Chown(path, 12345, -1))
	_, err := OpenOwn(path, os.O_RDWR)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "its owner is user 12345, and this process is user 0")
	f, err := Open(path, os.O_RDWR)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
