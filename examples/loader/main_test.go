package main

import (
	"context"
	"strings"
	"testing"
)

func TestOneQueryForAll(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "1000 goroutines asked for 1 keys: 1 queries of 100ms",
		"-callers 300 -keys 7 -delay 20ms":   "300 goroutines asked for 7 keys: 7 queries of 20ms",
		"-callers 1 -keys 3 -delay 0":        "1 goroutines asked for 3 keys: 1 queries of 0s",
		"-naive -callers 4 -keys 4 -delay 0": "4 goroutines asked for 4 keys: 4 queries of 0s",
	} {
		want += " each, done after "
		var out strings.Builder
		if err := run(strings.Fields(args), &out); err != nil {
			t.Fatalf("run(%s): %v", args, err)
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("run(%s) printed %q, want %q", args, out.String(), want)
		}
	}
}

func TestWrongValuesAreFound(t *testing.T) {
	err := stampede(config{callers: 2, keys: 2}, func(_ context.Context, k []byte) ([]byte, error) {
		return []byte("value of key 1"), nil
	})
	if err == nil || !strings.Contains(err.Error(), `verify key 0: got "value of key 1"`) {
		t.Errorf("got %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range []string{"-callers 0", "-keys 0", "-delay -1s", "argument", "-no-such-flag",
		"-help"} {
		var out strings.Builder
		if err := run(strings.Fields(args), &out); err == nil {
			t.Errorf("run(%s) succeeded: %s", args, out.String())
		}
	}
}
