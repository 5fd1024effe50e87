package ringprometheus

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
	"github.com/ringcache/ringcache/adapters/internal/metricstest"
)

// Every field is shown by the right metric: testdata/metrics.txt has been read by a person.
// RINGCACHE_UPDATE=1 writes it anew.
func TestMetrics_Golden(t *testing.T) {
	s := metricstest.Stats()
	caches := NewCollector()
	require.NoError(t, caches.add("pages", &metrics.Source{Update: fixed(&s)}))
	const file = "testdata/metrics.txt"
	if os.Getenv("RINGCACHE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, exposition(t, caches), 0o644))
	}
	want, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, want.Close()) }()
	require.NoError(t, testutil.CollectAndCompare(caches, want))
}

// exposition returns what Prometheus would scrape.
func exposition(t testing.TB, c *Collector) []byte {
	t.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registryOf(t, c), promhttp.HandlerOpts{}).
		ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, rec.Code)
	return rec.Body.Bytes()
}

// The linter of client_golang.
func TestMetrics_Lint(t *testing.T) {
	caches := NewCollector()
	require.NoError(t, caches.Register("pages", newCache(t)))
	problems, err := testutil.CollectAndLint(caches)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// The linter of Prometheus itself.
func TestMetrics_Promtool(t *testing.T) {
	caches := NewCollector()
	require.NoError(t, caches.Register("pages", newCache(t)))
	check := exec.Command(tool(t, "promtool"), "check", "metrics")
	check.Stdin = bytes.NewReader(exposition(t, caches))
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// The README lists exactly the metrics that there are.
func TestMetrics_Readme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var want, got []string
	for _, m := range shown {
		want = append(want, nameOf(m))
	}
	for _, m := range readmeRow.FindAllSubmatch(text, -1) {
		got = append(got, string(m[1]))
	}
	require.Equal(t, want, got)
}
