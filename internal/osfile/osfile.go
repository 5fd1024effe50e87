// Package osfile opens files whose paths other programs may have changed: a path may lead elsewhere
// later, to a pipe instead of a file, or to a file of another user. All files that the packages
// above it read, lock or replace are opened or checked by it.
//
// Links are followed by the kernel, which refuses some of them (fs.protected_symlinks).
package osfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Errors of this package.
var (
	// ErrIrregular is returned for a directory, a device, a pipe or a socket.
	ErrIrregular = errors.New("not a regular file")

	// ErrLocked is returned by Lock if another process has the lock, or another open file of this
	// one, and by At if another process has removed or replaced the file.
	ErrLocked = errors.New("the file is in use")

	// ErrForeign and ErrVersion are returned for a file that the package which reads it cannot use.
	ErrForeign = errors.New("the file is of another kind, or from another kind of machine")
	ErrVersion = errors.New("the file has a newer version")
)

// File is an open file.
type File interface {
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	Fd() uintptr
}

// Open opens a regular file. It never blocks, as opening a pipe does. It opens a device only if the
// path changes during the call. A file that it creates is accessible only to its owner.
func Open(path string, flag int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, irregular(path, info)
	}
	f, err := os.OpenFile(path, flag|nonBlocking, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat() // the path may have changed since
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenOwn is Open for a file that will be trusted: its owner must be this user.
func OpenOwn(path string, flag int) (*os.File, error) {
	f, err := Open(path, flag)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// irregular returns the error for a file that is not regular.
func irregular(path string, info fs.FileInfo) error {
	err := fmt.Errorf("%w: %v", ErrIrregular, info.Mode())
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// Abs returns the absolute path, so that it means the same file after a change of the working
// directory. It is not cleaned: ".." after a link is the parent of the link's target.
func Abs(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	if runtime.GOOS == "windows" { // a path may be relative to a volume
		return filepath.Abs(path)
	}
	wd, err := os.Getwd()
	return wd + "/" + path, err
}

// MakeDirs makes the directory of the file at path, which is absolute, and those above it, where
// they are missing, and writes their names to the disk.
func MakeDirs(path string) error {
	dir, _ := filepath.Split(path) // not cleaned, as in Abs
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for volume := filepath.VolumeName(dir); os.IsPathSeparator(dir[len(dir)-1]); {
		if dir = dir[:len(dir)-1]; dir == volume {
			return err // a drive that is missing
		}
	}
	if err = MakeDirs(dir); err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil || errors.Is(err, fs.ErrExist) { // another process made it
		err = SyncDir(dir)
	}
	return err
}

// Target returns the path at which a regular file is to be replaced or made: path itself, or, if
// that is a link, the path of the file that the kernel finds there. Some links, like those in
// /proc, lead elsewhere than their text says; they are an error.
func Target(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if info, err = os.Stat(path); err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if at, _ := os.Lstat(path); err == nil && !os.SameFile(at, info) {
			err = errors.New("the path leads elsewhere than its links say")
			err = &fs.PathError{Op: "resolve", Path: path, Err: err}
		}
	}
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path, info)
	}
	return path, err
}

// At returns an error unless f is still the file at path: ErrLocked if that is another one or none.
func At(f interface{ Stat() (fs.FileInfo, error) }, path string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, named) {
		return fmt.Errorf("%w: %s was removed or replaced", ErrLocked, path)
	}
	return err
}
