//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/osfile"
)

// A child that was forked just now, for os/exec, has all descriptors of its parent until it
// executes its program. What it has is a leftover all the same.
func TestFile_ForkedChildKeepsNoLock(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "file"))
	require.NoError(t, err)
	child, err := syscall.Dup(int(f.Fd()))
	require.NoError(t, err)
	defer syscall.Close(child)
	require.NoError(t, f.Commit())
	now, err := os.Open(filepath.Join(dir, "file"))
	require.NoError(t, err)
	defer now.Close()
	require.NoError(t, osfile.Lock(now))
}

// Only a regular file is replaced.
func TestFile_ReplacesNothingElse(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	l, err := net.Listen("unix", socket)
	if err == nil { // names of sockets are short
		defer l.Close()
	}
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("pipe", link))
	for _, path := range []string{pipe, socket, dir, os.DevNull, link} {
		if path == socket && err != nil {
			continue
		}
		before, err := os.Lstat(path)
		require.NoError(t, err)
		_, err = Create(path)
		require.ErrorIs(t, err, osfile.ErrIrregular, path)
		after, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
	}
}

// The file that a symbolic link leads to is replaced, and the link stays.
func TestFile_FollowsLinks(t *testing.T) {
	dir := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	require.NoError(t, os.MkdirAll(in("a", "b"), 0o755))
	require.NoError(t, os.Symlink(in("a", "b"), in("b")))
	for _, link := range [][2]string{
		{in("relative"), "target"},
		{in("absolute"), in("a", "target")},
		{in("two"), "relative"},
		{in("b", "up"), "../target"}, // of a/b, not of b
		{in("dangling"), "a/new"},
	} {
		require.NoError(t, os.Symlink(link[1], link[0]))
	}
	for from, to := range map[string]string{
		in("relative"): in("target"), in("absolute"): in("a", "target"), in("two"): in("target"),
		in("b", "up"): in("a", "target"), in("dangling"): in("a", "new"),
	} {
		f, err := Create(from)
		require.NoError(t, err)
		_, err = f.WriteString(from)
		require.NoError(t, err)
		require.NoError(t, f.Commit())
		info, err := os.Lstat(from)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink)
		b, err := os.ReadFile(to)
		require.NoError(t, err)
		require.Equal(t, from, string(b))
	}
	require.NoError(t, os.Symlink("circle", in("circle")))
	_, err := Create(in("circle"))
	require.ErrorContains(t, err, "too many")
}

// A file that is being written takes its place although the working directory changes.
func TestFile_WorkingDirectoryChanges(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	t.Chdir(one)
	f, err := Create("file")
	require.NoError(t, err)
	t.Chdir(two)
	require.NoError(t, f.Commit())
	require.Equal(t, []string{"file"}, names(t, one))
	require.Empty(t, names(t, two))
}
