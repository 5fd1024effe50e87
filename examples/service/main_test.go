package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asProgram, when set, makes the test binary behave as the program.
const asProgram = "SERVICE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	waitFor = 10 * time.Second
	tick    = time.Millisecond
)

// testConfig is of a small service.
func testConfig(t *testing.T) config {
	return config{dir: t.TempDir(), products: 2000, clients: 4, span: 500 * time.Millisecond,
		skew: 1.1, cached: true, cacheMB: 32}
}

func mustStart(t *testing.T, cfg config) *server {
	t.Helper()
	s, err := start(t.Context(), cfg, "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { s.stop() })
	return s
}

// get returns the status and the body of an answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func put(t *testing.T, url, body string) (int, product) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var p product
	if resp.StatusCode == http.StatusOK {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&p))
	}
	return resp.StatusCode, p
}

func TestRun_PrintsTheTable(t *testing.T) {
	out := new(strings.Builder)
	args := []string{"-products=1000", "-clients=4", "-for=700ms"}
	require.NoError(t, run(t.Context(), args, out))
	t.Logf("\n%s", out)
	const figure = ` +([\d.]+)(?: %| µs)?`
	table := map[string][3]float64{}
	lines := regexp.MustCompile(`(?m)^(\S.*?)` + figure + figure + figure + `$`)
	for _, m := range lines.FindAllStringSubmatch(out.String(), -1) {
		var row [3]float64
		for i := range row {
			var err error
			row[i], err = strconv.ParseFloat(m[2+i], 64)
			require.NoError(t, err)
		}
		table[m[1]] = row
	}
	for _, row := range []string{"requests a second", "p50", "p99", "database queries"} {
		for side := range sides {
			require.Positive(t, table[row][side], "%s, %s", row, sides[side].name)
		}
	}
	require.InDelta(t, 1, table["queries a request"][0], 0.05)
	require.Zero(t, table["entries held"][0])
	for side := 1; side < len(sides); side++ {
		require.Less(t, table["queries a request"][side], 0.7)
		require.Greater(t, table["hit ratio"][side], 30.0)
		require.Positive(t, table["entries held"][side])
	}
	require.Len(t, table, len(rows))
	require.Zero(t, table["stale answers"])
}

func TestRun_Refuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":         {"a"},
		"no products":         {"-products=0"},
		"no clients":          {"-clients=0"},
		"no time":             {"-for=0s"},
		"a warm-up of -1":     {"-warm=-1"},
		"a skew below 0":      {"-skew=-1"},
		"no skew":             {"-skew=NaN"},
		"a small cache":       {"-cache-mb=31"},
		"a huge cache":        {"-cache-mb=" + strconv.Itoa(math.MaxInt>>20+1)},
		"nothing to compress": {"-serve=127.0.0.1:0", "-compress", "-cache=false"},
		"an unknown flag":     {"-no-such-flag"},
		"no such address":     {"-serve=nowhere:nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, run(t.Context(), args, io.Discard))
		})
	}
}

func TestAPI_AnswersFromTheCache(t *testing.T) {
	s := mustStart(t, testConfig(t))
	for _, path := range []string{"/products/7", "/categories/7", "/products/100000"} {
		status, first := get(t, s.url+path)
		before := s.db.queries.Load()
		again, second := get(t, s.url+path)
		require.Equal(t, before, s.db.queries.Load(), "%s: it asked the database again", path)
		require.Equal(t, status, again)
		require.Equal(t, first, second)
	}
	status, _ := get(t, s.url+"/products/100000")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = get(t, s.url+"/products/seven")
	require.Equal(t, http.StatusBadRequest, status)
}

