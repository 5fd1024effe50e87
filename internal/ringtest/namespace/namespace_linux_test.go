package namespace

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A process sets values in a namespace and resets it as fast as it can, and is killed
// at some moment. Every value is the number of calls of Reset that had returned, which
// is in memory that outlives the process.

const (
	namespaceFile    = "RINGCACHE_TEST_NAMESPACE"
	namespaceWorkers = 2
	namespaceKeys    = 40
)

// TestNamespace_Child is the process that is killed.
func TestNamespace_Child(t *testing.T) {
	path := os.Getenv(namespaceFile)
	if path == "" {
		t.Skip("it is run by the test below")
	}
	counts := ringtest.DeathCounts(t, path+".counts")
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: ringtest.MinBytes, File: path})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for w := range namespaceWorkers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			n := c.Namespace(fmt.Sprint(w))
			for {
				v := binary.LittleEndian.AppendUint64(nil, counts[w].Load())
				for k := range namespaceKeys {
					if err := n.Set([]byte{byte(k)}, append(v, make([]byte, k)...)); err != nil {
						panic(err)
					}
					if k%16 == w {
						_ = c.Set(fmt.Append(nil, v[:3], k), make([]byte, 5000)) // others want room
					}
				}
				n.Reset()
				counts[w].Add(1)
			}
		}()
	}
	wg.Wait()
}

// killNamespaces runs the child for a while and kills it, if it has begun.
func killNamespaces(t *testing.T, path string, after time.Duration, begun func() bool) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestNamespace_Child$", "-test.count=1")
	cmd.Env = append(os.Environ(), namespaceFile+"="+path)
	out := new(ringtest.LockedBuffer)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	time.Sleep(after)
	assert.Eventually(t, begun, ringtest.HangLimit, time.Millisecond, "child: %s", out)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed", "child: %s", out)
}

func TestNamespace_NothingInvalidatedComesBackAfterDeath(t *testing.T) {
	t.Parallel()
	deaths := *ringtest.DeathRuns
	if *ringtest.LongRun {
		deaths = 500
	}
	path := filepath.Join(ringtest.DirInMemory(t), "cache")
	rnd := ringtest.NewRand(1)
	counts := ringtest.DeathCounts(t, path+".counts")
	warm := 0
	for life := range deaths {
		before := counts[0].Load()
		killNamespaces(t, path, time.Duration(20+rnd.IntN(120))*time.Millisecond,
			func() bool { return counts[0].Load() > before })
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: ringtest.MinBytes, File: path})
		require.NoError(t, err)
		found := 0
		for w := range namespaceWorkers {
			n := c.Namespace(fmt.Sprint(w))
			for k := range namespaceKeys {
				v, ok := n.HasGet(nil, []byte{byte(k)})
				if !ok {
					continue
				}
				found++
				require.Len(t, v, 8+k)
				set := binary.LittleEndian.Uint64(v)
				require.GreaterOrEqual(t, set, counts[w].Load(), "life %d: it was invalidated", life)
			}
		}
		if found > 0 {
			warm++
		}
		require.NoError(t, c.Close())
	}
	calls := counts[0].Load() + counts[1].Load()
	t.Logf("%d deaths after %d calls of Reset, %d warm", deaths, calls, warm)
	require.NotZero(t, warm)
	require.NotZero(t, calls)
}
