package publish

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/hitratio"
)

// The stores that tables of hit ratios name.
const (
	us      = "ringcache"
	fifo    = "ringcache-fifo"
	s2      = "ringcache-s2"
	control = "ringcache-control"
	otter   = "otter"
	theine  = "theine"
)

var (
	everyone = []string{us, fifo, otter, theine, "ristretto", "golang-lru", "freecache", "bigcache",
		"fastcache"}
	curveStores  = []string{us, otter, theine, "freecache", "fastcache"}
	updateStores = []string{us, otter, theine, "fastcache"}
	lateStores   = []string{us, fifo, otter, theine, "fastcache", "freecache"}
	jsonStores   = []string{us, control, s2, otter, theine, "freecache", "fastcache"}
)

// The sets of the page.
var (
	capacity = set{kindOfReplay{hitratio.Capacity, "", hitratio.Sized, 0}, []float64{10, 30}, nil}
	tiny     = set{capacity.kindOfReplay, []float64{1}, nil}
	late     = set{kindOfReplay{hitratio.Capacity, "", "1000", 0}, []float64{10}, isLate}
	inJSON   = set{kindOfReplay{hitratio.Memory, "json", hitratio.Sized, 0}, []float64{10, 30}, nil}
)

// memory is the set of equal memory with values of that many bytes.
func memory(values hitratio.Values) set {
	return set{kindOfReplay{hitratio.Memory, "", values, 0}, []float64{30}, nil}
}

// updated is the part of capacity that is also replayed with updates, with that share of them.
func (h Hits) updated(writes float64) set {
	s := capacity
	s.writes = 0.5
	pairs := h.pairs(s)
	s.writes = writes
	return s.of(func(load string) bool {
		return slices.ContainsFunc(pairs, func(p pair) bool { return p.load == load })
	})
}

// blocks returns the text of each block of docs/hitratio.md by name.
func (h Hits) blocks() map[string]string {
	return map[string]string{
		"runs": fragment("runs", h), "means": h.everyone().String(), "balance": h.balance().String(),
		"losses": fragment("losses", h), "memory": h.curve().String(), "updates": h.updates().String(),
		"late": h.late().String(), "json": h.json(), "off": fragment("off", h.off()),
	}
}

// line renders the means of a set, the best in bold.
func (h Hits) line(s set, stores []string, of func(*hitratio.Row) float64) []string {
	return figures("%.1f", h.means(s, stores, of))
}

// again sums up the rows that are medians of several runs, and how far those are apart.
type again struct {
	Stores             []string
	Rows, Rounds       int
	Median, High, Most float64
	MostOf             pair
}

// Again returns nil if there are no such rows.
func (h Hits) Again() *again {
	rows := slices.DeleteFunc(slices.Clone(h), func(r hitratio.Row) bool { return r.Rounds < 2 })
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b hitratio.Row) int { return cmp.Compare(a.Spread, b.Spread) })
	n, most := len(rows), &rows[len(rows)-1]
	a := &again{Rows: n, Rounds: most.Rounds, Median: rows[n/2].Spread, High: rows[n*9/10].Spread,
		Most: most.Spread, MostOf: pairOf(most)}
	for _, r := range rows {
		a.Stores = append(a.Stores, title(r.Store))
	}
	slices.Sort(a.Stores)
	a.Stores = slices.Compact(a.Stores)
	return a
}

// Days says when the rows of ringcache were measured, with whatever policy, or the others.
func (h Hits) Days(ours bool) string {
	return h.days(func(r *hitratio.Row) bool { return strings.HasPrefix(r.Store, us) == ours })
}

func (h Hits) days(keep func(*hitratio.Row) bool) string {
	var days []string
	for i := range h {
		if keep(&h[i]) {
			days = append(days, h[i].Date)
		}
	}
	if len(days) == 0 {
		return ""
	}
	first, last := slices.Min(days), slices.Max(days)
	if first == last {
		return first
	}
	return first + " to " + last
}

func (h Hits) everyone() *Table {
	t := newTable("mean, %", titled(everyone)...)
	t.add(fmt.Sprintf("%d workloads at 10 and 30 %%", h.loads(capacity)),
		h.line(capacity, everyone, hitRatio)...)
	t.add("the same, by bytes", h.line(capacity, everyone, byteRatio)...)
	t.add(fmt.Sprintf("%d recorded workloads at 1 %%", h.loads(tiny)),
		h.line(tiny, everyone, hitRatio)...)
	return t
}