func TestAPI_AWriteIsSeen(t *testing.T) {
	s := mustStart(t, testConfig(t))
	_, before := get(t, s.url+"/products/257")
	_, list := get(t, s.url+"/categories/7")
	require.NotContains(t, list, `"id":257,`)
	require.Contains(t, before, `"description":"`)
	require.NotContains(t, list, "description")

	status, p := put(t, s.url+"/products/257/price", "1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, int64(1), p.Price)
	_, after := get(t, s.url+"/products/257")
	require.NotEqual(t, before, after)
	_, list = get(t, s.url+"/categories/7")
	require.Contains(t, list, `"id":257,`)

	status, _ = put(t, s.url+"/products/257/price", "free")
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = put(t, s.url+"/products/100000/price", "1")
	require.Equal(t, http.StatusNotFound, status)
}

// Of a commit that has failed nobody knows whether it was made: what is cached is not believed. A
// write that failed before was not made.
func TestShop_AFailedWrite(t *testing.T) {
	s := mustStart(t, testConfig(t))
	get(t, s.url+"/products/7")
	get(t, s.url+"/categories/7")
	ctx, cancel := context.WithCancel(t.Context())
	forgot := 0
	_, err := s.db.writePrice(ctx, 7, 1, func() {
		forgot++
		cancel()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, forgot)

	before := s.db.queries.Load()
	_, err = s.shop.setPrice(ctx, 7, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.shop.setPrice(t.Context(), -7, 1)
	require.ErrorIs(t, err, errNoProduct)
	before += 2
	get(t, s.url+"/products/7")
	get(t, s.url+"/categories/7")
	require.Equal(t, before, s.db.queries.Load(), "the cache was emptied")
}

// A database that is gone is not noticed for what is in the cache.
func TestAPI_DatabaseGone(t *testing.T) {
	s := mustStart(t, testConfig(t))
	_, first := get(t, s.url+"/products/7")
	require.NoError(t, s.db.Close())
	status, second := get(t, s.url+"/products/7")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, first, second)
	status, _ = get(t, s.url+"/products/8")
	require.Equal(t, http.StatusServiceUnavailable, status)
}

func TestPages(t *testing.T) {
	s := mustStart(t, testConfig(t))
	get(t, s.url+"/products/7")
	get(t, s.url+"/products/7")
	get(t, s.url+"/products/7")
	_, metrics := get(t, s.url+"/metrics")
	require.Contains(t, metrics, `ringcache_lookups_total{cache="shop",result="hit"} 2`)
	require.Contains(t, metrics, "shop_memo_hits_total 2")
	require.Contains(t, metrics, "shop_memo_misses_total 1")
	status, page := get(t, s.url+"/debug/statsviz/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "<html")
}

// The metrics that README.md names are there.
func TestReadme_NamesMetricsThatThereAre(t *testing.T) {
	s := mustStart(t, testConfig(t))
	_, metrics := get(t, s.url+"/metrics")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	names := regexp.MustCompile(`(ringcache|shop)_\w+`).FindAllString(string(readme), -1)
	require.Greater(t, len(names), 10, "names: the page would not be checked")
	for _, name := range names {
		require.Contains(t, metrics, "# TYPE "+name+" ")
	}
}

// Killed, it is warm again, and what was invalidated stays so.
func TestServe_WarmAfterKill(t *testing.T) {
	cfg := testConfig(t)
	if !cachesInFiles(t) {
		t.Skip("no caches in files here")
	}
	life := func() (url string, recovered int, kill func()) {
		cmd := exec.Command(os.Args[0], "-serve=127.0.0.1:0", "-products=2000", "-dir="+cfg.dir)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		var text strings.Builder
		line := regexp.MustCompile(`serving at (\S+)\ncache: (\d+) entries`)
		for buf := make([]byte, 100); ; {
			n, err := out.Read(buf)
			text.Write(buf[:n])
			if m := line.FindStringSubmatch(text.String()); m != nil {
				recovered, err = strconv.Atoi(m[2])
				require.NoError(t, err)
				return m[1], recovered, func() { cmd.Process.Kill(); cmd.Wait() }
			}
			require.NoError(t, err, text.String())
		}
	}
	url, recovered, kill := life()
	require.Zero(t, recovered)
	_, first := get(t, url+"/products/7")
	get(t, url+"/categories/7")
	status, _ := put(t, url+"/products/257/price", "1")
	require.Equal(t, http.StatusOK, status)
	kill()

	url, recovered, _ = life()
	require.Positive(t, recovered)
	_, again := get(t, url+"/products/7")
	require.Equal(t, first, again)
	_, metrics := get(t, url+"/metrics")
	require.Contains(t, metrics, `ringcache_lookups_total{cache="shop",result="hit"} 1`)
	_, list := get(t, url+"/categories/7")
	require.Contains(t, list, `"id":257,`)
}

// A request that is under way when the service is told to end is answered.
func TestServer_StopsGracefully(t *testing.T) {
	s := mustStart(t, testConfig(t))
	tx, err := s.db.Conn(t.Context())
	require.NoError(t, err)
	defer tx.Close()
	_, err = tx.ExecContext(t.Context(), "BEGIN IMMEDIATE") // writes wait for it
	require.NoError(t, err)
	before := s.db.queries.Load()
	answered, stopped := make(chan int, 1), make(chan error, 1)
	go func() {
		defer close(answered)
		status, _ := put(t, s.url+"/products/7/price", "1")
		answered <- status
	}()
	require.Eventually(t, func() bool { return s.db.queries.Load() > before }, waitFor, tick)
	go func() { stopped <- s.stop() }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, waitFor, tick)
	_, err = tx.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	require.Equal(t, http.StatusOK, <-answered)
	require.NoError(t, <-stopped)
}

// It ends without an error when it is told to.
func TestServe_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	cfg := testConfig(t)
	go func() {
		args := []string{"-serve=127.0.0.1:0", "-products=2000", "-dir=" + cfg.dir}
		done <- run(ctx, args, w)
		w.Close()
	}()
	buf := make([]byte, 200)
	n, err := r.Read(buf)
	require.NoError(t, err)
	go io.Copy(io.Discard, r)
	url := strings.TrimSpace(strings.TrimPrefix(string(buf[:n]), "serving at "))
	status, _ := get(t, url+"/products/7")
	require.Equal(t, http.StatusOK, status)
	cancel()
	require.NoError(t, <-done)
	_, err = http.Get(url + "/products/7")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
