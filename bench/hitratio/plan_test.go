package hitratio

import (
	"errors"
	"math"
	"testing"

	"github.com/ringcache/ringcache/bench/trace"
)

// source returns a synthetic load and its base.
func source(t *testing.T, name string) (trace.Source, *trace.Trace) {
	t.Helper()
	all, _ := trace.Sources("")
	found, err := trace.Find(all, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	base, err := found[0].Open(1)
	if err != nil {
		t.Fatal(err)
	}
	return found[0], base
}

func mustPlan(
	t *testing.T, src trace.Source, base *trace.Trace, percent float64, values Values, lim Limits,
) *Plan {
	t.Helper()
	p, err := NewPlan(src, base, percent, values, lim)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// near fails unless got is within two percent of want.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got/want-1) > 0.02 {
		t.Errorf("%s: %v, want about %v", what, got, want)
	}
}

func TestDrawnValuesMeetTheBudget(t *testing.T) {
	src, base := source(t, "loop")
	p := mustPlan(t, src, base, 10, Sized, DefaultLimits)
	near(t, "budget", float64(p.Budget), 64<<20)
	near(t, "entries", float64(p.Entries()), 10_000)
	if p.Scale != 1 || p.Copies != 1 || p.Keys != base.Keys || p.Requests != len(base.Requests) {
		t.Errorf("unexpected plan: %+v", p)
	}

	// At 1 % the values would be too large: a larger load makes up for it.
	p = mustPlan(t, src, base, 1, Sized, DefaultLimits)
	near(t, "budget", float64(p.Budget), 64<<20)
	if p.Scale < 5 || p.ValueBytes > DefaultLimits.MaxValue || p.Keys != p.Scale*base.Keys {
		t.Errorf("unexpected plan: %+v", p)
	}

	// Unless that would be too long: then they are large after all.
	short := DefaultLimits
	short.MaxCopied = 2 * len(base.Requests)
	p = mustPlan(t, src, base, 1, Sized, short)
	near(t, "budget", float64(p.Budget), 64<<20)
	if p.Scale != 2 || p.ValueBytes <= short.MaxValue {
		t.Errorf("unexpected plan: %+v", p)
	}
}

func TestSmallValuesTakeAScale(t *testing.T) {
	src, base := source(t, "zipf-1.2") // whose keys grow less than its requests
	lim := Limits{MinBudget: 4 << 20, MaxRequests: 20_000_000}
	p := mustPlan(t, src, base, 30, "100", lim)
	if p.Budget < lim.MinBudget || p.Budget > lim.MinBudget*3/2 || p.EntryBytes() != keyBytes+100 ||
		p.Scale < 2 {
		t.Errorf("unexpected plan: %+v", p)
	}
	lim.MaxRequests = 1_000_000
	if _, err := NewPlan(src, base, 30, "100", lim); !errors.Is(err, ErrTooLong) {
		t.Errorf("error %v", err)
	}
}

// TestOwnSizes copies and stretches a recorded trace.
func TestOwnSizes(t *testing.T) {
	base := sized()
	const footprint = 4*keyBytes + 100 + 200 + 300 + leastValue
	for _, test := range []struct {
		lim     Limits
		scale   int
		stretch float64
	}{
		{Limits{MinBudget: footprint / 2, MaxCopied: 1000}, 1, 1},
		{Limits{MinBudget: footprint * 5 / 2, MaxCopied: 1000}, 5, 1},
		{Limits{MinBudget: footprint * 5, MaxCopied: 5 * len(base.Requests)}, 5, 2},
	} {
		p := mustPlan(t, trace.Source{}, base, 50, Sized, test.lim)
		if p.Scale != test.scale || p.Copies != p.Scale || math.Abs(p.Stretch-test.stretch) > 0.01 ||
			p.ValueBytes != 0 {
			t.Errorf("%+v: unexpected plan %+v", test.lim, p)
		}
		if p.Stretch == 1 && p.Footprint != int64(footprint*p.Scale) {
			t.Errorf("footprint %d, want %d", p.Footprint, footprint*p.Scale)
		}
	}
}

func TestDrawnSizesAreSpread(t *testing.T) {
	p := Plan{Values: Sized, ValueBytes: 1001}
	least, most, sum := math.MaxInt, 0, 0
	for id := range uint64(10_000) {
		n := p.valueSize(id, 0)
		least, most, sum = min(least, n), max(most, n), sum+n
	}
	near(t, "mean", float64(sum)/10_000, 1001)
	if least < 500 || least > 510 || most > 1502 || most < 1490 {
		t.Errorf("sizes from %d to %d", least, most)
	}
}
