package main

import (
	"os"
	"strings"
	"testing"
)

// asProgram, when set, makes the test binary behave as the program, so that
// runAll has something to start.
const asProgram = "GCTRACE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEveryStoreKeepsWhatFits(t *testing.T) {
	const entries = 20_000
	for _, name := range storeNames() {
		for _, valueSize := range []int{0, 3, 100} {
			s, err := newStore[name](entries, valueSize)
			if err != nil {
				t.Fatal(err)
			}
			if err := fill(s, entries, valueSize); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if kept := countKept(s, entries, valueSize); kept != entries {
				t.Errorf("%s kept %d of %d values of %d bytes", name, kept, entries, valueSize)
			}
			k := make([]byte, keySize)
			fillKey(k, entries)
			if _, ok := s.get(nil, k); ok {
				t.Errorf("%s: a key that was never stored is there", name)
			}
		}
	}
}

func TestCountKeptSeesWrongBytes(t *testing.T) {
	s, err := newMap(2, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(s, 2, 8); err != nil {
		t.Fatal(err)
	}
	k := make([]byte, keySize)
	fillKey(k, 1)
	if err := s.set(k, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if kept := countKept(s, 3, 8); kept != 1 {
		t.Errorf("countKept = %d, want 1: one entry is wrong and one is missing", kept)
	}
}

func TestMeasureCountsGarbageCollectedMemory(t *testing.T) {
	r, err := measure(config{store: "map", entries: 50_000, valueSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Kept != 50_000 || r.HeapObjects < 100_000 || r.HeapBytes < 50_000*116 {
		t.Errorf("kept %d, %d objects, %d bytes of heap", r.Kept, r.HeapObjects, r.HeapBytes)
	}
	if r.Cycles < forced+1 || r.ForcedWall <= 0 || r.ForcedMark <= 0 || r.PauseTotal < r.PauseMax ||
		r.PauseMax <= 0 {
		t.Errorf("implausible times: %+v", r)
	}
	if r.GCShareOfCPU <= 0 || r.GCShareOfCPU > 1 {
		t.Errorf("GC share of CPU = %v", r.GCShareOfCPU)
	}
}

func TestAllStoresSideBySide(t *testing.T) {
	t.Setenv(asProgram, "1")
	t.Setenv("GODEBUG", "gctrace=1")
	var stdout, stderr strings.Builder
	if err := run([]string{"-entries=5000", "-value=20"}, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	table := stdout.String()
	for _, name := range storeNames() {
		if !strings.Contains(table, name) {
			t.Errorf("no column for %s", name)
		}
	}
	if n := strings.Count(table, " 5000 |"); n != len(storeNames()) {
		t.Errorf("%d stores kept all entries, want %d", n, len(storeNames()))
	}
	if strings.Contains(table, "ms clock") || !strings.Contains(stderr.String(), " ms clock, ") {
		t.Error("the runtime's lines belong on standard error")
	}
	if t.Failed() {
		t.Logf("\n%s", table)
	}
}

func TestTableLinesAreEquallyLong(t *testing.T) {
	var out strings.Builder
	results := []result{{Store: "map", HeapObjects: 20_000_000}, {Store: "ringcache", RSS: 1 << 40}}
	if err := writeTable(&out, config{entries: 1, valueSize: 1}, results); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "\n\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for _, line := range lines {
		if len(line) != len(lines[0]) {
			t.Errorf("uneven table:\n%s", table)
			break
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown store": {"-store=abacus"},
		"no entries":       {"-entries=0"},
		"a negative value": {"-value=-1"},
		"an argument":      {"map"},
		"an unknown flag":  {"-no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := run(args, &out, &out); err == nil {
				t.Errorf("run(%q) succeeded:\n%s", args, out.String())
			}
		})
	}
}