// score is the counts in few words.
func (t tally) score() string { return fmt.Sprintf("%d / %d / %d", t.won, t.tied, t.lost) }

func points(v float64) string { return fmt.Sprintf("%+.2f", v) }

func newTallies() *Table {
	return newTable("", "rows", "won / tied / lost", "median", "mean", "worst", "best")
}

func (t *Table) addTally(label string, leads []lead) {
	c := count(leads)
	if len(leads) == 0 {
		t.add(label, "0", "", "", "", "", "")
		return
	}
	extreme := func(l lead) string { return fmt.Sprintf("%s: %+.1f", l.pair, l.by) }
	t.add(label, strconv.Itoa(len(leads)), c.score(), points(c.median), points(c.mean),
		extreme(c.leads[0]), extreme(c.leads[len(leads)-1]))
}

func (h Hits) balance() *Table {
	t := newTallies()
	t.addTally("recorded, 10 and 30 %", h.against(capacity.of(isRecorded).of(noLoop)))
	t.addTally("recorded, 1 %", h.against(tiny.of(isRecorded).of(noLoop)))
	t.addTally("synthetic, 10 and 30 %", h.against(capacity.of(isSynthetic).of(noLoop)))
	t.addTally("loops, all sizes", h.against(capacity.of(isLoop), tiny.of(isLoop)))
	t.addTally("**all**", h.against(capacity, tiny))
	return t
}

// loss lists the loads of one size on which otter or theine is ahead by more than a tie.
type loss struct {
	Percent float64
	Loads   []string
}

// Losses returns the losses of all sizes.
func (h Hits) Losses() (all []loss) {
	leads := count(h.against(capacity, tiny)).leads
	for _, percent := range slices.Concat(tiny.percents, capacity.percents) {
		l := loss{Percent: percent}
		for _, lead := range leads {
			if lead.percent == percent && lead.by < -tie {
				l.Loads = append(l.Loads, fmt.Sprintf("%s %+.1f", lead.load, lead.by))
			}
		}
		all = append(all, l)
	}
	return all
}

// sizes are the bytes of values in the curve.
func (h Hits) sizes() (sizes []hitratio.Values) {
	for i := range h {
		v := h[i].Plan.Values
		if memory(v).has(&h[i]) && v != hitratio.Sized && !slices.Contains(sizes, v) {
			sizes = append(sizes, v)
		}
	}
	slices.SortFunc(sizes, func(a, b hitratio.Values) int { return cmp.Compare(a.Bytes(), b.Bytes()) })
	return sizes
}

// newComparison is a table of means that ends with how ringcache compares with otter and theine.
func newComparison(label string, stores []string) *Table {
	return newTable(label, append(titled(stores), "won / tied / lost", "median")...)
}

func (t *Table) addComparison(label string, means []string, leads []lead) {
	c := count(leads)
	t.add(label, append(means, c.score(), points(c.median))...)
}

// curve has the mean hit ratios by the size of values, and the share of the memory that is keys and
// values.
func (h Hits) curve() *Table {
	t := newComparison("values of", curveStores)
	for _, size := range h.sizes() {
		s := memory(size)
		cells := h.line(s, curveStores, hitRatio)
		for i, share := range h.means(s, curveStores, held) {
			if !math.IsNaN(share) {
				cells[i] += fmt.Sprintf(" (%.0f)", 100*share)
			}
		}
		t.addComparison(grouped(size)+" bytes", cells, h.against(s))
	}
	return t
}

// grouped puts a comma before the last three of more than three digits.
func grouped(n hitratio.Values) string {
	if len(n) <= 3 {
		return string(n)
	}
	return string(n[:len(n)-3] + "," + n[len(n)-3:])
}

func (h Hits) updates() *Table {
	t := newComparison("mean hit ratio in %", updateStores)
	for _, share := range []float64{0, 0.2, 0.5} {
		s := h.updated(share)
		t.addComparison(fmt.Sprintf("%.0f %% updates", 100*share), h.line(s, updateStores, hitRatio),
			h.against(s))
	}
	return t
}

// late has some of the lags in the data.
func (h Hits) late() *Table {
	t := newTable("lag", titled(lateStores)...)
	for _, mixed := range []bool{false, true} {
		for _, lag := range []string{"0.1", "0.6", "0.7", "0.9"} {
			label, p := lag, pair{"lag=" + lag, 10}
			if mixed {
				label, p.load = lag+", mixed", p.load+"+hot"
			}
			var cells []string
			for _, name := range lateStores {
				cells = append(cells, lateCell(h.row(late, p, name)))
			}
			t.add(label, cells...)
		}
	}
	return t
}

