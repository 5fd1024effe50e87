package measure

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

var tinyScale = Scale{Entries: 2000, FullMB: 2, Sets: 1000, Duration: time.Millisecond}

// absents reports whether the load is about keys that are not there.
func absents(l *Load) bool { return strings.HasSuffix(l.Name, "-absent") || l.Name == "cold-start" }

// allocations is how many allocations a step may have: those that the load is about.
func allocations(l *Load) float64 {
	if l.Name == "get-nil" {
		return batch
	}
	return 0
}

func TestEveryLoadRuns(t *testing.T) {
	for _, l := range Loads {
		t.Run(l.Name, func(t *testing.T) {
			m, err := Run(l.Name, "fastcache", tinyScale)
			if err != nil {
				t.Fatal(err)
			}
			isWhole := !l.Full && !l.warm && l.Name != "cold-start"
			if m[HeldEntries] == 0 || (isWhole && m[Held] != 1) {
				t.Fatalf("entries are missing: %v", m)
			}
			if hits, ok := m[Hits]; ok && hits != 1 && !absents(l) {
				t.Fatalf("timed Gets missed: %v", m)
			}
		})
	}
}

// TestEveryStoreRuns runs what asks most of a store: all of the optional
// interfaces, many goroutines, and eviction.
func TestEveryStoreRuns(t *testing.T) {
	for _, info := range store.Known() {
		for _, name := range []string{
			"dep-uniform", "get-uniform", "get-nil", "ttl-get-uniform", "ttl-set",
			"mix-small", "set-new", "latency-evict", "live-4",
		} {
			m, err := Run(name, info.Name, tinyScale)
			if err != nil {
				t.Errorf("%s on %s: %v", name, info.Name, err)
			}
			if strings.HasSuffix(name, "-uniform") && info.Name != store.Null && m[Hits] != 1 {
				t.Errorf("%s on %s: not all Gets hit: %v", name, info.Name, m)
			}
		}
	}
}

