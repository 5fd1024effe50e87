//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"errors"
	"os"

	"github.com/ringcache/ringcache/internal/osfile"
)

// lock takes the lock of a file, which goes with the process that has it open, and
// reports false if somebody else has it. Where the file system has no locks there
// is none to take, and nothing is removed.
func lock(f *os.File) bool { return !errors.Is(osfile.Lock(f), osfile.ErrLocked) }

func unlock(f *os.File) { osfile.Unlock(f) }

// removeIdle removes the file of that name unless it is locked.
func removeIdle(name string) {
	f, err := osfile.Open(name, os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	if osfile.Lock(f) == nil {
		os.Remove(name)
		osfile.Unlock(f)
	}
}

// rename puts the file in its place, and then gives up its lock.
func (f *File) rename() error {
	defer f.Close()
	defer unlock(f.File)
	return os.Rename(f.Name(), f.path)
}