func lateCell(r *hitratio.Row) string {
	switch {
	case r == nil:
		return ""
	case r.Beside > 0:
		return fmt.Sprintf("%.1f (%.1f)", r.Ratio(), r.BesideRatio())
	}
	return fmt.Sprintf("%.1f", r.Ratio())
}

func (h Hits) json() string {
	t := newTable(fmt.Sprintf("mean of %d rows, %%; %s", len(h.pairs(inJSON)), h.days(inJSON.has)),
		titled(jsonStores)...)
	t.add("all", h.line(inJSON, jsonStores, hitRatio)...)
	others := jsonStores[slices.Index(jsonStores, otter):]
	c := newTallies()
	c.addTally("ringcache, against otter and theine", h.against(inJSON))
	c.addTally("s2, against other projects' caches", h.leads(inJSON, s2, others...))
	c.addTally("s2, against ringcache: no loops", h.leads(inJSON.of(noLoop), s2, us))
	c.addTally("s2, against ringcache: loops", h.leads(inJSON.of(isLoop), s2, us))
	return t.String() + "\n" + c.String()
}

// offBudget names the stores that are far from what all should have.
type offBudget struct{ Held, Taken, Refused []string }

func (h Hits) off() (o offBudget) {
	for _, name := range slices.Concat(everyone, []string{control, s2}) {
		var has, takes, refuses []float64
		for i := range h {
			r := &h[i]
			switch {
			case r.Store != name:
				continue
			case r.Mode == hitratio.Memory:
				takes = append(takes, taken(r))
			default:
				has = append(has, held(r))
			}
			refuses = append(refuses, 100*float64(r.Refused)/float64(r.Requests))
		}
		o.Held = append(o.Held, outside(name, has, 1, 0.01)...)
		o.Taken = append(o.Taken, outside(name, takes, 1, 0.02)...)
		o.Refused = append(o.Refused, outside(name, refuses, 0, 0.005)...)
	}
	return o
}

// outside renders the least and the most, if one is further from want than the tolerance.
func outside(store string, values []float64, want, tolerance float64) []string {
	if len(values) == 0 {
		return nil
	}
	least, most := slices.Min(values), slices.Max(values)
	tolerance *= 1 + 1e-9 // for rounding
	if want-least <= tolerance && most-want <= tolerance {
		return nil
	}
	return []string{fmt.Sprintf("%s %.2f to %.2f", title(store), least, most)}
}

// summary adds the mean hit ratios to the table of the README.
func (h Hits) summary(t *Table, stores []string) {
	c := count(h.against(capacity))
	label := fmt.Sprintf("mean hit ratio in %%, equal capacity of 10 and 30 %% of the data of "+
		"%d workloads, on most of which ringcache was tuned (won / tied / lost against the better of "+
		"otter and theine: %s), %s", h.loads(capacity),
		c.score(), h.days(func(*hitratio.Row) bool { return true }))
	t.add(label, figures("%.1f", h.means(capacity, stores, hitRatio))...)
}

// HitRatios renders results: for each kind of replays the hit ratios of all stores.
func HitRatios(rows []hitratio.Row) string {
	h := Hits(rows)
	var kinds []kindOfReplay
	for i := range h {
		if k := kindOf(&h[i]); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	var sections []section
	for _, k := range kinds {
		s := set{kindOfReplay: k}
		stores := distinct(h, s, func(r *hitratio.Row) string { return r.Store })
		t := newTable("load, size", stores...)
		for _, p := range h.pairs(s) {
			only := set{k, []float64{p.percent}, func(load string) bool { return load == p.load }}
			t.add(p.String(), figures("%.2f", h.means(only, stores, hitRatio))...)
		}
		t.add("mean", figures("%.2f", h.means(s, stores, hitRatio))...)
		text := t.String()
		if leads := h.against(s); len(leads) > 0 {
			c := newTallies()
			c.addTally("ringcache, against otter and theine", leads)
			text += "\n" + c.String()
		}
		sections = append(sections, section{k.String(), text})
	}
	return fragment("replays", struct {
		Sections []section
		Off      string
	}{sections, fragment("off", h.off())})
}
