//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package osfile

import (
	"io/fs"
)

// On these systems, owner, mode and lock of a file are not available in this form. Ring files are
// not supported.
const (
	nonBlocking = 0
	hasModes    = false
)

func checkOwner(fs.FileInfo) error { return nil }

// SyncDir does nothing: these systems have no such call, or need none.
func SyncDir(string) error { return nil }
