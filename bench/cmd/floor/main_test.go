package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
)

// TestLayIsOneCircle wants every line to be visited before one comes again.
func TestLayIsOneCircle(t *testing.T) {
	for _, lines := range []int{1, 2, 3, 1000, chunk} {
		words := make([]uint64, lines*lineWords)
		lay(words)
		seen := map[uint64]bool{}
		at, sequential := uint64(0), 0
		for range lines {
			if seen[at] || at%lineWords != 0 {
				t.Fatalf("%d lines: %d comes again after %d", lines, at, len(seen))
			}
			seen[at] = true
			if words[at] == at+lineWords {
				sequential++
			}
			at = words[at]
		}
		if at != 0 || lines > 3 && sequential > lines/100 {
			t.Errorf("%d lines: the circle ends at %d, %d lines follow their neighbours", lines, at,
				sequential)
		}
	}
}

func TestWalks(t *testing.T) {
	words := make([]uint64, chunk*lineWords)
	lay(words)
	if at := chase(words, 0); at != 0 {
		t.Errorf("a chunk of a circle of the same length ends at %d", at)
	}
	for i := range words {
		words[i] = 1
	}
	if scatter(words, 1); seen != chunk {
		t.Errorf("%d of %d reads are of the first word of a line, or none", seen, chunk)
	}
}

func TestWorkingSets(t *testing.T) {
	sets := workingSets([]cache{{1, 48 << 10}, {2, 2 << 20}, {3, 260 << 20}}, 256<<20)
	var names []string
	for _, s := range sets {
		names = append(names, s.name)
	}
	want := []string{"half of L1, 24 KB", "half of L2, 1 MB", "64 MB", "128 MB", "half of L3, 130 MB",
		"256 MB"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	if all := workingSets(nil, 1<<30); len(all) != 5 || size(all[4].bytes) != "1 GB" {
		t.Errorf("got %v", all)
	}
}

func TestEndToEnd(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"-max", "64", "-duration", "1ms", "-rounds", "2", "-ops",
		"2000x100"}, &out, &progress); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| 64 MB | ") ||
		!strings.Contains(out.String(), "In 64 MB a Get that waits") {
		t.Errorf("unexpected document:\n%s", &out)
	}
	if !strings.Contains(progress.String(), "working sets, about ") {
		t.Errorf("said %q", &progress)
	}
	for _, op := range operations {
		if !strings.Contains(out.String(), "| 2000 | 100 | "+op.name+" | ") {
			t.Errorf("no row of %s:\n%s", op.name, &out)
		}
	}
	for _, bad := range [][]string{{"-max", "0"}, {"-ops", "2000"}, {"-ops", "10x10"},
		{"-rounds", "0"}, {"-duration", "0s"}, {"extra"}} {
		if err := run(t.Context(), bad, &out, &progress); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if err := run(t.Context(), []string{"-h"}, &out, &progress); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h is %v", err)
	}
}
