package persist

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A file system on a disk that is a file, of which a copy is what a power loss leaves.

// runOrSkip runs a program that the test cannot do without.
func runOrSkip(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("%s %v: %v: %s", name, args, err, out)
	}
}

// mountImage mounts the file system in a file.
func mountImage(t *testing.T, image string) (dir string, unmount func()) {
	t.Helper()
	dir = t.TempDir()
	runOrSkip(t, "mount", "-o", "loop", image, dir)
	unmount = sync.OnceFunc(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	t.Cleanup(unmount)
	return dir, unmount
}

// commit has the file system write its journal, and no data of other files.
func commit(t *testing.T, dir string) {
	f, err := os.Create(filepath.Join(dir, "another"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("another program's")
	require.NoError(t, err)
	require.NoError(t, f.Sync())
}

// After a power loss a cache starts empty, or with what it had when it was closed, on a real
// ext4: there the length of a file is on the disk long before its bytes.
func TestFile_PowerLossOnExt4(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes and mounts file systems")
	}
	if !chunk.OffHeap || os.Geteuid() != 0 {
		t.Skip("it takes Options.File, and root, to mount file systems")
	}
	disks := ringtest.MountTmpfs(t, 384)
	image, copied := filepath.Join(disks, "disk"), filepath.Join(disks, "copy")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 192<<20))
	runOrSkip(t, "mkfs.ext4", "-q", image)
	dir, _ := mountImage(t, image)
	const n = 1000
	checkAfterPowerLoss := func(when string, want int) {
		t.Helper()
		runOrSkip(t, "cp", "--sparse=always", image, copied)
		after, unmount := mountImage(t, copied)
		defer unmount()
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20,
			File: filepath.Join(after, "cache")})
		require.NoError(t, err, when)
		defer func() { require.NoError(t, c.Close()) }()
		require.NoError(t, ringtest.Validate(c))
		for id := range uint32(n) {
			if v, ok := c.HasGet(nil, ringtest.TrafficKey(nil, id)); ok {
				require.Equal(t, id, binary.LittleEndian.Uint32(v))
			}
		}
		if want > 0 {
			require.Equal(t, want, c.Len(), when)
		}
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
	}
	c := ringtest.OpenFile(t, filepath.Join(dir, "cache"), 32<<20)
	checkAfterPowerLoss("as soon as there is a cache", 0)
	for id := range uint32(n) {
		v := binary.LittleEndian.AppendUint32(nil, id)
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), append(v, make([]byte, 1000)...)))
	}
	checkAfterPowerLoss("nothing was written back", 0)
	commit(t, dir)
	checkAfterPowerLoss("the length was", 0)
	require.NoError(t, c.Close())
	checkAfterPowerLoss("it was closed", n)
	c = ringtest.OpenFile(t, filepath.Join(dir, "cache"), 32<<20)
	for id := range uint32(n / 2) {
		c.Del(ringtest.TrafficKey(nil, id))
	}
	commit(t, dir)
	checkAfterPowerLoss("it was opened again", 0)
	require.NoError(t, c.Close())
	checkAfterPowerLoss("it was closed again", n/2)
}
