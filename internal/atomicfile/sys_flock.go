//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock of a file, which goes with the process that has it open, and
// reports false if somebody else has it. Where the file system has no locks there
// is none to take, and nothing is removed.
func lock(f *os.File) bool { return !errors.Is(flock(f), syscall.EWOULDBLOCK) }

func flock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = conn.Control(func(fd uintptr) {
		locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	return errors.Join(err, locked)
}

// unlock is for systems on which closing the file is not enough.
func unlock(*os.File) {}

// removeIdle removes the file of that name unless it is locked.
func removeIdle(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if flock(f) == nil {
		os.Remove(name)
	}
}

// rename puts the file in its place, and then gives up its lock.
func (f *File) rename() error {
	defer f.Close()
	return os.Rename(f.Name(), f.path)
}

// syncDir writes the names in a folder to the disk, where its file system can.
func syncDir(dir string) error {
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