// TestFillingWaits has a store that drops Sets when it is behind.
func TestFillingWaits(t *testing.T) {
	m, err := Run("get-uniform", "ristretto",
		Scale{Entries: 200_000, Duration: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if m[Held] != 1 || m[Hits] != 1 {
		t.Errorf("ristretto lost entries while it was filled: %v", m)
	}
}

func TestLatencies(t *testing.T) {
	m, err := Run("latency-evict", "ringcache", Scale{Entries: 1000, FullMB: 32, Sets: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{Sets, Gets} {
		last := 1.0
		for _, name := range Latencies(op) {
			if m[name] < last {
				t.Errorf("%s is %v, a smaller quantile %v", name, m[name], last)
			}
			last = m[name]
		}
	}
	if m[Hits] < 0.1 || m[HeldEntries] == 0 {
		t.Errorf("hits and entries are missing: %v", m)
	}
}

// TestTimes wants quantiles that are right to a thousandth.
func TestTimes(t *testing.T) {
	all := newTimes()
	for i := range 100_000 {
		if err := all.record(time.Duration(i+1) * 10 * time.Nanosecond); err != nil {
			t.Fatal(err)
		}
	}
	m := Metrics{}
	all.addTo(m, Gets)
	for i, want := range []float64{500_000, 990_000, 999_000, 999_900, 1_000_000} {
		name := Latencies(Gets)[i]
		if got := m[name]; got < 0.999*want || got > 1.001*want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := all.record(time.Hour); err == nil {
		t.Error("an hour is recorded")
	}
}

// TestNullStoreCostsNothing shows that misses are no errors.
func TestNullStoreCostsNothing(t *testing.T) {
	m, err := Run("live-10", store.Null, Scale{Entries: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m[Overhead]; ok || m[HeldEntries] != 0 {
		t.Fatalf("unexpected result: %v", m)
	}
}

// liar returns the value of the key that was set last, whatever the key.
type liar struct{ last []byte }

func (l *liar) Set(_, v []byte) error            { l.last = bytes.Clone(v); return nil }
func (l *liar) Get(dst, _ []byte) ([]byte, bool) { return append(dst, l.last...), true }
func (l *liar) Del([]byte)                       {}
func (l *liar) Close() error                     { return nil }

// TestWrongValuesFail runs every load on a store that is wrong.
func TestWrongValuesFail(t *testing.T) {
	for _, l := range Loads {
		b := &bench{
			load: l, scale: tinyScale, entries: l.entries(tinyScale),
			info: store.Info{Name: "liar",
				New: func(store.Config) (store.Store, error) { return new(liar), nil }},
		}
		b.start(1)
		if _, err := l.run(b); err == nil {
			t.Errorf("%s: nothing is noticed", l.Name)
		}
	}
}

// TestTimedLoopsCheckHits wants each loop to find wrong values by itself, without
// the verification that follows.
func TestTimedLoopsCheckHits(t *testing.T) {
	for _, l := range Loads {
		b := &bench{load: l, scale: tinyScale, entries: l.entries(tinyScale)}
		b.start(1)
		w := b.workers[0]
		w.store = &oracle{l.Format, make([]byte, l.Format.ValueSize), 1}
		if l.Group == Latency {
			if err := w.timePairs(Metrics{}, 10, 10); err == nil {
				t.Errorf("%s: nothing is noticed in pairs", l.Name)
			}
		} else if l.op != nil {
			if err := w.steps(b.entries + batch); err == nil && w.gets > 0 {
				t.Errorf("%s: nothing is noticed in %d Gets", l.Name, w.gets)
			}
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

func TestOver(t *testing.T) {
	base := Summarize([]float64{100, 90, 110})
	for _, c := range []struct {
		rounds []float64
		want   string
	}{
		{nil, "-"},
		{[]float64{60, 50, 90}, "~0.60"},
		{[]float64{60, 50, 89}, "0.60"},
		{[]float64{95, 96, 97}, "~0.96"},
		{[]float64{2000}, "20"},
		{[]float64{0.123}, "0.0012"},
	} {
		if got := Summarize(c.rounds).Over(base); got != c.want {
			t.Errorf("%v over %v is %s, want %s", c.rounds, base, got, c.want)
		}
	}
	if got := base.Over(Summary{}); got != "-" {
		t.Errorf("over nothing: %s", got)
	}
}

func TestFind(t *testing.T) {
	if l, err := Find("ref-get"); err != nil || l.Name != "ref-get" {
		t.Fatalf("got %v, error %v", l, err)
	}
	if _, err := Find("nothing"); err == nil {
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

// oracle knows every value without having been told, or that of another id.
type oracle struct {
	format load.Format
	val    []byte
	off    uint64 // what it adds to ids
}

func (o *oracle) Get(dst, k []byte) ([]byte, bool) {
	id := uint64(binary.LittleEndian.Uint32(k))
	if len(k) == 16 {
		id = binary.LittleEndian.Uint64(k[8:])
	}
	o.format.Value(o.val, id+o.off, 0)
	return append(dst, o.val...), true
}

func (o *oracle) Set(_, _ []byte) error { return nil }
func (o *oracle) Del([]byte)            {}
func (o *oracle) Close() error          { return nil }

func TestLoopsDoNotAllocate(t *testing.T) {
	for _, l := range Loads {
		if l.op == nil || absents(l) { // which fail if a key hits
			continue
		}
		b := &bench{load: l, scale: tinyScale, entries: l.entries(tinyScale)}
		b.start(1)
		w := b.workers[0]
		w.store = &oracle{l.Format, make([]byte, l.Format.ValueSize), 0}
		if allocs := testing.AllocsPerRun(20, func() {
			if err := w.step(); err != nil {
				t.Fatal(err)
			}
		}); allocs != allocations(l) {
			t.Errorf("%s: %v allocations in %d operations, want %v", l.Name, allocs, batch, allocations(l))
		}
		if w.hits != w.gets {
			t.Errorf("%s: %d of %d Gets hit", l.Name, w.hits, w.gets)
		}
	}
}

// TestTimingDoesNotAllocate compares few timed operations with many: both make
// the same histograms.
func TestTimingDoesNotAllocate(t *testing.T) {
	l, err := Find("latency-grow")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{load: l, scale: tinyScale, entries: 1000}
	b.start(1)
	w := b.workers[0]
	w.store = &oracle{small, make([]byte, small.ValueSize), 0}
	allocs := func(pairs int) float64 {
		return testing.AllocsPerRun(5, func() {
			if err := w.timePairs(Metrics{}, pairs, 1000); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocs(10), allocs(5000); few != many {
		t.Errorf("%v allocations with 10 pairs, %v with 5000", few, many)
	}
}
