package persist

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/ringtest"
)

// What the disk can no longer read is lost, with the entries of the same ring, and nothing else.
// The file system is ext2: truncating a file of ext4 that has lost an extent never returns.
func TestFile_BadSectors(t *testing.T) {
	g := manySmallChunks
	for mkfs, option := range map[string]string{"mkfs.ext2": "-F"} {
		t.Run(mkfs, func(t *testing.T) {
			skipWithout(t, mkfs)
			if !ringtest.InChild(t) {
				return
			}
			const entries = 20_000
			dir := mountNew(t, mkfs, option)
			path := filepath.Join(dir, "cache")
			c := ringtest.MustOpen(t, g, path)
			ringtest.FillCache(t, c, 0, entries, 1000)
			require.NoError(t, c.Close())
			cutDisk(t, dir, path)
			var failed error
			for i := range 2 {
				c := ringtest.MustOpen(t, g, path)
				lost := c.Stats().File.DiscardedRecords
				require.Equal(t, i == 0, lost > 0 && failed == nil)
				require.Greater(t, c.Len(), entries/20)
				require.NoError(t, ringtest.Validate(c))
				ringtest.FillCache(t, c, entries, 2*entries, 1000)
				if failed = c.Close(); failed != nil {
					require.ErrorIs(t, failed, unix.EIO) // it gave new chunks places behind the disk's end
				}
			}
		})
	}
}

// cutDisk makes a part of a file unreadable: it ends the disk that is mounted at dir in the middle
// of the file, whose pages it drops from memory.
func cutDisk(t *testing.T, dir, path string) {
	t.Helper()
	runOrSkip(t, "sync")
	out, err := exec.Command("filefrag", "-v", "-b1024", path).Output()
	if err != nil {
		t.Skip(err)
	}
	at := int64(0)
	parts := regexp.MustCompile(`(?m)^ *\d+: *(\d+)\.\. *\d+: *(\d+)\.\.`)
	for _, m := range parts.FindAllStringSubmatch(string(out), -1) {
		logical, _ := strconv.ParseInt(m[1], 10, 64)
		if physical, _ := strconv.ParseInt(m[2], 10, 64); logical < 18<<10 {
			at = max(at, physical<<10)
		}
	}
	require.NotZero(t, at)
	loop, err := exec.Command("findmnt", "-no", "SOURCE", dir).Output()
	require.NoError(t, err)
	device := strings.TrimSpace(string(loop))
	image, err := exec.Command("losetup", "-nO", "BACK-FILE", device).Output()
	require.NoError(t, err)
	require.NoError(t, os.Truncate(strings.TrimSpace(string(image)), at))
	runOrSkip(t, "losetup", "-c", device)
	require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0))
}
