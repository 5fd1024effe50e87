//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package osfile

import (
	"errors"
	"runtime"
)

// On these systems, owner, mode and lock of a file are not available in this form. Ring files are
// not supported.
const nonBlocking, NoFollow = 0, 0

func checkOwner(File) error { return nil }

// MakePrivate, Unlock and SyncDir do nothing: these systems have no such calls, or need none.
func MakePrivate(File) error { return nil }
func Unlock(File)            {}
func SyncDir(string) error   { return nil }

// Lock does nothing on Windows, where no open file can be removed.
func Lock(File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return errors.ErrUnsupported
}
