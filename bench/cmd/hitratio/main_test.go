package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
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

func TestEndToEnd(t *testing.T) {
	dir := writeTrace(t, "tiny")
	out := t.TempDir()
	file := func(name string) string { return filepath.Join(out, name) }
	args := []string{
		"-traces", dir, "-loads", "traces", "-sizes", "10,30", "-stores", "ringcache,otter,golang-lru",
		"-budget", "8",
		"-mode", "capacity,memory", "-o", file("out.md"), "-csv", file("out.csv"),
	}
	var progress bytes.Buffer
	if err := run(t.Context(), args, os.Stdout, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	text, err := os.ReadFile(file("out.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"`go run ./cmd/hitratio -traces", "## Equal capacity", "## Equal memory", "| tiny, 30 % |",
		"### Bytes",
		"| - LRU |", "| mean (2) |", "ringcache has more than", "otter v2",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(progress.String(), "12 caches to replay on, about") ||
		strings.Count(progress.String(), "% hits") != 12 {
		t.Errorf("unexpected progress:\n%s", &progress)
	}
	checkCSV(t, file("out.csv"))
}

// checkCSV wants a row for each cache, in the order of the tables.
func checkCSV(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || len(rows) != 13 {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	for i, row := range rows[1:] {
		store := []string{"ringcache", "otter", "golang-lru"}[i%3]
		// Few MB of memory may be less than what a process takes beside its store.
		col := func(name string) string { return row[slices.Index(csvHead, name)] }
		if col("store") != store || col("error") != "" ||
			col("mode") == capacityMode && col("hit_ratio") == "0.0000" {
			t.Errorf("row %d: %v", i, row)
		}
	}
}

// What an earlier run has is taken from its file, to the second that it took;
// what it lacks, or what failed there, is replayed.
func TestResume(t *testing.T) {
	dir := writeTrace(t, "tiny")
	first, second := filepath.Join(t.TempDir(), "1.csv"), filepath.Join(t.TempDir(), "2.csv")
	args := func(more ...string) []string {
		return append([]string{"-traces", dir, "-loads", "traces", "-sizes", "10", "-budget", "8"},
			more...)
	}
	var out, progress strings.Builder
	if err := run(context.Background(), args("-stores", "ringcache,otter", "-csv", first), &out,
		&progress); err != nil {
		t.Fatal(err)
	}
	had, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	marked := strings.ReplaceAll(string(had), ",otter,", ",otter,12.5000,11.0000,1000,125,0#")
	marked = regexp.MustCompile(`,0#[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,`).ReplaceAllString(marked, ",0,")
	if err := os.WriteFile(first, []byte(marked), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), args("-stores", "ringcache,otter,golang-lru", "-resume", first,
		"-csv", second), &out, &progress); err != nil {
		t.Fatal(err)
	}
	all, err := readEarlier(second)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d results, error %v, want 3", len(all), err)
	}
	for key, r := range all {
		if strings.Contains(key, "otter") && (r.Hits != 125 || r.ByteRatio() != 11) {
			t.Errorf("otter: %d hits and %v %% of the bytes, want those of the file", r.Hits, r.ByteRatio())
		}
		if _, err := time.Parse(time.DateOnly, r.date); err != nil {
			t.Error(err)
		}
		if strings.Contains(key, "golang-lru") && r.Hits == 0 {
			t.Error("golang-lru was not replayed")
		}
	}
	if _, err := readEarlier(filepath.Join(dir, "tiny.csv.gz")); err == nil {
		t.Error("a file of another kind is taken for results")
	}
}

// Results with another payload are not taken.
func TestPayload_IsToldApart(t *testing.T) {
	dir, out := writeTrace(t, "tiny"), t.TempDir()
	replay := func(payload string, more ...string) (document string, replayed bool) {
		t.Helper()
		var stdout, progress strings.Builder
		args := append([]string{"-traces", dir, "-loads", "traces", "-sizes", "10", "-budget", "8",
			"-stores", "golang-lru,otter", "-payload", payload}, more...)
		if err := run(t.Context(), args, &stdout, &progress); err != nil {
			t.Fatal(err)
		}
		return stdout.String(), !strings.Contains(progress.String(), "0 caches to replay on")
	}
	file := filepath.Join(out, "proto.csv")
	replay("proto", "-csv", file)
	if document, replayed := replay("proto", "-resume", file); replayed ||
		!strings.Contains(document, "proto values of realistic sizes") {
		t.Errorf("replayed is %t, the document:\n%s", replayed, document)
	}
	for _, other := range []string{"random", ""} {
		if _, replayed := replay(other, "-resume", file); !replayed {
			t.Errorf("results with proto are taken for those with %q", other)
		}
	}
}

// Results of other shares of updates are not taken, and the document says the share.
func TestWrites_AreToldApart(t *testing.T) {
	dir, out := writeTrace(t, "tiny"), t.TempDir()
	replay := func(writes string, more ...string) (document string, replayed bool) {
		t.Helper()
		var stdout, progress strings.Builder
		args := append([]string{"-traces", dir, "-loads", "traces", "-sizes", "10", "-budget", "8",
			"-stores", "golang-lru,otter", "-writes", writes}, more...)
		if err := run(t.Context(), args, &stdout, &progress); err != nil {
			t.Fatal(err)
		}
		return stdout.String(), !strings.Contains(progress.String(), "0 caches to replay on")
	}
	file := filepath.Join(out, "writes.csv")
	replay("0.2", "-csv", file)
	if document, replayed := replay("0.2", "-resume", file); replayed ||
		!strings.Contains(document, ", 20 % of the requests are updates") {
		t.Errorf("replayed is %t, the document:\n%s", replayed, document)
	}
	if _, replayed := replay("0", "-resume", file); !replayed {
		t.Error("results with updates are taken for those without")
	}
}

func TestOptions(t *testing.T) {
	dir := writeTrace(t, "tiny")
	for _, bad := range [][]string{
		{"-stores", "nothing"}, {"-stores", "null"}, {"-stores", "sync.Map"}, {"-loads", "nothing"},
		{"-loads", "hybrid"},
		{"-sizes", "0"}, {"-sizes", "x"}, {"-sizes", "101"}, {"-mode", "x"}, {"-values", "x"},
		{"-values", "7"}, {"-rounds", "0"},
		{"-writes", "1"}, {"-writes", "-0.1"}, {"-writes", "NaN"},
		{"-rss", "x"}, {"-p", "0"}, {"-payload", "xml"},
		{"-budget", "0"}, {"-max-requests", "0"}, {"-max-value", "1"}, {"extra"},
	} {
		if _, err := parseOptions(append([]string{"-traces", dir}, bad...),
			new(bytes.Buffer)); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	o, err := parseOptions([]string{"-traces", dir, "-loads", "tiny,loop", "-values", "sized,100",
		"-rss", "peak"}, new(bytes.Buffer))
	if err != nil || len(o.sources) != 2 || len(o.values) != 2 ||
		o.memory(&hitratio.Outcome{Peak: 7}) != 7 {
		t.Fatalf("%+v, error %v", o, err)
	}
}

// TestWithoutTraces says so, and goes on with the synthetic loads.
func TestWithoutTraces(t *testing.T) {
	t.Setenv(trace.Env, "")
	for _, args := range [][]string{nil, {"-quick"}} {
		var stderr bytes.Buffer
		o, err := parseOptions(args, &stderr)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stderr.String(), "skipping recorded traces") || len(o.sources) == 0 ||
			o.sources[0].Group != trace.Synthetic {
			t.Errorf("%v: %d loads, said %q", args, len(o.sources), &stderr)
		}
	}
	if _, err := parseOptions([]string{"-loads", "web07"}, new(bytes.Buffer)); err == nil {
		t.Error("a trace that is missing is not missed")
	}
}
