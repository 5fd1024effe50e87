package system

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Save writes the names of all directories that it makes to the disk, or a power loss could leave a
// snapshot that no path leads to.
func TestSave_SyncsDirectories(t *testing.T) {
	if ringtest.ServeAnswered(t, func(path string) string {
		c := ringcache.New(ringtest.LeastMaxBytes)
		defer c.Close()
		return fmt.Sprint(c.SaveToFile(path))
	}) {
		return
	}
	dir, err := os.MkdirTemp("/dev/shm", "ringcache")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	child := ringtest.StartAnswered(t, dir)
	for _, test := range []struct {
		path string
		made int // directories
	}{
		{"one", 0}, {"a/b/c/two", 3}, {"a/b/c/two", 0}, {"a/b/c/three", 0}, {"a/d/four", 1},
		{"a/../e//f/five", 2},
	} {
		child.Answer(ringtest.Answer{})
		reply, err := child.Ask(dir+"/"+test.path, time.Minute)
		require.NoError(t, err)
		require.Equal(t, "<nil>", reply, test.path)
		calls := child.Answer(ringtest.Answer{})
		require.Equal(t, test.made, calls["mkdirat"], test.path)
		// The parent of each, the file, and its directory.
		require.Equal(t, test.made+2, calls["fsync"], test.path)
		require.FileExists(t, filepath.Join(dir, test.path))
	}
}
