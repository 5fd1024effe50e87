//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package atomicfile

import (
	"errors"
	"os"
	"sync"
)

// writing has the names of the new files of this process. On Windows, nobody can
// remove a file that another process has open.
var writing sync.Map

// lock notes that this process writes the file.
func lock(f *os.File) bool {
	writing.Store(f.Name(), true)
	return true
}

// unlock notes that it does no more.
func unlock(f *os.File) { writing.Delete(f.Name()) }

// removeIdle removes the file of that name unless somebody writes it.
func removeIdle(name string) {
	if _, busy := writing.Load(name); !busy {
		os.Remove(name)
	}
}

// rename puts the file in its place. Windows wants it closed.
func (f *File) rename() error {
	defer unlock(f.File)
	return errors.Join(f.Close(), os.Rename(f.Name(), f.path))
}
