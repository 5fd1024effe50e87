package ringprometheus

import (
	"os"
	"os/exec"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
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

// register shows what update says, and no ages.
func (c *Collector) register(name string, update updater) error {
	none := func() (z ringcache.Sizing) { return z }
	return c.add(name, &source{update: update, sizing: none})
}

// fixed is an updater of a cache whose statistics are always s.
func fixed(s *ringcache.Stats) updater {
	return func(to *ringcache.Stats) bool {
		*to = *s
		return true
	}
}

// numbers calls fn with each number of a struct, and of those nested in it, by the names that
// lead to it: Policy.GhostHits.
func numbers(v reflect.Value, path string, fn func(name string, field reflect.Value)) {
	for i := range v.NumField() {
		name := path + v.Type().Field(i).Name
		if v.Field(i).Kind() == reflect.Struct {
			numbers(v.Field(i), name+".", fn)
		} else {
			fn(name, v.Field(i))
		}
	}
}

// setNumber gives a field of Stats a value, whatever kind of number it is.
func setNumber(t testing.TB, field reflect.Value, n int) {
	t.Helper()
	switch {
	case field.CanUint():
		field.SetUint(uint64(n))
	case field.CanInt():
		field.SetInt(int64(n))
	case field.CanFloat():
		field.SetFloat(float64(n))
	default:
		require.Fail(t, "no number", "%v", field.Type())
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
	for _, m := range metrics {
		n += len(m.samples)
	}
	return n
}()
