package measure

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/ringcache/ringcache/bench/store"
)

var tinyScale = Scale{Entries: 2000, FullMB: 32, Sets: 1000, Duration: time.Millisecond}

func TestEveryLoadRuns(t *testing.T) {
	for _, l := range Loads {
		t.Run(l.Name, func(t *testing.T) {
			m, err := Run(Spec{Load: l.Name, Store: "fastcache", Scale: tinyScale})
			if err != nil {
				t.Fatal(err)
			}
			if m[HeldEntries] == 0 || (!l.Full && !l.warm && m[Held] != 1) {
				t.Fatalf("entries are missing: %v", m)
			}
			if hits, ok := m[Hits]; ok && hits != 1 && l.Name != "get-absent" {
				t.Fatalf("timed Gets missed: %v", m)
			}
		})
	}
}

// TestNullStoreCostsNothing shows that the harness adds no objects of its own, and
// that misses are no errors.
func TestNullStoreCostsNothing(t *testing.T) {
	m, err := Run(Spec{Load: "live-10", Store: store.Null, Scale: Scale{Entries: 1_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m[Overhead]; ok || m[HeldEntries] != 0 || m[HeapObjects] > 0.01 {
		t.Fatalf("unexpected result: %v", m)
	}
}

func TestReadMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no VmRSS")
	}
	const size = 64 << 20
	before := readMemory()
	held := bytes.Repeat([]byte{1}, size)
	after := readMemory()
	runtime.KeepAlive(held)
	// The race detector adds memory of its own.
	if added := after.resident - before.resident; added < size*9/10 || added > size*4 {
		t.Fatalf("%d bytes added %d to the resident memory", size, added)
	}
}

// liar returns the value of the key that was set last, whatever the key.
type liar struct{ last []byte }

func (l *liar) Set(_, v []byte) error            { l.last = bytes.Clone(v); return nil }
func (l *liar) Get(dst, _ []byte) ([]byte, bool) { return append(dst, l.last...), true }
func (l *liar) Close() error                     { return nil }

// TestWrongValuesFail runs every load on a store that is wrong.
func TestWrongValuesFail(t *testing.T) {
	for _, l := range Loads {
		b := &bench{
			load: l, scale: tinyScale, entries: l.Entries(tinyScale),
			info: store.Info{Name: "liar", New: func(store.Config) (store.Store, error) { return new(liar), nil }},
		}
		b.start(1)
		if _, err := l.run(b); err == nil {
			t.Errorf("%s: nothing is noticed", l.Name)
		}
	}
}

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want Summary
	}{
		{nil, Summary{}},
		{[]float64{3}, Summary{3, 3, 3, 1}},
		{[]float64{4, 1}, Summary{2.5, 1, 4, 2}},
		{[]float64{9, 1, 5}, Summary{5, 1, 9, 3}},
	} {
		if got := Summarize(c.in); got != c.want {
			t.Errorf("Summarize(%v) = %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestFindLoads(t *testing.T) {
	found, err := FindLoads([]string{"latency", "reference"})
	if err != nil || len(found) != 4 {
		t.Fatalf("got %d loads, error %v; want the three of the group and one", len(found), err)
	}
	if found, err = FindLoads([]string{"ref-get"}); err != nil || len(found) != 1 {
		t.Fatalf("got %d loads, error %v; want one", len(found), err)
	}
	if _, err := FindLoads([]string{"ref-get", "nothing"}); err == nil {
		t.Fatal("an unknown load is found")
	}
}

func TestShareCoversAllIDs(t *testing.T) {
	b := &bench{load: Loads[0], entries: 1001}
	b.start(3)
	var next uint64
	for _, w := range b.workers {
		from, to := b.share(w)
		if from != next {
			t.Fatalf("share begins at %d, want %d", from, next)
		}
		next = to
	}
	if next != 1001 {
		t.Fatalf("shares end at %d", next)
	}
}
