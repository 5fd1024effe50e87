package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// TestMain lets the test program be its own child, as hitratio is.
func TestMain(m *testing.M) {
	if is, err := cli.Part(os.Args[1:], os.Stdout, hitratio.Run); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeTrace makes a directory with one trace: 500 keys, the first ones popular.
func writeTrace(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, name+".csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i := range 3000 {
		key := i
		if i >= 500 {
			key = i * i % 499 * (i % 7) / 7
		}
		fmt.Fprintf(z, "%d,0\n", key)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tiny are flags of a replay of one trace.
func tiny(traces string, more ...string) []string {
	return append([]string{"-traces", traces, "-loads", "traces", "-sizes", "10", "-budget", "8"},
		more...)
}

func TestEndToEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.csv")
	for _, mode := range []string{hitratio.Capacity, hitratio.Memory} {
		args := tiny(writeTrace(t, "tiny"), "-sizes", "10,30", "-stores", "ringcache,otter,golang-lru",
			"-mode", mode, "-csv", file)
		var text, progress bytes.Buffer
		require.NoError(t, run(t.Context(), args, &text, &progress), &progress)
		for _, want := range []string{
			"## Equal " + mode, "| load, size | ringcache | otter | golang-lru |", "| tiny, 30 % |",
			"| mean |",
		} {
			require.Contains(t, text.String(), want)
		}
		require.Contains(t, progress.String(), "6 caches to replay on, about")
		require.Equal(t, 6, strings.Count(progress.String(), "% hits"), &progress)
	}
	// The file has the rows of both runs, each in the order of the tables.
	rows, err := hitratio.ReadRows(file)
	require.NoError(t, err)
	require.Len(t, rows, 12)
	for i, r := range rows {
		require.Equal(t, []string{"ringcache", "otter", "golang-lru"}[i%3], r.Store)
		require.Positive(t, r.Requests)
		require.Equal(t, 1, r.Rounds)
		require.NotEqual(t, rows[(i+6)%12].Mode, r.Mode)
		_, err := time.Parse(time.DateOnly, r.Date)
		require.NoError(t, err)
		if r.Mode == hitratio.Capacity { // few MB of memory may be less than a process takes besides
			require.Positive(t, r.Hits)
		}
	}
}

// What the file has is not replayed, unless it is to be renewed. What it has with another payload
// or another share of updates is of another cache.
func TestReplaysWhatTheFileLacks(t *testing.T) {
	dir, file := writeTrace(t, "tiny"), filepath.Join(t.TempDir(), "out.csv")
	replayed := func(more ...string) (document string, n int) {
		t.Helper()
		var stdout, progress strings.Builder
		args := tiny(dir, append([]string{"-stores", "golang-lru,otter", "-csv", file}, more...)...)
		require.NoError(t, run(t.Context(), args, &stdout, &progress))
		return stdout.String(), strings.Count(progress.String(), "% hits")
	}
	for _, more := range [][]string{nil, {"-payload", "proto"}, {"-payload", "random"},
		{"-writes", "0.2"}, {"-writes", "0.4"}} {
		_, n := replayed(more...)
		require.Equal(t, 2, n, "%v", more)
		_, n = replayed(more...)
		require.Zero(t, n, "%v", more)
	}
	_, n := replayed("-stores", "ringcache,otter,golang-lru")
	require.Equal(t, 1, n)
	_, n = replayed("-renew", "otter")
	require.Equal(t, 1, n)
	text, _ := replayed("-payload", "proto", "-renew", "otter")
	require.Contains(t, text, "## Equal capacity, values: sized proto\n")
	text, _ = replayed("-writes", "0.2")
	require.Contains(t, text, ", 20 % updates\n")

	require.NoError(t, os.WriteFile(file, []byte("no results"), 0o644))
	err := run(t.Context(), tiny(dir, "-csv", file), io.Discard, io.Discard)
	require.ErrorContains(t, err, "read "+file)
}

// A store that fails is named, the others have their figures, and the next run replays it again.
func TestFailuresAreNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.csv")
	o, err := parseOptions(tiny(writeTrace(t, "tiny"), "-stores", "golang-lru,otter", "-csv", file),
		io.Discard)
	require.NoError(t, err)
	o.stores[1].Name = "unknown"
	var progress strings.Builder
	rows, err := replay(t.Context(), o, []*options{o}, &progress)
	require.ErrorContains(t, err, "1 of 2 caches failed")
	require.Contains(t, progress.String(), "unknown: failed: ")
	require.Len(t, rows, 1)
	rows, err = hitratio.ReadRows(file)
	require.NoError(t, err)
	require.Len(t, rows, 1)
}

func TestMedianOfRounds(t *testing.T) {
	round := func(hits int64) (r hitratio.Row) {
		r.Requests, r.Hits = 100, hits
		return r
	}
	r := median([]hitratio.Row{round(30), round(50), round(20)})
	require.Equal(t, []float64{30, 3, 30}, []float64{r.Ratio(), float64(r.Rounds), r.Spread})
	r = median([]hitratio.Row{round(30), round(50)})
	require.Equal(t, 30.0, r.Ratio())
}

func TestOptions(t *testing.T) {
	dir := writeTrace(t, "tiny")
	for _, bad := range [][]string{
		{"-stores", "nothing"}, {"-stores", "null"}, {"-stores", "sync.Map"}, {"-loads", "nothing"},
		{"-loads", "hybrid"},
		{"-sizes", "0"}, {"-sizes", "x"}, {"-sizes", "101"}, {"-mode", "x"}, {"-values", "x"},
		{"-values", "7"}, {"-rounds", "0"},
		{"-writes", "1"}, {"-writes", "-0.1"}, {"-writes", "NaN"},
		{"-p", "0"}, {"-payload", "xml"},
		{"-budget", "0"}, {"-max-requests", "0"}, {"-max-value", "1"}, {"extra"},
	} {
		if _, err := parseOptions(append([]string{"-traces", dir}, bad...),
			new(bytes.Buffer)); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	o, err := parseOptions([]string{"-traces", dir, "-loads", "tiny,loop", "-values", "100"},
		new(bytes.Buffer))
	require.NoError(t, err)
	require.Len(t, o.sources, 2)
	require.Equal(t, store.HitRatio[0].Name, o.stores[0].Name)
	o, err = parseOptions([]string{"-traces", dir, "-payload", "json"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Len(t, o.stores, len(store.Compressed))
}

// TestWithoutTraces says so, and goes on with the synthetic loads.
func TestWithoutTraces(t *testing.T) {
	t.Setenv(trace.Env, "")
	var stderr bytes.Buffer
	o, err := parseOptions(nil, &stderr)
	require.NoError(t, err)
	require.Contains(t, stderr.String(), "skipping recorded traces")
	require.Equal(t, trace.Synthetic, o.sources[0].Group)
	if _, err := parseOptions([]string{"-loads", "web07"}, new(bytes.Buffer)); err == nil {
		t.Error("a trace that is missing is not missed")
	}
}
