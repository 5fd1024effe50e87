// Package osfile opens files that others may have touched: a path that leads elsewhere
// later, a pipe in place of a file, a file of another user. What the packages above it
// read, lock or replace has passed through it.
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

	// ErrLocked is returned by Lock if somebody else has the lock.
	ErrLocked = errors.New("locked by another")
)

var errLinks = errors.New("too many symbolic links")

// mostLinks is how many symbolic links may follow each other, as on Linux.
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
			return full, nil // no link, or what opening it will fail for
		}
		if path = link; !filepath.IsAbs(link) {
			path = filepath.Dir(full) + string(filepath.Separator) + link
		}
	}
	return "", &fs.PathError{Op: "resolve", Path: asked, Err: errLinks}
}

// absolute returns the absolute path of what the last element of path names, which is a
// symbolic link if that is one. ".." is the parent of what is before it, be it a link.
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
		return filepath.Clean(path), nil // what uses the path says what is wrong with it
	}
	return filepath.Join(real, base), nil
}

// Open opens a regular file. It never waits, as opening a pipe does, and it does not touch
// a device. A file that it makes is for its owner alone.
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

// OpenOwn is Open of a file that is to be trusted: it must be this user's, and others lose
// the permissions that they have.
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

// own returns an error if f is another user's, and takes the permissions of all others.
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
			return fmt.Errorf("take mode %#o down to %#o: %w", mode, mode&0o700, err)
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

// kind names what is no regular file.
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

// IsAt reports whether f is the file at path, and not one that was there before.
func IsAt(f interface{ Stat() (os.FileInfo, error) }, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, named)
}
