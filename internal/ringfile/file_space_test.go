//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/clock"
)

// brokenDisk is a file whose extents cannot be written to any more. Nothing can be preallocated
// there, as in a pipe.
type brokenDisk struct {
	*os.File
	pipe     *os.File
	err      error
	isBroken bool
}

func (d *brokenDisk) ReadAt(b []byte, off int64) (int, error) {
	d.isBroken = off >= HeadSize
	return d.File.ReadAt(b, off)
}

func (d *brokenDisk) WriteAt(b []byte, off int64) (int, error) {
	if d.isBroken {
		return 0, d.err
	}
	return d.File.WriteAt(b, off)
}

func (d *brokenDisk) Fd() uintptr {
	if d.isBroken {
		return d.pipe.Fd()
	}
	return d.File.Fd()
}

// Only a full disk costs the chunks for which it has no space. After any other error the file is
// refused, and keeps its length.
func TestUse_ExtentCannotBeWritten(t *testing.T) {
	pipe, end, err := os.Pipe()
	require.NoError(t, err)
	defer end.Close()
	defer pipe.Close()
	for _, errno := range []unix.Errno{unix.EIO, unix.EPERM, unix.ENOSPC} {
		path := filepath.Join(t.TempDir(), "cache")
		f, h, err := Open(path, 1, freshHeader())
		require.NoError(t, err)
		require.NoError(t, f.Use(&h))
		_, err = f.Rings.Map(16 * 2048)
		require.NoError(t, err)
		require.NoError(t, f.Close(clock.Mark{}, true))
		f.Release()
		info, err := os.Stat(path)
		require.NoError(t, err)
		want := info.Size()

		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		f, h, err = open(&brokenDisk{File: file, pipe: pipe, err: errno}, 1, freshHeader(),
			false)
		require.NoError(t, err)
		err = f.Use(&h)
		if errno == unix.ENOSPC {
			require.NoError(t, err)
			want = HeadSize
		} else {
			require.ErrorIs(t, err, errno)
			require.False(t, IsNoSpace(err))
		}
		f.Release()
		info, err = os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Size(), errno)
	}
}
