// Package atomicfile replaces a file as a whole: a program that opens it sees either the old
// contents or the new ones, even after a crash.
//
// The new file is written in the same directory, under a name that no other writer has, synced, and
// renamed; then the directory is synced. A writer that dies leaves its new file behind. The next
// writer that replaces the same file removes it, since no process holds its lock.
//
// Only a regular file is replaced. If the path is a symbolic link, the link stays, and the file
// that it leads to is replaced; a link that leads nowhere is an error.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/internal/osfile"
)

// File is the new file. Only its owner can read it (mode 0600).
type File struct {
	*os.File
	path string // of the file to be replaced
	done bool
}

// ErrInUse is returned by Create for a file that is in use.
var ErrInUse = errors.New("the cache uses this file itself (Options.File)")

const (
	suffix = ".ringcache-tmp"
	tries  = 10

	// closeFirst is set on the system on which no open file can be renamed or removed.
	closeFirst = runtime.GOOS == "windows"
)

// Create creates a new file that is to replace the one at path, in a directory that exists, unless
// that is one of inUse. It removes the files that dead writers have left.
func Create(path string, inUse ...string) (*File, error) {
	path, err := osfile.Abs(path)
	if err != nil {
		return nil, err
	}
	if path, err = osfile.Target(path); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(inUse, func(other string) bool { return isSame(path, other) }) {
		return nil, ErrInUse
	}
	removeLeftovers(path)
	for range tries {
		f, err := os.CreateTemp(dirOf(path), prefixOf(path)+"*"+suffix)
		if err != nil {
			return nil, err
		}
		// Another writer may take it for a leftover until it is locked. On a file system without locks,
		// leftovers stay.
		if errors.Is(osfile.Lock(f), osfile.ErrLocked) {
			f.Close()
			continue
		}
		if err = osfile.At(f, f.Name()); err == nil {
			err = osfile.MakePrivate(f)
		}
		made := &File{File: f, path: path}
		if err == nil {
			return made, nil
		}
		if errors.Is(err, osfile.ErrMoved) {
			f.Close()
			continue
		}
		made.Discard()
		return nil, err
	}
	return nil, fmt.Errorf("new files for %s were removed %d times", path, tries)
}

// isSame reports whether two paths are those of one file, which need not exist.
func isSame(a, b string) bool {
	return exist(a, b) || filepath.Base(a) == filepath.Base(b) && exist(dirOf(a), dirOf(b))
}

// exist reports whether two paths are those of one file, which exists.
func exist(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return errors.Join(err, otherErr) == nil && os.SameFile(one, other)
}

// dirOf returns the directory of a path, not cleaned: ".." may follow a link.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return dir
}

// prefixOf returns the common prefix of the names of all new files for path. It is cut so that
// names are not too long for file systems.
func prefixOf(path string) string {
	base := filepath.Base(path)
	return "." + base[:min(len(base), 200)] + "."
}

// removeLeftovers removes the files of writers to path that have died. Errors are ignored, since
// they do not prevent writing.
func removeLeftovers(path string) {
	d, err := os.Open(dirOf(path))
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		unique, ours := strings.CutPrefix(name, prefixOf(path))
		unique, ended := strings.CutSuffix(unique, suffix)
		if ours && ended && strings.Trim(unique, "0123456789") == "" {
			removeIdle(dirOf(path) + name)
		}
	}
}

// removeIdle removes the file of that name unless it is locked.
func removeIdle(name string) {
	f, err := osfile.Open(name, os.O_RDWR)
	if err != nil {
		return
	}
	old := File{File: f}
	if osfile.Lock(f) == nil {
		old.Discard()
	}
	f.Close()
}

// Commit replaces the old file by the new one, and closes it. It returns when both the contents and
// the name are on the disk. After an error of the last step, syncing the directory, the file is
// replaced, but a crash of the machine may undo that.
func (f *File) Commit() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if _, err := osfile.Target(f.path); err != nil {
		return err
	}
	if closeFirst {
		f.Close()
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.end()
	return osfile.SyncDir(f.path)
}

// Discard removes the new file, unless Commit has replaced the old one.
func (f *File) Discard() {
	if f.done {
		return
	}
	if closeFirst {
		f.Close()
	}
	os.Remove(f.Name())
	f.end()
}

// end gives up the lock and closes the file.
func (f *File) end() {
	f.done = true
	osfile.Unlock(f)
	f.Close()
}
