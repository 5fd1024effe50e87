// Package atomicfile replaces a file by another as a whole: whoever opens it sees
// the old one or the new one, also after a crash.
//
// The new file is written in the same directory, under a name that no other writer has,
// synced, and renamed; then the directory is synced. A writer that dies leaves its file
// there. The next one that replaces the same file removes it: nobody holds its lock.
//
// Only a regular file is replaced. Where the path is a symbolic link, the file that it leads
// to is replaced, and the link stays.
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

// File is the new file. It is for its owner alone to read (mode 0600).
type File struct {
	*os.File
	path string // of the file to be replaced
	done bool
}

// Create makes a new file that is to take the place of the one at path, and the
// directory if there is none. It removes what dead writers have left.
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

// checkReplaceable returns an error if what is at path must not be replaced.
func checkReplaceable(path string) error {
	err := osfile.CheckRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// prefixOf returns what the names of all new files for path begin with. A name
// must not be longer than file systems take.
func prefixOf(path string) string {
	base := filepath.Base(path)
	return "." + base[:min(len(base), 200)] + "."
}

// removeLeftovers removes the files of writers to path that have died. What cannot be
// removed stays: it is no reason not to write.
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

// Commit puts the new file in the place of the old one, and closes it. It returns when both
// the file and its name are on the disk. After an error of the last step, the new file
// has its place, but may lose it if the machine dies.
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

// Discard removes the new file, unless it has taken its place.
func (f *File) Discard() {
	if f.done {
		return
	}
	f.done = true
	unlock(f.File)
	f.Close()
	os.Remove(f.Name())
}
