package main

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"
)

func TestParseCounts(t *testing.T) {
	n, err := parseCounts(
		"==1== Events    : Ir Bc Bcm Bi Bim\n==1== Collected : 1000 200 30 4 5\n==1==\n")
	if want := (counts{1000, 204, 35}); err != nil || n != want {
		t.Errorf("got %v, %v, want %v", n, err, want)
	}
	if _, err := parseCounts("==1== Process terminating\n"); err == nil {
		t.Error("nothing is taken for counts")
	}
}

// What is counted does what it is told, and says when it cannot.
func TestCounted(t *testing.T) {
	for _, op := range append([]operation{{name: ""}}, operations...) {
		c := counted{Entries: 2000, Value: 100, Operation: op.name, Calls: 1000}
		if _, err := c.do(); err != nil {
			t.Errorf("%q: %v", op.name, err)
		}
	}
	if _, err := (counted{Entries: 2000, Value: 100, Operation: "Sit"}).do(); err == nil {
		t.Error("an unknown operation is done")
	}
}

// Without valgrind there is an error, and no other try.
func TestCountNeedsValgrind(t *testing.T) {
	t.Setenv("PATH", "")
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"-count"}, &out, &progress)
	if !errors.Is(err, exec.ErrNotFound) || out.Len() > 0 {
		t.Errorf("got %v and %q", err, &out)
	}
}

func TestSmall(t *testing.T) {
	all := []scale{{8192, 100}, {4_000_000, 100}, {2048, 1000}}
	if got := small(all); len(got) != 2 || got[1].value != 1000 || len(all) != 3 ||
		all[1].entries != 4_000_000 {
		t.Errorf("got %v of %v", got, all)
	}
}
