//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"errors"
	"os"

	"github.com/ringcache/ringcache/internal/osfile"
)

// lock takes the lock of a file, which ends with the process, and reports false if another process
// has it. On a file system without locks it reports true, and leftovers are not removed.
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
