//go:build linux

package namespace

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

const namespaceDeath = "RINGCACHE_TEST_NAMESPACE_DEATH"

// namespaceLife writes a version under some keys, invalidates, and so on. done is the last
// version that was invalidated.
func namespaceLife(c *ringcache.Cache, done *atomic.Uint64, more func() bool) error {
	n := c.Namespace("n")
	for version := done.Load() + 1; more(); version++ {
		for k := range byte(5) {
			v := binary.LittleEndian.AppendUint64(nil, version)
			if err := n.Set([]byte{k}, v); err != nil {
				return err
			}
		}
		if version%8 == 0 {
			time.Sleep(time.Millisecond) // some deaths are to come while it has entries
		}
		if n.Reset(); version%3 == 0 {
			if err := c.DropNamespace("n"); err != nil {
				return err
			}
			n = c.Namespace("n")
		}
		done.Store(version)
	}
	return nil
}

// TestNamespaceDeath_Child is the process that is killed.
func TestNamespaceDeath_Child(t *testing.T) {
	path := os.Getenv(namespaceDeath)
	if path == "" {
		t.Skip("it is run by the test below")
	}
	done := &ringtest.DeathCounts(t, path+".counts")[0]
	require.NoError(t, namespaceLife(ringtest.OpenFile(t, path, ringtest.MinBytes), done,
		func() bool { return true }))
}

// A process that is killed while it resets leaves nothing that it had reset.
func TestNamespaceDeath_NothingInvalidatedComesBack(t *testing.T) {
	path := filepath.Join(ringtest.DirInMemory(t), "cache")
	done := &ringtest.DeathCounts(t, path+".counts")[0]
	exe, err := os.Executable()
	require.NoError(t, err)
	found := 0
	// Many deaths come while a namespace is empty.
	for n := 0; n < *ringtest.DeathRuns || found == 0; n++ {
		last := done.Load()
		cmd := exec.Command(exe, "-test.run=^TestNamespaceDeath_Child$")
		cmd.Env = append(os.Environ(), namespaceDeath+"="+path)
		require.NoError(t, cmd.Start())
		for begin := time.Now(); done.Load() < last+100; time.Sleep(time.Millisecond) {
			require.Less(t, time.Since(begin), ringtest.HangLimit)
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
		require.NoError(t, cmd.Process.Kill())
		require.ErrorContains(t, cmd.Wait(), "killed")

		c := ringtest.OpenFile(t, path, ringtest.MinBytes)
		for k := range byte(5) {
			if v, ok := c.Namespace("n").HasGet(nil, []byte{k}); ok {
				require.Greater(t, binary.LittleEndian.Uint64(v), done.Load())
				found++
			}
		}
		require.NoError(t, ringtest.Validate(c))
		require.NoError(t, c.Close())
	}
	t.Logf("%d versions, %d entries found", done.Load(), found)
}
