// Package atomicfile replaces a file as a whole: a program that opens it sees either the old
// contents or the new ones, even after a crash.
//
// The new file is written in the same directory, under a name that no other writer has, synced, and
// renamed; then the directory is synced. A writer that dies leaves its new file behind. The next
// writer that replaces the same file removes it, since no process holds its lock.
//
// Only a regular file is replaced. If the path is a symbolic link, the link stays, and the file
// that it leads to is replaced.
package atomicfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringcache/ringcache/internal/osfile"
)

const suffix = ".ringcache-tmp"

// File is the new file. Only its owner can read it (mode 0600).
type File struct {
	*os.File
	path string // of the file to be replaced
	done bool
}

// Create creates a new file that is to replace the one at path, and the directory if there is none.
// It removes the files that dead writers have left.
func Create(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	path, err := osfile.Resolve(path)
	if err != nil {
		return nil, err
	}
	if err := checkReplaceable(path); err != nil {
		return nil, err
	}
	removeLeftovers(path)
	dir, prefix := filepath.Dir(path), prefixOf(path)
	for {
		var unique [8]byte
		rand.Read(unique[:]) // never fails
		name := filepath.Join(dir, prefix+hex.EncodeToString(unique[:])+suffix)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Another writer may take it for a leftover until it is locked.
		if lock(f) && osfile.IsAt(f, name) {
			return &File{File: f, path: path}, nil
		}
		f.Close()
	}
}

// checkReplaceable returns an error if there is something other than a regular file at path.
func checkReplaceable(path string) error {
	err := osfile.CheckRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
	dir, prefix := filepath.Dir(path), prefixOf(path)
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) ||
			len(name) != len(prefix)+16+len(suffix) {
			continue
		}
		removeIdle(filepath.Join(dir, name))
	}
}

// Commit replaces the old file by the new one, and closes it. It returns when both the contents and
// the name are on the disk. After an error of the last step, syncing the directory, the file is
// replaced, but a crash of the machine may undo that.
func (f *File) Commit() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := checkReplaceable(f.path); err != nil {
		return err
	}
	f.done = true
	if err := f.rename(); err != nil {
		os.Remove(f.Name())
		return err
	}
	return osfile.SyncDir(filepath.Dir(f.path))
}

// Discard removes the new file, unless Commit has replaced the old one.
func (f *File) Discard() {
	if f.done {
		return
	}
	f.done = true
	unlock(f.File)
	f.Close()
	os.Remove(f.Name())
}
