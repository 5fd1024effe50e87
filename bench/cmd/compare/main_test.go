package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// TestMain lets the test program be its own child, as compare is.
func TestMain(m *testing.M) {
	if is, err := cli.Part(os.Args[1:], os.Stdout, part); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCompareEndToEnd(t *testing.T) {
	dir := t.TempDir()
	md, js, csv, charts := filepath.Join(dir, "out.md"), filepath.Join(dir, "out.json"),
		filepath.Join(dir, "out.csv"), filepath.Join(dir, "new")
	args := []string{
		"-quick", "-rounds", "2", "-entries", "2000", "-duration", "1ms", "-cpu", "1,64",
		"-stores", "ringcache,fastcache,null", "-loads", "get-batch,set-1000,live-10,latency-grow",
		"-o", md, "-json", js, "-csv", csv, "-charts", charts,
	}
	var progress bytes.Buffer
	if err := run(t.Context(), args, os.Stdout, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	text, err := os.ReadFile(md)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"`go run ./cmd/compare -quick", "| get-batch, cpu=1 |", "| set-1000, cpu=64 |",
		"| 5000 entries, gc ms |", "Ratio to fastcache", "| 1.00 |", "GOMAXPROCS of 64 is more than",
		"\n| set p99.9 ns |", "\n| get max ns |",
		"\n| hits | 1.00 (1.00-1.00) | 1.00 (1.00-1.00) | 0.00 (0.00-0.00) |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}

	var doc document
	data, err := os.ReadFile(js)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	const runs = 2 /* rounds */ * 3 /* stores */ * (2*2 + 2)
	if len(doc.Results) != runs || strings.Count(progress.String(), "\n") != 1+runs {
		t.Fatalf("%d results, want %d, and progress:\n%s", len(doc.Results), runs, &progress)
	}
	if !strings.HasPrefix(progress.String(), "36 runs, about ") {
		t.Errorf("the first line is %.40q", &progress)
	}
	for _, r := range doc.Results {
		if r.CPU > runtime.NumCPU() && (r.Load == "live-10" || r.Load == "latency-grow") {
			t.Errorf("%s ran with GOMAXPROCS=%d", r.Load, r.CPU)
		}
	}
	checkCSV(t, csv, doc.Results)
	checkCharts(t, charts)
}

// checkCSV wants a line for every metric.
func checkCSV(t *testing.T, file string, results []result) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	metrics := 0
	for _, r := range results {
		metrics += len(r.Metrics)
		for name, v := range r.Metrics {
			line := fmt.Sprintf("%d,%s,%s,%d,%s,%v,", r.Round+1, r.Load, r.Store, r.CPU, name, v)
			// others are written with an exponent or not
			if v < 1e20 && v > 1e-4 && !slices.Contains(lines, line) {
				t.Errorf("the CSV lacks %q", line)
			}
		}
	}
	if len(lines) != 1+metrics {
		t.Errorf("%d lines of CSV for %d metrics", len(lines), metrics)
	}
}

func checkCharts(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = filepath.Base(name)
	}
	want := []string{
		"gc.svg", "latency-grow-get.svg", "latency-grow-set.svg", "memory.svg",
		"throughput-16+100-cpu1.svg",
		"throughput-16+100-cpu64.svg", "throughput-16+1000-cpu1.svg", "throughput-16+1000-cpu64.svg",
	}
	if !slices.Equal(names, want) {
		t.Errorf("charts are %q", names)
	}
}

// TestInterrupted wants what was done before the interrupt, and an error.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	progress := writer(func(line []byte) {
		if bytes.HasPrefix(line, []byte("[1/")) {
			cancel()
		}
	})
	args := []string{"-quick", "-entries", "2000", "-duration", "1ms", "-cpu", "1", "-stores",
		"ringcache,fastcache", "-loads", "get-uniform,get-zipf"}
	if err := run(ctx, args, &out, progress); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(out.String(), "**Interrupted**: 1 runs") ||
		!strings.Contains(out.String(), "| get-uniform, cpu=1 |") {
		t.Errorf("unexpected document:\n%s", &out)
	}
}

type writer func(line []byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func TestOptions(t *testing.T) {
	for _, bad := range [][]string{
		{"-stores", "nothing"}, {"-loads", "nothing"}, {"-cpu", "0"}, {"-cpu", "a"}, {"-rounds", "0"},
		{"-entries", "1"},
		{"-duration", "0s"}, {"extra"},
	} {
		if _, err := parseOptions(bad, new(bytes.Buffer)); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	o, err := parseOptions([]string{"-quick", "-rounds", "3", "-entries", "5000"}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	if o.Rounds != 3 || o.Scale.Entries != 5000 || o.Scale.FullMB != measure.Quick.FullMB {
		t.Fatalf("-quick overrides what was asked for: %+v", o)
	}
}

// TestPlanRotates wants every store to be the first one of a load at some time,
// and no unbounded store in a full cache.
func TestPlanRotates(t *testing.T) {
	o := options{
		Rounds: len(store.All), Loads: []string{"ref-get", "set-new"}, CPUs: []int{1},
		stores: &interleave.Stores{Names: store.Names(store.All)},
	}
	runs, costs, err := o.plan()
	if err != nil || len(costs) != len(runs) || slices.Min(costs) <= 0 {
		t.Fatalf("costs %v, error %v", costs, err)
	}
	first := map[string]bool{}
	for i, r := range runs {
		if r.Load == "ref-get" && (i == 0 || runs[i-1].Load != "ref-get") {
			first[r.Store] = true
		}
		if r.Load == "set-new" &&
			slices.Contains([]string{"go-cache", "map+RWMutex", "sync.Map"}, r.Store) {
			t.Fatalf("%s runs %s", r.Store, r.Load)
		}
	}
	if len(first) != len(store.All) {
		t.Fatalf("only %v come first", first)
	}
}

func TestNothingToRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-stores", "sync.Map", "-loads", "set-new"}, &out,
		&out); err == nil {
		t.Errorf("nothing is run, and that is no error:\n%s", &out)
	}
}

func TestFailuresAreShown(t *testing.T) {
	o, err := parseOptions([]string{"-loads", "ref-get", "-stores", "ringcache", "-cpu", "1"},
		new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	doc := document{Options: *o, Results: []result{
		{Load: "ref-get", Store: "ringcache", CPU: 1, Error: "wrong value for id 3"},
		{Load: "ref-get", Store: "ringcache", CPU: 1,
			Metrics: measure.Metrics{measure.NsPerOp: 12, measure.Held: 0.5}},
	}}
	text := string(doc.markdown())
	if !strings.Contains(text, "wrong value for id 3") || !strings.Contains(text, "held 50.0 %") ||
		len(doc.failures()) != 1 {
		t.Fatalf("unexpected document:\n%s", text)
	}
}
