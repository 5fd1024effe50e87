package ringprometheus

import (
	"os"
	"os/exec"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

const floor = 32 << 20

func newCache(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(floor)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// registryOf returns a registry that checks all that it is given.
func registryOf(t testing.TB, c *Collector) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	return r
}

// register shows what update says.
func (c *Collector) register(name string, update func(s *ringcache.Stats) bool) error {
	return c.add(name, &metrics.Source{Update: update})
}

// fixed returns a function that reads statistics which are always s.
func fixed(s *ringcache.Stats) func(to *ringcache.Stats) bool {
	return func(to *ringcache.Stats) bool {
		*to = *s
		return true
	}
}

// tool returns the path of a program of Debian's package prometheus. Without it the test
// is skipped, but not in CI.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("RINGCACHE_CI") == "" {
		t.Skipf("%s is not installed: apt-get install prometheus", name)
	}
	require.NoError(t, err)
	return path
}

// sampleCount is how many samples a cache has.
var sampleCount = func() (n int) {
	for _, m := range shown {
		n += len(m.samples)
	}
	return n
}()
