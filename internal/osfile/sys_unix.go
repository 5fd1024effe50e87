//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package osfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	nonBlocking = syscall.O_NONBLOCK
	hasModes    = true
)

// checkOwner returns an error if the file is another user's. Its owner may read what is
// written to it later, and cut it short, which is a fault of the process that has mapped it.
// That holds for root too, who could open it.
func checkOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if us := os.Geteuid(); ok && int(stat.Uid) != us {
		return fmt.Errorf("%w: its owner is user %d, and this process is user %d",
			fs.ErrPermission, stat.Uid, us)
	}
	return nil
}

// Lock takes the file's lock, or returns ErrLocked. The lock ends with Unlock, or with the
// process and its children that have the file open.
func Lock(f interface{ Fd() uintptr }) error {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}

// Unlock gives the lock up. Closing the file is not enough: a child that was forked just
// now has it open too, until it executes its program.
func Unlock(f interface{ Fd() uintptr }) { _ = flock(f, syscall.LOCK_UN) }

func flock(f interface{ Fd() uintptr }, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// SyncDir writes the names in a directory to the disk, where its file system can.
func SyncDir(dir string) error {
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
