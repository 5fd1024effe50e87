package ringfile

import "os"

// Remove removes what a process has left at path that died before Replace.
func Remove(path string) { _ = os.Remove(path) }

// Replace puts the file at path in place of another, which it removes.
func Replace(path, of string) error { return os.Rename(path, of) }
