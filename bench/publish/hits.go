package publish

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/trace"
)

// Hits are results of cmd/hitratio.
type Hits []hitratio.Row

// kindOfReplay is what replays that are compared have in common.
type kindOfReplay struct {
	mode, payload string
	values        hitratio.Values
	writes        float64
}

func (k kindOfReplay) String() string {
	values := strings.TrimSpace(string(k.values) + " " + k.payload)
	text := fmt.Sprintf("Equal %s, values: %s", k.mode, values)
	if k.writes > 0 {
		text += fmt.Sprintf(", %.3g %% updates", 100*k.writes)
	}
	return text
}

func kindOf(r *hitratio.Row) kindOfReplay {
	return kindOfReplay{r.Mode, r.Plan.Payload, r.Plan.Values, r.Plan.Writes}
}

// set is what a table is about.
type set struct {
	kindOfReplay
	percents []float64              // nil: all
	in       func(load string) bool // nil: all
}

func (s set) has(r *hitratio.Row) bool {
	return kindOf(r) == s.kindOfReplay &&
		(s.percents == nil || slices.Contains(s.percents, r.Plan.Percent)) &&
		(s.in == nil || s.in(r.Plan.Load))
}

// of returns the set without the loads that in does not name.
func (s set) of(in func(load string) bool) set {
	before := s.in
	s.in = func(load string) bool { return (before == nil || before(load)) && in(load) }
	return s
}

// pair is a load and the size of the cache.
type pair struct {
	load    string
	percent float64
}

func (p pair) String() string { return fmt.Sprintf("%s, %v %%", p.load, p.percent) }

func pairOf(r *hitratio.Row) pair { return pair{r.Plan.Load, r.Plan.Percent} }

// distinct lists what of says about the rows of the set, in the order of the rows.
func distinct[T comparable](h Hits, s set, of func(*hitratio.Row) T) (found []T) {
	for i := range h {
		if v := of(&h[i]); s.has(&h[i]) && !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	return found
}

func (h Hits) pairs(s set) []pair { return distinct(h, s, pairOf) }

// loads returns how many loads a set has.
func (h Hits) loads(s set) int {
	return len(distinct(h, s, func(r *hitratio.Row) string { return r.Plan.Load }))
}

// row returns the row of a store, or nil.
func (h Hits) row(s set, p pair, store string) *hitratio.Row {
	for i := range h {
		if r := &h[i]; r.Store == store && pairOf(r) == p && s.has(r) {
			return r
		}
	}
	return nil
}

// The figures of a row.
func hitRatio(r *hitratio.Row) float64  { return r.Ratio() }
func byteRatio(r *hitratio.Row) float64 { return r.ByteRatio }
func held(r *hitratio.Row) float64      { return float64(r.Held) / float64(r.Plan.Budget) }
func taken(r *hitratio.Row) float64     { return float64(r.Memory) / float64(r.Plan.Budget) }

// means returns the mean of each store over all pairs of a set, or NaN if one is missing.
func (h Hits) means(s set, stores []string, of func(*hitratio.Row) float64) []float64 {
	means := make([]float64, len(stores))
	pairs := h.pairs(s)
	for i, name := range stores {
		for _, p := range pairs {
			if r := h.row(s, p, name); r != nil {
				means[i] += of(r) / float64(len(pairs))
			} else {
				means[i] = math.NaN()
			}
		}
	}
	return means
}

// lead is by how much a store is ahead of the best of others on a pair, in points.
type lead struct {
	pair
	by float64
}

// leads returns the leads of ours on the pairs of which all have rows.
func (h Hits) leads(s set, ours string, theirs ...string) (found []lead) {
next:
	for _, p := range h.pairs(s) {
		r := h.row(s, p, ours)
		if r == nil {
			continue
		}
		best := 0.0
		for _, name := range theirs {
			other := h.row(s, p, name)
			if other == nil {
				continue next
			}
			best = max(best, other.Ratio())
		}
		found = append(found, lead{p, r.Ratio() - best})
	}
	return found
}

// against returns how far ringcache is from the better of otter and theine.
func (h Hits) against(sets ...set) (found []lead) {
	for _, s := range sets {
		found = append(found, h.leads(s, us, otter, theine)...)
	}
	return found
}

// tie is up to how many points apart two ratios count as equal.
const tie = 0.5

// tally counts what a store wins.
type tally struct {
	leads           []lead // from the worst to the best
	won, tied, lost int
	median, mean    float64
}

func count(leads []lead) (t tally) {
	t.leads = slices.SortedFunc(slices.Values(leads),
		func(a, b lead) int { return cmp.Compare(a.by, b.by) })
	for _, l := range t.leads {
		switch {
		case l.by > tie:
			t.won++
		case l.by < -tie:
			t.lost++
		default:
			t.tied++
		}
		t.mean += l.by / float64(len(leads))
	}
	if n := len(t.leads); n > 0 {
		t.median = (t.leads[(n-1)/2].by + t.leads[n/2].by) / 2
	}
	return t
}

// The kinds of loads.

var loops = []string{"loop", "loops", "lirs_cs", "lirs_multi1", "lirs_multi2", "lirs_ps"}

func isLoop(load string) bool { return slices.Contains(loops, load) }

func noLoop(load string) bool { return !isLoop(load) }

func isSynthetic(load string) bool {
	made, _ := trace.Sources("")
	return slices.ContainsFunc(made, func(s trace.Source) bool { return s.Name == load })
}

func isRecorded(load string) bool { return !isSynthetic(load) }

func isLate(load string) bool { return strings.HasPrefix(load, "lag=") }
