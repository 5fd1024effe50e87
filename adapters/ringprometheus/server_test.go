package ringprometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// A Prometheus scrapes a cache, and answers every query of the dashboard.
func TestDashboard_WithPrometheus(t *testing.T) {
	caches, pages := NewCollector(), newCache(t)
	require.NoError(t, caches.Register("pages", pages))
	server := httptest.NewServer(promhttp.HandlerFor(registryOf(t, caches), promhttp.HandlerOpts{}))
	defer server.Close()
	prometheus := startPrometheus(t, strings.TrimPrefix(server.URL, "http://"))

	n := 0
	missing := queries(t)
	require.Eventually(t, func() bool {
		n++
		work(t, pages, n)
		missing = slices.DeleteFunc(missing, func(query string) bool {
			return answers(prometheus, query)
		})
		return len(missing) == 0
	}, time.Minute, 100*time.Millisecond, "no answer to %q", &missing)
}

// work calls all that the dashboard shows.
func work(t testing.TB, c *ringcache.Cache, n int) {
	key := fmt.Append(nil, n)
	assert.NoError(t, c.Set(key, key))
	assert.True(t, c.Has(key))
	c.Has([]byte("absent"))
	fails := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, errors.New("no database")
	}
	_, err := c.GetOrLoad(context.Background(), nil, fmt.Append(nil, "failing ", n), fails)
	assert.Error(t, err)
}

// answers tells whether a query has a number for an answer.
func answers(prometheus, query string) bool {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	body, err := fetch(prometheus + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil || json.Unmarshal(body, &answer) != nil || len(answer.Data.Result) == 0 {
		return false
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] == "NaN" || r.Metric["cache"] != "pages" {
			return false
		}
	}
	return true
}

// startPrometheus returns the address of a Prometheus that scrapes target ten times a
// second.
func startPrometheus(t *testing.T, target string) string {
	t.Helper()
	program, dir := tool(t, "prometheus"), t.TempDir()
	config := fmt.Sprintf(`{"global": {"scrape_interval": "100ms", "scrape_timeout": "100ms"},
		"scrape_configs": [{"job_name": "test", "metrics_path": "/",
			"static_configs": [{"targets": [%q]}]}]}`, target)
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program, "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	log := new(strings.Builder)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		stop()
		if err := command.Wait(); !errors.Is(err, context.Canceled) {
			assert.NoError(t, err)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	return "http://" + address
}

func fetch(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", r.Status, body)
	}
	return body, errors.Join(err, r.Body.Close())
}
