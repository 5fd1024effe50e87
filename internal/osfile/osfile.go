// Package osfile opens files whose paths other programs may have changed: a path may lead elsewhere
// later, to a pipe instead of a file, or to a file of another user. All files that the packages
// above it read, lock or replace are opened or checked by it.
package osfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Errors of Open and Lock.
var (
	// ErrIrregular is returned for a directory, a device, a pipe or a socket.
	ErrIrregular = errors.New("not a regular file")

	// ErrLocked is returned by Lock if another process has the lock, or another open file of this
	// one.
	ErrLocked = errors.New("already locked")
)

var errLinks = errors.New("too many symbolic links")

// mostLinks is the maximum number of symbolic links in a row, as on Linux.
const mostLinks = 40

// Resolve returns the absolute path of the file that path leads to, which need not exist.
// No part of it is a symbolic link, so it means the same file after a change of the working
// directory, and renaming a file to it replaces the file and not a link.
func Resolve(path string) (string, error) {
	asked := path
	for range mostLinks {
		full, err := absolute(path)
		if err != nil {
			return "", err
		}
		link, err := os.Readlink(full)
		if err != nil {
			return full, nil // not a link, or opening it will fail with the reason
		}
		if path = link; !filepath.IsAbs(link) {
			path = filepath.Dir(full) + string(filepath.Separator) + link
		}
	}
	return "", &fs.PathError{Op: "resolve", Path: asked, Err: errLinks}
}

// absolute returns the absolute path of the file that path names, without following its last
// element if that is a symbolic link. As for the system, ".." after a link is the parent of the
// link's target.
func absolute(path string) (string, error) {
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		if runtime.GOOS == "windows" { // a path may be relative to a volume
			return filepath.Abs(path)
		}
		path = wd + string(filepath.Separator) + path
	}
	dir, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		dir, base = path, "" // a directory
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return filepath.Clean(path), nil // whatever opens the path reports the error
	}
	return filepath.Join(real, base), nil
}

// Open opens a regular file. It never blocks, as opening a pipe does. It opens a device only if the
// path changes during the call. A file that it creates is accessible only to its owner.
func Open(path string, flag int) (*os.File, error) {
	if err := CheckRegular(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|nonBlocking, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat() // the path may have changed since
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenOwn is Open for a file that will be trusted: its owner must be this user, and it removes the
// permissions of all others.
func OpenOwn(path string, flag int) (*os.File, error) {
	f, err := Open(path, flag)
	if err != nil {
		return nil, err
	}
	if err := own(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// own returns an error if f belongs to another user, and removes the permissions of all others.
func own(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkOwner(info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); hasModes && mode&0o077 != 0 {
		if err := f.Chmod(mode & 0o700); err != nil {
			return fmt.Errorf("change mode %#o to %#o: %w", mode, mode&0o700, err)
		}
	}
	return nil
}

// CheckRegular returns an error if there is no regular file at path. It follows links.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return regular(path, info)
}

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	err := fmt.Errorf("%w but %s", ErrIrregular, kind(info.Mode()))
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// kind names the kind of a file that is not regular.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "of mode " + mode.String()
}

// IsAt reports whether f is still the file at path, and was not removed or replaced.
func IsAt(f interface{ Stat() (os.FileInfo, error) }, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, named)
}
