//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package osfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// NoFollow is a flag of Open: a link at the end of the path is an error.
const nonBlocking, NoFollow = syscall.O_NONBLOCK, syscall.O_NOFOLLOW

// checkOwner returns an error if the file belongs to another user, who could read it, or truncate
// it, which is a memory fault for a process that has mapped it. Root, who can open any file, gets
// the error too.
func checkOwner(f File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if us := os.Geteuid(); ok && int(stat.Uid) != us {
		return fmt.Errorf("%w: its owner is user %d, and this process is user %d",
			fs.ErrPermission, stat.Uid, us)
	}
	return nil
}

// MakePrivate lets only the owner of a file of ours read and write it, whatever the umask was when
// it was made.
func MakePrivate(f File) error { return f.Chmod(0o600) }

// Lock takes the file's lock, or returns ErrLocked. The lock is released by Unlock, or once this
// process and all its children have closed the file.
func Lock(f File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}

// Unlock releases the lock. Closing the file is not enough: a child process that was just forked
// has the file open until it executes its program.
func Unlock(f File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// SyncDir writes the name of the file at path to the disk, if its file system supports that.
func SyncDir(path string) error {
	dir, _ := filepath.Split(path) // not cleaned: ".." may follow a link
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
