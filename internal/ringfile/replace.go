package ringfile

import (
	"os"
	"path/filepath"
)

// Remove removes what a process has left at path that died before Replace.
func Remove(path string) { _ = os.Remove(path) }

// Replace puts the file at path in place of another, which it removes. That it has done so
// is on the disk when it returns.
func Replace(path, of string) error {
	if err := os.Rename(path, of); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(of))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
