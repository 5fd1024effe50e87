package atomicfile

import (
	"os"
	"path/filepath"
)

// Move puts the file at path in place of another, which it removes. That it has done so is
// on the disk when it returns.
func Move(path, of string) error {
	if err := os.Rename(path, of); err != nil {
		return err
	}
	return syncDir(filepath.Dir(of))
}

// Remove removes the file at path, if there is one.
func Remove(path string) { _ = os.Remove(path) }
