package persist

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A disk that is full, for this process at least, leaves the old file as it was.
func TestSnapshot_FullDisk(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) {
		return
	}
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	fillNoise(t, c, 0, 50_000)
	old, path := ringtest.SnapshotOf(t, c)
	fillNoise(t, c, 50_000, 50_000)
	for _, most := range []uint64{0, 100, 1 << 20, 6 << 20} {
		limit := unix.Rlimit{Cur: most, Max: unix.RLIM_INFINITY}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		var errs []error
		for _, workers := range []int{1, 2} {
			errs = append(errs, c.Save(t.Context(), path, ringcache.SaveOptions{Concurrency: workers}))
		}
		partial := c.Save(t.Context(), path, ringcache.SaveOptions{Partial: true})
		limit.Cur = unix.RLIM_INFINITY
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		for _, err := range append(errs, partial) {
			require.ErrorIs(t, err, syscall.EFBIG)
			require.ErrorContains(t, err, "ringcache: save snapshot: "+path)
		}
		require.True(t, bytes.Equal(old, ringtest.ReadFile(t, path)), "the old file has changed")
		require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
	}
	require.NoError(t, c.SaveToFile(path))
	require.Equal(t, c.Len(), ringtest.MustLoad(t, path).Len())
}

// fillNoise sets entries with values that cannot be packed.
func fillNoise(t *testing.T, c *ringcache.Cache, first, n uint32) {
	for id := range n {
		v := ringtest.Stamp{ID: first + id, Version: 1, Size: 100}.Value(nil)
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, first+id), v))
	}
}

const snapshotEnv = "RINGCACHE_TEST_SNAPSHOT"

// A process that is killed while it saves leaves the old file as it was, or a whole new
// one. The next save removes what it has left beside it, but not what others write.
func TestSnapshot_Killed(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(snapshotEnv); path != "" {
		saveUntilKilled(t, path)
		return
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "snapshot")
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	ringtest.FillCache(t, c, 0, 1000, 100)
	require.NoError(t, c.SaveToFile(path))
	littered, deaths := 0, 20
	if *ringtest.LongRun {
		deaths = 300
	} else if ringtest.RaceEnabled {
		deaths = 5
	}
	for i := range deaths {
		cmd := exec.Command(exe, "-test.run=^TestSnapshot_Killed$", "-test.count=1")
		cmd.Env = append(os.Environ(), snapshotEnv+"="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 1)) // it saves
		require.NoError(t, err)
		time.Sleep(time.Duration(i*i%17) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())

		d, err := ringcache.LoadFromFile(path)
		require.NoError(t, err)
		require.Contains(t, []int{1000, 50_000}, d.Len())
		ringtest.CloseCache(t, d)
		littered += len(ringtest.Litter(t, filepath.Dir(path)))
		if i%5 == 0 {
			require.NoError(t, c.SaveToFile(path))
			require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
		}
	}
	require.NotZero(t, littered, "none was killed while it saved: the test proves nothing")
	require.NoError(t, c.SaveToFile(path))
	require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
}

func saveUntilKilled(t *testing.T, path string) {
	c := ringtest.NewCache(ringtest.Default(ringtest.MinBytes))
	fillNoise(t, c, 0, 50_000)
	for first := true; ; {
		require.NoError(t, c.Save(t.Context(), path, ringcache.SaveOptions{Progress: func(int64, int64) {
			if first {
				first = false
				os.Stdout.WriteString("s")
			}
		}}))
	}
}
