//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
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
	require.NoError(t, f.Commit(anyFile))
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
	for _, target := range []string{in("target"), in("a", "target")} {
		require.NoError(t, os.WriteFile(target, nil, 0o600))
	}
	for _, link := range [][2]string{
		{in("relative"), "target"},
		{in("absolute"), in("a", "target")},
		{in("two"), "relative"},
		{in("b", "up"), "../target"}, // of a/b, not of b
	} {
		require.NoError(t, os.Symlink(link[1], link[0]))
	}
	for from, to := range map[string]string{
		in("relative"): in("target"), in("absolute"): in("a", "target"), in("two"): in("target"),
		in("b", "up"): in("a", "target"),
	} {
		f, err := Create(from)
		require.NoError(t, err)
		_, err = f.WriteString(from)
		require.NoError(t, err)
		require.NoError(t, f.Commit(anyFile))
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
	require.NoError(t, os.Symlink("nowhere", in("dangling")))
	_, err = Create(in("dangling"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A link that has the name of a leftover is none: it stays, and so does what it leads to.
func TestFile_LeftoversAreNoLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, ".file.1"+suffix)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
	require.NoError(t, os.Symlink("other", link))
	f, err := Create(filepath.Join(dir, "file"))
	require.NoError(t, err)
	f.Discard()
	require.Equal(t, []string{filepath.Base(link), "other"}, names(t, dir))
}

// A new file that another program removes at once is not made again and again, and one whose name
// is gone replaces nothing.
func TestFile_NameIsTaken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	f, err := Create(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(f.Name()))
	require.ErrorIs(t, f.Commit(anyFile), os.ErrNotExist)
	require.NoFileExists(t, path)
	f.Discard()
}

// The kernel's rule for links of others in a directory like /tmp holds (fs.protected_symlinks), and
// what a link in /proc leads to is not what its text says.
func TestFile_LinksThatTheKernelKnowsBetter(t *testing.T) {
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(victim, []byte("victim's"), 0o600))
	if at, err := os.Open(victim); runtime.GOOS == "linux" && err == nil {
		defer at.Close()
		require.NoError(t, os.Remove(victim)) // the text of the link is now that of another file
		require.NoError(t, os.WriteFile(victim+" (deleted)", []byte("another"), 0o600))
		_, err = Create(fmt.Sprintf("/proc/self/fd/%d", at.Fd()))
		require.ErrorContains(t, err, "leads elsewhere")
	}
	rule, err := os.ReadFile("/proc/sys/fs/protected_symlinks")
	if err != nil || string(rule) != "1\n" || os.Geteuid() != 0 {
		t.Skip("the kernel has no such rule, or it takes root to plant a link")
	}
	require.NoError(t, os.WriteFile(victim, []byte("victim's"), 0o600))
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	require.NoError(t, os.Symlink("victim", link))
	require.NoError(t, os.Lchown(link, 12345, 12345))
	_, err = Create(link)
	require.ErrorIs(t, err, os.ErrPermission)
}

// A file that is being written takes its place although the working directory changes.
func TestFile_WorkingDirectoryChanges(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	t.Chdir(one)
	f, err := Create("file")
	require.NoError(t, err)
	t.Chdir(two)
	require.NoError(t, f.Commit(anyFile))
	require.Equal(t, []string{"file"}, names(t, one))
	require.Empty(t, names(t, two))
}
