package ringmiddleware

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
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

// suiteEnv names a checkout of the repository http-tests/cache-tests in which npm install was run.
// It has more tests than the version in npm, and newer results of other caches.
const suiteEnv = "RINGCACHE_CACHE_TESTS"

// The required tests that do not pass, and the reason.
var unpassed = map[string]string{
	"headers-store-Content-Range": "a response with Content-Range is not stored, and the test has " +
		"a 200 with one",
	"headers-store-Set-Cookie": "a response that sets a cookie is for one client",
	"headers-store-Transfer-Encoding": "Go's HTTP client refuses the unknown coding of the test, " +
		"so the proxy answers 502",
}

// The other required tests of the version in npm, which is older than RFC 9111.
var unpassedInNPM = map[string]string{
	"age-parse-nonnumeric":     staleAge,
	"age-parse-negative":       staleAge,
	"age-parse-float":          staleAge,
	"age-parse-prefix-twoline": staleAge,
	"age-parse-dup-0":          staleAge,
	"age-parse-dup-0-twoline":  staleAge,
	"age-parse-dup-old":        staleAge,

	"stale-close-must-revalidate":  badGateway,
	"stale-close-proxy-revalidate": badGateway,
	"stale-close-no-cache":         badGateway,
	"stale-close-s-maxage=2":       badGateway,

	"invalidate-POST-location":     otherURL,
	"invalidate-PUT-location":      otherURL,
	"invalidate-DELETE-location":   otherURL,
	"invalidate-M-SEARCH-location": otherURL,
	"invalidate-POST-cl":           otherURL,
	"invalidate-PUT-cl":            otherURL,
	"invalidate-DELETE-cl":         otherURL,
	"invalidate-M-SEARCH-cl":       otherURL,

	"304-etag-update-response-Content-MD5": "the test wants the stored field, and RFC 9111 " +
		"(3.2) updates it",
	"304-etag-update-response-Content-Range": "a response with Content-Range is not stored",
	"304-etag-update-response-Content-Type":  "RFC 9111 (3.2) lets a cache keep the stored field",
	"304-etag-update-response-ETag":          "a 304 with another ETag is not for the stored response",
	"304-etag-update-response-Set-Cookie":    "a response that sets a cookie is for one client",
}

const (
	staleAge = "the test wants the response to be stale, and RFC 9111 (5.1) ignores an Age that is " +
		"invalid, and all but the first"
	badGateway = "the test wants an answer of the server, which has disconnected: the proxy sends 502"
	otherURL   = "RFC 9111 (4.4) leaves the URLs in Location and Content-Location to the cache"
)

// The optimal tests that need not pass, by the beginning of their names.
var unpassedOptimal = map[string]string{
	"conditional-lm-fresh-no-lm":      "`Date` does not stand in for a missing `Last-Modified`",
	"freshness-expires-wrong-case-tz": "HTTP dates end with GMT, in capital letters",
	"heuristic-":                      "`Options.TTL` is the lifetime of responses that state none",
	"method-POST":                     "responses to POST are not stored",
	"other-set-cookie":                "a response that sets a cookie is for one client",
	"partial-store-":                  "partial responses are not stored",
	"status-":                         "only the codes in the table above are stored",
	"status-200-must-understand":      "`must-understand` is ignored",
	"vary-normalise-":                 "values of headers are compared byte by byte",
}

// suiteNames are those of the caches in the README's table, by those that they have in the suite.
var suiteNames = map[string]string{
	"ATS": "Traffic Server", "Squid": "Squid", "Varnish": "Varnish", "caddy": "Caddy's cache-handler",
	"httpd": "Apache httpd", "nginx": "nginx", "ringmiddleware": "**ringmiddleware**",
}

// suiteResults are what testdata/suite/run.mjs prints.
type suiteResults struct {
	Required, Optimal int
	Retried           []string // that passed when they were run again
	Caches            []suiteCache
	Failed            []suiteFailure
}

type suiteFailure struct {
	ID, Message string
	Required    bool
}

// suiteCache says how many tests a cache passes, and in how many it serves what it must not.
type suiteCache struct {
	Name, Version             string
	Required, Optimal, Served int
}

