package main

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestRunsOfEverySetting(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is resident")
	}
	var results [][]figures
	for _, s := range settings {
		var runs []figures
		for _, timed := range []bool{false, true} {
			one := s.task
			one.Timed, one.Entries, one.Duration = timed, 4000, time.Millisecond
			if !timed {
				one.After = []time.Duration{time.Millisecond}
			}
			f, err := one.do()
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			runs = append(runs, f)
		}
		results = append(results, runs)
	}
	text := string(document("command", results))
	for _, want := range []string{"| fill, ns an entry | ", "| Get, ns after 1ms | ", "| p99.99 ns | ",
		"**"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestDocument(t *testing.T) {
	row := func(v float64) []figures {
		var f figures
		f.add("x", v)
		f.add("x after 1m", 3*v)
		return []figures{f}
	}
	text := string(document("", [][]figures{row(10), row(5), row(20)}))
	for _, want := range []string{"| x | 10 (10-10) | 5 (5-5) **0.50** | 20 (20-20) **2.00** |",
		"| x after 1m | 30 (30-30) | 15 (15-15) **1.50** | 60 (60-60) **6.00** |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range []string{"-rounds=0", "-entries=10", "-duration=0s", "-after=soon", "more"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{args}, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %q", args, err, &out)
		}
	}
}
