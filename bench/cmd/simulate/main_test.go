package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringcache/ringcache/bench/trace"
)

// writeTrace makes a directory with a trace of 10 keys in a loop: object i has i
// times 100 bytes.
func writeTrace(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, "round.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i := range 100 {
		fmt.Fprintf(z, "%d,%d\n", i%10, i%10*100)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEndToEnd(t *testing.T) {
	dir := writeTrace(t)
	file := filepath.Join(t.TempDir(), "out.csv")
	for by, want := range map[string][]string{
		"entries": {"| round, 50 % | **0.00** | **0.00** |", "| round, 100 % | **90.00** | **90.00** |",
			"| mean (2) | **45.00** |"},
		"bytes": {"| round, 100 % | **90.00** |", "Byte hit ratio"},
		"sized": {"| round, 50 % | **0.00** | **0.00** |", "Byte hit ratio"},
	} {
		var out, progress bytes.Buffer
		args := []string{"-traces", dir, "-loads", "traces", "-sizes", "50,100", "-policies", "fifo,lru",
			"-by", by, "-csv", file}
		if err := run(t.Context(), args, &out, &progress); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("by %s: the output lacks %q:\n%s", by, w, &out)
			}
		}
		if !strings.Contains(progress.String(), "[1/1] round: 100 requests for 10 keys") {
			t.Errorf("by %s: progress %q", by, &progress)
		}
		if data, err := os.ReadFile(file); err != nil || bytes.Count(data, []byte("\n")) != 5 {
			t.Errorf("by %s: unexpected CSV, error %v:\n%s", by, err, data)
		}
	}
}

func TestLeavesOutWhatIsTooLong(t *testing.T) {
	var out, progress bytes.Buffer
	args := []string{"-traces", writeTrace(t), "-loads", "traces", "-sizes", "1", "-policies", "fifo",
		"-by", "100"}
	if err := run(t.Context(), args, &out, &progress); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(progress.String(), "left out") || strings.Contains(out.String(), "round") {
		t.Errorf("output %q, progress %q", &out, &progress)
	}
}

func TestOptions(t *testing.T) {
	t.Setenv(trace.Env, "")
	for _, bad := range [][]string{
		{"-policies", "nothing"}, {"-sizes", "0"}, {"-sizes", "x"}, {"-by", "x"}, {"-p", "0"},
		{"-loads", "nothing"}, {"extra"},
	} {
		if _, err := parseOptions(bad, new(bytes.Buffer)); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	var stderr bytes.Buffer
	o, err := parseOptions(nil, &stderr)
	if err != nil || len(o.sources) == 0 || len(o.makes) != len(o.policies) ||
		!strings.Contains(stderr.String(), "skipping recorded traces") {
		t.Errorf("%+v, error %v, said %q", o, err, &stderr)
	}
}
