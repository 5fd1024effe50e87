package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// TestMain lets the test program be its own child, as compare is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCompareEndToEnd(t *testing.T) {
	dir := t.TempDir()
	md, js := filepath.Join(dir, "out.md"), filepath.Join(dir, "out.json")
	args := []string{
		"-quick", "-rounds", "2", "-entries", "2000", "-duration", "1ms", "-cpu", "1,2",
		"-stores", "ringcache,fastcache,null", "-loads", "get-batch,set-1000,live-10",
		"-o", md, "-json", js,
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
		"`go run ./cmd/compare -quick", "| get-batch, cpu=1 |", "| set-1000, cpu=2 |",
		"| 5000 entries, gc ms |", "Ratio to fastcache", "| 1.00 |",
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
	const runs = 2 /* rounds */ * 3 /* stores */ * (2*2 + 1)
	if len(doc.Results) != runs || strings.Count(progress.String(), "\n") != runs {
		t.Fatalf("%d results and %d progress lines, want %d", len(doc.Results), strings.Count(progress.String(), "\n"), runs)
	}
}

func TestOptions(t *testing.T) {
	for _, bad := range [][]string{
		{"-stores", "nothing"}, {"-loads", "nothing"}, {"-cpu", "0"}, {"-cpu", "a"}, {"-rounds", "0"}, {"-entries", "1"},
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
		Rounds: len(store.All), Stores: store.Names(store.All), Loads: []string{"ref-get", "set-new"}, CPUs: []int{1},
	}
	runs, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{}
	for i, r := range runs {
		if r.Load == "ref-get" && (i == 0 || runs[i-1].Load != "ref-get") {
			first[r.Store] = true
		}
		if r.Load == "set-new" && slices.Contains([]string{"go-cache", "map+RWMutex", "sync.Map"}, r.Store) {
			t.Fatalf("%s runs %s", r.Store, r.Load)
		}
	}
	if len(first) != len(store.All) {
		t.Fatalf("only %v come first", first)
	}
}

func TestFailuresAreShown(t *testing.T) {
	o, err := parseOptions([]string{"-loads", "ref-get", "-stores", "ringcache", "-cpu", "1"}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	doc := document{Options: *o, Results: []result{
		{Load: "ref-get", Store: "ringcache", CPU: 1, Error: "wrong value for id 3"},
		{Load: "ref-get", Store: "ringcache", CPU: 1, Metrics: measure.Metrics{measure.NsPerOp: 12, measure.Held: 0.5}},
	}}
	text := string(doc.markdown())
	if !strings.Contains(text, "wrong value for id 3") || !strings.Contains(text, "held 50.0 %") || len(doc.failures()) != 1 {
		t.Fatalf("unexpected document:\n%s", text)
	}
}
