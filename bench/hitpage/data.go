// Package hitpage makes the tables and charts of docs/hitratio.md from the data of cmd/hitratio.
package hitpage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/trace"
)

// File is the data, below the root of the repository.
const File = "docs/data/hitratio.csv"

// Row is what was measured of one store on one workload at one size.
type Row struct {
	Mode, Values, Payload, Writes string
	Load, Percent, Store, Date    string

	Hits, Bytes, Hot float64 // hit ratios in percent; Hot is that of hot keys besides late reads
	HasHot           bool
	Held, Memory     float64 // as a share of the budget
	Refused          float64 // Sets, as a share of the requests
	Rounds           int     // of which this is the median
	Spread           float64 // between their hit ratios, in points
}

// ours reports whether the row is of ringcache, with whatever policy.
func (r Row) ours() bool { return strings.HasPrefix(r.Store, us) }

// Data is the rows of a file.
type Data []Row

// Read returns the rows of a file without those that failed.
func Read(file string) (Data, error) {
	lines, err := Lines(file)
	if err != nil {
		return nil, fmt.Errorf("hitpage: %w", err)
	}
	var d Data
	for _, line := range lines {
		d = append(d, line.row())
		if err := line.Err(); err != nil {
			return nil, fmt.Errorf("hitpage: %w", err)
		}
	}
	return d, nil
}

func (l *Line) row() Row {
	budget, hot := l.Number("budget_bytes"), l.Number("beside_requests")
	return Row{
		Mode: l.Text("mode"), Values: l.Text("values"), Payload: l.Text("payload"),
		Writes: l.Text("writes"), Load: l.Text("load"), Percent: l.Text("percent"),
		Store: l.Text("store"), Date: l.Text("date"),
		Hits: l.Number("hit_ratio"), Bytes: l.Number("byte_hit_ratio"),
		Hot: 100 * l.Number("beside_hits") / max(1, hot), HasHot: hot > 0,
		Held: l.Number("held_bytes") / budget, Memory: l.Number("memory_bytes") / budget,
		Refused: l.Number("refused") / l.Number("requests"),
		Rounds:  int(l.Number("rounds")), Spread: l.Number("spread"),
	}
}

// pair is a workload and the size of the cache.
type pair struct{ load, percent string }

func (p pair) String() string { return p.load + ", " + p.percent + " %" }

// set is what a table is about. All pairs of it are replayed with the same kind of values.
type set struct {
	mode, values, payload, writes string
	percents                      []string
	in                            func(load string) bool // nil: all
}

func (s set) has(r Row) bool {
	return r.Mode == s.mode && r.Values == s.values && r.Payload == s.payload &&
		r.Writes == s.writes && slices.Contains(s.percents, r.Percent) && (s.in == nil || s.in(r.Load))
}

// of returns the set without the workloads that in does not name.
func (s set) of(in func(load string) bool) set {
	before := s.in
	s.in = func(load string) bool { return (before == nil || before(load)) && in(load) }
	return s
}

// pairs returns those that ringcache has rows of, in the order of the file.
func (d Data) pairs(s set) (found []pair) {
	for _, r := range d {
		if r.Store == us && s.has(r) {
			found = append(found, pair{r.Load, r.Percent})
		}
	}
	return found
}

// loads returns how many workloads a set has.
func (d Data) loads(s set) int {
	names := map[string]bool{}
	for _, p := range d.pairs(s) {
		names[p.load] = true
	}
	return len(names)
}

// row returns the row of a store.
func (d Data) row(s set, p pair, store string) (Row, bool) {
	i := slices.IndexFunc(d, func(r Row) bool {
		return r.Store == store && r.Load == p.load && r.Percent == p.percent && s.has(r)
	})
	if i < 0 {
		return Row{}, false
	}
	return d[i], true
}

func hits(r Row) float64  { return r.Hits }
func bytes(r Row) float64 { return r.Bytes }
func held(r Row) float64  { return r.Held }

// mean returns the mean of a store over all pairs of a set; ok is false if one is missing.
func (d Data) mean(s set, store string, of func(Row) float64) (mean float64, ok bool) {
	pairs := d.pairs(s)
	for _, p := range pairs {
		r, ok := d.row(s, p, store)
		if !ok {
			return 0, false
		}
		mean += of(r) / float64(len(pairs))
	}
	return mean, len(pairs) > 0
}

// lead is by how much a store is ahead of the best of others on a pair, in points.
type lead struct {
	pair
	ours, by float64
}

// leads returns the leads of ours on the pairs of which all have rows.
func (d Data) leads(s set, ours string, theirs ...string) (found []lead) {
next:
	for _, p := range d.pairs(s) {
		r, ok := d.row(s, p, ours)
		if !ok {
			continue
		}
		best := 0.0
		for _, name := range theirs {
			other, ok := d.row(s, p, name)
			if !ok {
				continue next
			}
			best = max(best, other.Hits)
		}
		found = append(found, lead{p, r.Hits, r.Hits - best})
	}
	return found
}

// The kinds of workloads.

var loops = []string{"loop", "loops", "lirs_cs", "lirs_multi1", "lirs_multi2", "lirs_ps"}

func isLoop(load string) bool { return slices.Contains(loops, load) }

func noLoop(load string) bool { return !isLoop(load) }

func isSynthetic(load string) bool {
	made, _ := trace.Sources("")
	return slices.ContainsFunc(made, func(s trace.Source) bool { return s.Name == load })
}

func isRecorded(load string) bool { return !isSynthetic(load) }

func isLate(load string) bool { return strings.HasPrefix(load, "lag=") }
