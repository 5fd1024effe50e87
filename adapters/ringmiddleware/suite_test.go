package ringmiddleware

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the results of the suite to the README")

// suiteArchive is the repository http-tests/cache-tests at a commit, without what the tests do not
// need; its licence is in it. The version in npm is five years older. It was made by
//
//	git archive --format=tar b55b8bd LICENSE tests test-engine results/index.mjs \
//	  results/{apache,caddy,nginx,squid,trafficserver,varnish}.json | gzip -9n
const suiteArchive = "testdata/suite/cache-tests-b55b8bd.tar.gz"

// The tests that need not pass, by the beginning of their names, and the reason.
var unpassed = map[string]string{
	"headers-store-Content-Range": "a response with Content-Range is not stored, and the test has " +
		"a 200 with one",
	"headers-store-Set-Cookie": "a response that sets a cookie is for one client",
	"headers-store-Transfer-Encoding": "Go's HTTP client refuses the unknown coding of the test, " +
		"so the proxy answers 502",

	"conditional-lm-fresh-no-lm":      "`Date` does not stand in for a missing `Last-Modified`",
	"freshness-expires-wrong-case-tz": "HTTP dates end with GMT, in capital letters",
	"heuristic-":                      "`Options.TTL` is the lifetime of responses that state none",
	"method-POST":                     "responses to POST are not stored",
	"other-set-cookie":                "a response that sets a cookie is for one client",
	"partial-store-":                  "partial responses are not stored",
	"status-":                         "only the codes in the table above are stored",
	"status-200-must-understand":      "`must-understand` is treated as `no-store`",
	"vary-normalise-":                 "values of headers are compared byte by byte",
}

// suiteNames are those of the caches that are called otherwise there.
var suiteNames = map[string]string{
	"ATS": "Traffic Server", "caddy": "Caddy's cache-handler", "httpd": "Apache httpd",
}

// suiteResults are what testdata/suite/run.mjs prints.
type suiteResults struct {
	Required, Optimal int
	Retried           []string // that passed when they were run again
	Caches            []suiteCache
	Failed            []struct {
		ID, Message string
		Required    bool
	}
}

// suiteCache says how many tests a cache passes, and in how many it serves what it must not.
type suiteCache struct {
	Name, Version             string
	Required, Optimal, Served int
}

// The public tests of HTTP caches, with the middleware in front of a reverse proxy. They take a
// minute, and fetch a package of npm, so only CI runs them, or RINGCACHE_CI=1 go test -run Suite.
func TestSuite(t *testing.T) {
	if os.Getenv("RINGCACHE_CI") == "" {
		t.Skip("RINGCACHE_CI is not set")
	}
	dir := t.TempDir()
	unpack(t, suiteArchive, dir)
	for _, name := range []string{"run.mjs", "package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("testdata/suite", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	node(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	proxy := httputil.NewSingleHostReverseProxy(startOrigin(t, dir))
	// The option lets stale-while-revalidate have its say, and applies to no other response.
	_, m := newMiddleware(t, Options{StaleWhileRevalidate: 1})
	server := httptest.NewServer(m.Handler(proxy))
	defer server.Close()

	var results suiteResults
	out := node(t, dir, "node", "--no-warnings", "run.mjs", server.URL)
	require.NoError(t, json.Unmarshal(out, &results))
	t.Logf("passed when run again: %v", results.Retried)
	require.Equal(t, 160, results.Required)
	ours := results.Caches[0]
	require.GreaterOrEqual(t, ours.Required, 157)
	require.Zero(t, ours.Served, "responses that must not be served")
	publish(t, results)
}

// unpassedName returns the longest name in unpassed with which a test begins.
func unpassedName(id string) (name string) {
	for n := range unpassed {
		if strings.HasPrefix(id, n) && len(n) > len(name) {
			name = n
		}
	}
	return name
}

// unpassedLines lists the tests that did not pass with the reasons, the required ones first.
func unpassedLines(t *testing.T, results suiteResults) string {
	counts := map[string]int{}
	var names []string
	for _, required := range []bool{true, false} {
		for _, failed := range results.Failed {
			if failed.Required != required {
				continue
			}
			name := unpassedName(failed.ID)
			require.NotEmpty(t, name, "%s: %s", failed.ID, failed.Message)
			if counts[name]++; counts[name] == 1 {
				names = append(names, name)
			}
		}
	}
	var b strings.Builder
	for _, name := range names {
		at := 0
		for i, word := range strings.Fields(fmt.Sprintf("- `%s` (%d): %s.", name, counts[name],
			unpassed[name])) {
			switch at += len(word) + 1; {
			case i == 0:
			case at > 100:
				at = len(word) + 3
				_, _ = fmt.Fprint(&b, "\n  ")
			default:
				_, _ = fmt.Fprint(&b, " ")
			}
			_, _ = fmt.Fprint(&b, word)
		}
		_, _ = fmt.Fprintln(&b)
	}
	return b.String()
}

// publish compares the README with the results, or writes them there.
func publish(t *testing.T, results suiteResults) {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "| cache | required, of %d | optimal, of %d | served in error |\n"+
		"|---|--:|--:|--:|\n", results.Required, results.Optimal)
	slices.SortStableFunc(results.Caches, func(x, y suiteCache) int {
		return cmp.Compare(y.Required, x.Required)
	})
	for _, c := range results.Caches {
		version, _, _ := strings.Cut(strings.ReplaceAll(c.Version, "+", "-"), "-")
		name := cmp.Or(suiteNames[c.Name], c.Name) + " " + version
		if version == "" {
			name = "**" + c.Name + "**"
		}
		_, _ = fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, c.Required, c.Optimal, c.Served)
	}
	_, _ = fmt.Fprintf(&b, "\nThe tests that the middleware does not pass, the required ones first:"+
		"\n\n%s", unpassedLines(t, results))
	const from, to = "<!-- suite -->\n", "<!-- end of suite -->"
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(readme), from)
	require.True(t, ok)
	was, after, ok := strings.Cut(rest, to)
	require.True(t, ok)
	if *update {
		text := before + from + b.String() + to + after
		require.NoError(t, os.WriteFile("README.md", []byte(text), 0o644))
		return
	}
	require.Equal(t, was, b.String(), "RINGCACHE_CI=1 go test -run Suite . -update writes it")
}

// startOrigin starts the server of the suite, and returns its address.
func startOrigin(t *testing.T, dir string) *url.URL {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	cmd := exec.Command("node", "test-engine/server/server.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port="+port,
		"npm_config_pidfile="+filepath.Join(dir, "pid"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Listening") {
	}
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	return &url.URL{Scheme: "http", Host: "localhost:" + port}
}

// node runs a program of Node in a folder and returns what it has printed.
func node(t *testing.T, dir, program string, args ...string) []byte {
	t.Helper()
	var out, failure bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &failure
	require.NoError(t, cmd.Run(), "%s", &failure)
	return out.Bytes()
}

// unpack writes the files of an archive to a folder.
func unpack(t *testing.T, archive, dir string) {
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			require.NoError(t, os.MkdirAll(path, 0o700))
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
	}
}
