//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package osfile

import (
	"io/fs"
)

// On these systems a file has no owner or mode that a process could judge by, and no lock;
// files of rings do not exist.
const (
	nonBlocking = 0
	hasModes    = false
)

func checkOwner(fs.FileInfo) error { return nil }

// SyncDir does nothing: these systems have no such call, or need none.
func SyncDir(string) error { return nil }
