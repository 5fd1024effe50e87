//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package atomicfile

import (
	"errors"
	"os"
	"sync"
)

// writing has the names of the new files of this process. Those of other processes need no lock on
// Windows: a file cannot be removed while another process has it open.
var writing sync.Map

// lock notes that this process writes the file.
func lock(f *os.File) bool {
	writing.Store(f.Name(), true)
	return true
}

// unlock notes that this process no longer writes the file.
func unlock(f *os.File) { writing.Delete(f.Name()) }

// removeIdle removes the file of that name unless this process writes it.
func removeIdle(name string) {
	if _, busy := writing.Load(name); !busy {
		os.Remove(name)
	}
}

// rename renames the file to its path. On Windows, it must be closed before.
func (f *File) rename() error {
	defer unlock(f.File)
	return errors.Join(f.Close(), os.Rename(f.Name(), f.path))
}