// The public tests of HTTP caches, with the middleware in front of a reverse proxy. They take a
// minute, so they only run in CI (the version in npm), or if suiteEnv names a checkout. Its results
// are in the README.
func TestSuite(t *testing.T) {
	checkout := os.Getenv(suiteEnv)
	if checkout == "" && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip("RINGCACHE_CI is not set")
	}
	if checkout != "" {
		dir, err := filepath.Abs(checkout)
		require.NoError(t, err)
		results, lines := runSuite(t, dir, unpassed)
		require.Zero(t, results.Caches[0].Served, "responses that must not be served")
		publish(t, results, lines)
		return
	}
	named := maps.Clone(unpassed)
	maps.Copy(named, unpassedInNPM)
	results, _ := runSuite(t, fetchSuite(t), named)
	require.Equal(t, 157, results.Required)
	require.GreaterOrEqual(t, results.Caches[0].Optimal, 55)
}

// fetchSuite installs the version of the suite in npm, whose hash is in package-lock.json, and
// returns its folder. It depends on npm (40 MB) without using it, so package.json replaces that.
func fetchSuite(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("testdata/suite", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	node(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	return filepath.Join(dir, "node_modules/http-cache-tests")
}

// runSuite runs the suite in a folder, and returns the results and a list of the tests that did not
// pass with the reasons. The required ones must be those that are named.
func runSuite(t *testing.T, dir string, named map[string]string) (r suiteResults, lines string) {
	proxy := httputil.NewSingleHostReverseProxy(startOrigin(t, dir))
	// The option lets stale-while-revalidate have its say, and applies to no other response.
	_, m := newMiddleware(t, Options{StaleWhileRevalidate: 1})
	server := httptest.NewServer(m.Handler(proxy))
	defer server.Close()
	out := node(t, "testdata/suite", "node", "--no-warnings", "run.mjs", dir, server.URL)
	require.NoError(t, json.Unmarshal(out, &r), "%s", out)
	ours := r.Caches[0]
	t.Logf("required: %d of %d, optimal: %d of %d, passed when run again: %v",
		ours.Required, r.Required, ours.Optimal, r.Optimal, r.Retried)
	lines = unpassedLines(t, r, named)
	require.Len(t, named, r.Required-ours.Required, "named, but passed")
	return r, lines
}

// unpassedName returns the name of a test that did not pass in named, if it is required, or else
// the longest name in unpassedOptimal with which it begins, and the reason.
func unpassedName(f suiteFailure, named map[string]string) (name, reason string) {
	if f.Required {
		return f.ID, named[f.ID]
	}
	for n, r := range unpassedOptimal {
		if strings.HasPrefix(f.ID, n) && len(n) > len(name) {
			name, reason = n, r
		}
	}
	return name, reason
}

// unpassedLines lists the tests that did not pass with the reasons, the required ones first.
func unpassedLines(t *testing.T, results suiteResults, named map[string]string) string {
	counts, reasons := map[string]int{}, map[string]string{}
	var names []string
	for _, required := range []bool{true, false} {
		for _, failed := range results.Failed {
			if failed.Required != required {
				continue
			}
			name, reason := unpassedName(failed, named)
			require.NotEmpty(t, reason, "%s: %s", failed.ID, failed.Message)
			reasons[name] = reason
			if counts[name]++; counts[name] == 1 {
				names = append(names, name)
			}
		}
	}
	var b strings.Builder
	for _, name := range names {
		at := 0
		for i, word := range strings.Fields(fmt.Sprintf("- `%s` (%d): %s.", name, counts[name],
			reasons[name])) {
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
func publish(t *testing.T, results suiteResults, lines string) {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "| cache | required, of %d | optimal, of %d | served in error |\n"+
		"|---|--:|--:|--:|\n", results.Required, results.Optimal)
	slices.SortStableFunc(results.Caches, func(x, y suiteCache) int {
		return cmp.Compare(y.Required, x.Required)
	})
	for _, c := range results.Caches {
		name, ok := suiteNames[c.Name]
		if !ok {
			continue
		}
		version, _, _ := strings.Cut(strings.ReplaceAll(c.Version, "+", "-"), "-")
		name = strings.TrimSpace(name + " " + version)
		_, _ = fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, c.Required, c.Optimal, c.Served)
	}
	_, _ = fmt.Fprintf(&b, "\nThe tests that the middleware does not pass, the required ones first:"+
		"\n\n%s", lines)
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
	require.Equal(t, was, b.String(), suiteEnv+"=DIR go test -run Suite . -update writes it")
}

// startOrigin starts the server of the suite, and returns its address.
func startOrigin(t *testing.T, dir string) *url.URL {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	file := "server/server.mjs"
	if _, err := os.Stat(filepath.Join(dir, "test-engine")); err == nil {
		file = "test-engine/" + file
	}
	cmd := exec.Command("node", file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port="+port,
		"npm_config_pidfile="+filepath.Join(t.TempDir(), "pid"))
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
