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
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ringcache/ringcache/internal/osfile"
)

// File is the new file. Only its owner can read it (mode 0600).
type File struct {
	*os.File
	path string // of the file to be replaced, absolute and without a link at its end
	done bool
}

const (
	suffix = ".ringcache-tmp"
	tries  = 10

	// closeFirst is set on the system on which no open file can be renamed or removed.
	closeFirst = runtime.GOOS == "windows"
)

// Create creates a new file that is to replace the one at path, and missing directories. It removes
// the files that dead writers have left.
func Create(path string) (*File, error) {
	path, err := osfile.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := osfile.MakeDirs(path); err != nil {
		return nil, err
	}
	if path, err = osfile.Target(path); err != nil {
		return nil, err
	}
	removeLeftovers(path)
	for range tries {
		f, err := os.CreateTemp(dirOf(path), prefixOf(path)+"*"+suffix)
		if err != nil {
			return nil, err
		}
		// Another writer may take it for a leftover until it is locked. On a file system without locks,
		// leftovers stay.
		if err = osfile.Lock(f); !errors.Is(err, osfile.ErrLocked) {
			err = osfile.At(f, f.Name())
		}
		if err == nil {
			err = osfile.MakePrivate(f)
		}
		made := &File{File: f, path: path}
		switch {
		case err == nil:
			return made, nil
		case !errors.Is(err, osfile.ErrLocked):
			made.Discard()
			return nil, err
		}
		f.Close()
	}
	return nil, fmt.Errorf("new files for %s were removed %d times", path, tries)
}

// dirOf returns the directory of a path, not cleaned: ".." may follow a link.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return dir
}

// prefixOf returns the common prefix of the names of all new files for path. It is cut so that
// names are not too long for file systems, some of which take only valid UTF-8.
func prefixOf(path string) string {
	base := filepath.Base(path)
	return "." + strings.ToValidUTF8(base[:min(len(base), 200)], "") + "."
}

// removeLeftovers removes the files of writers to path that have died. Errors are ignored, since
// they do not prevent writing.
func removeLeftovers(path string) {
	entries, _ := os.ReadDir(dirOf(path))
	for _, e := range entries {
		unique, ours := strings.CutPrefix(e.Name(), prefixOf(path))
		unique, ended := strings.CutSuffix(unique, suffix)
		if ours && ended && strings.Trim(unique, "0123456789") == "" {
			removeIdle(dirOf(path) + e.Name())
		}
	}
}

// removeIdle removes the file of that name unless it is locked.
func removeIdle(name string) {
	if f, err := osfile.Open(name, os.O_RDWR|osfile.NoFollow); err == nil {
		if osfile.Lock(f) == nil {
			(&File{File: f}).Discard()
		}
		f.Close()
	}
}

// Commit replaces the old file by the new one, and closes it. It returns when both the contents and
// the name are on the disk. Once the contents are, which may take long, check returns an error if a
// file that has come to the path must stay. After an error of the last step, syncing the directory,
// the file is replaced, but a crash of the machine may undo that.
func (f *File) Commit(check func(path string) error) error {
	err := f.Sync()
	if err == nil {
		_, err = osfile.Target(f.path)
	}
	if err = cmp.Or(err, check(f.path)); err != nil {
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
