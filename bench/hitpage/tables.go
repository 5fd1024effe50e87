package hitpage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The stores that tables name.
const (
	us      = "ringcache"
	fifo    = "ringcache-fifo"
	s2      = "ringcache-s2"
	control = "ringcache-control"
	otter   = "otter"
	theine  = "theine"
)

// titles are the names of stores in the page; the others have their own.
var titles = map[string]string{
	fifo: "FIFO", s2: "s2", control: "control", "golang-lru": "LRU", "bigcache": "BigCache",
}

func title(store string) string { return cmp.Or(titles[store], store) }

func titled(stores []string) (names []string) {
	for _, s := range stores {
		names = append(names, title(s))
	}
	return names
}

// The sets of the page.
var (
	capacity = set{mode: "capacity", values: "sized", writes: "0", percents: []string{"10", "30"}}
	tiny     = set{mode: "capacity", values: "sized", writes: "0", percents: []string{"1"}}
	late     = set{mode: "capacity", values: "1000", writes: "0", percents: []string{"10"}, in: isLate}
	json     = set{mode: "memory", values: "sized", payload: "json", writes: "0",
		percents: []string{"10", "30"}}
)

// memory is the set of equal memory with values of that many bytes.
func memory(values string) set {
	return set{mode: "memory", values: values, writes: "0", percents: []string{"30"}}
}

// updated is the part of capacity that is also replayed with updates, with that share of them.
func (d Data) updated(writes string) set {
	s := capacity
	s.writes = "0.5"
	pairs := d.pairs(s)
	s.writes = writes
	return s.of(func(load string) bool {
		return slices.ContainsFunc(pairs, func(p pair) bool { return p.load == load })
	})
}

// Blocks returns the text of each block of the page by name.
func (d Data) Blocks() map[string]string {
	return map[string]string{
		"runs": d.runs(), "means": d.means(), "balance": d.balance(), "losses": d.losses(),
		"memory": d.curve(), "updates": d.updates(), "late": d.late(), "json": d.json(), "off": d.off(),
	}
}

// grid is a Markdown table whose first column has labels.
func grid(head []string, lines [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(head, " | "),
		strings.Repeat("--:|", len(head)-1))
	for _, line := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
	}
	return strings.ReplaceAll(b.String(), "|  ", "| ") // of empty cells
}

// line renders the means of a set, the best in bold.
func (d Data) line(label string, s set, stores []string, of func(Row) float64) []string {
	cells := []string{label}
	best := 0.0
	for _, name := range stores {
		mean, ok := d.mean(s, name, of)
		best = max(best, mean)
		cell := ""
		if ok {
			cell = fmt.Sprintf("%.1f", mean)
		}
		cells = append(cells, cell)
	}
	most := fmt.Sprintf("%.1f", best)
	for i, cell := range cells {
		if i > 0 && cell == most {
			cells[i] = "**" + cell + "**"
		}
	}
	return cells
}

// runs says when and how often the rows were measured, and how far runs are apart.
func (d Data) runs() string {
	text := fmt.Sprintf("Measured %s (ringcache) and %s (the others), once", d.days(Row.ours),
		d.days(func(r Row) bool { return !r.ours() }))
	var again []Row
	var names []string
	for _, r := range d {
		if r.Rounds > 1 {
			again, names = append(again, r), append(names, title(r.Store))
		}
	}
	if len(again) == 0 {
		return text + ".\n"
	}
	slices.SortStableFunc(again, func(a, b Row) int { return cmp.Compare(a.Spread, b.Spread) })
	slices.Sort(names)
	n, most := len(again), again[len(again)-1]
	return text + fmt.Sprintf(", except that %d rows of %s are medians of %d runs, which are %.1f "+
		"points apart in the median row, %.1f at the 90th percentile, and up to %.1f (%s).\n", n,
		strings.Join(slices.Compact(names), ", "), most.Rounds, again[n/2].Spread,
		again[n*9/10].Spread, most.Spread, pair{most.Load, most.Percent})
}

// days says when the rows were measured that keep names.
func (d Data) days(keep func(Row) bool) string {
	var days []string
	for _, r := range d {
		if keep(r) {
			days = append(days, r.Date)
		}
	}
	slices.Sort(days)
	days = slices.Compact(days)
	if len(days) < 2 {
		return strings.Join(days, "")
	}
	return days[0] + " to " + days[len(days)-1]
}

var everyone = []string{us, fifo, otter, theine, "ristretto", "golang-lru", "freecache", "bigcache",
	"fastcache"}

func (d Data) means() string {
	label := func(s set, what string) string {
		return fmt.Sprintf("%d %s at %s %%", d.loads(s), what, strings.Join(s.percents, " and "))
	}
	return grid(append([]string{"mean, %"}, titled(everyone)...), [][]string{
		d.line(label(capacity, "workloads"), capacity, everyone, hits),
		d.line("the same, by bytes", capacity, everyone, bytes),
		d.line(label(tiny, "recorded workloads"), tiny, everyone, hits),
	})
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

// score is the counts in few words.
func (t tally) score() string { return fmt.Sprintf("%d / %d / %d", t.won, t.tied, t.lost) }

var tallyHead = []string{"", "rows", "won / tied / lost", "median", "mean", "worst", "best"}

func (t tally) line(label string) []string {
	if len(t.leads) == 0 {
		return []string{label, "0", "", "", "", "", ""}
	}
	extreme := func(l lead) string { return fmt.Sprintf("%s: %+.1f", l.pair, l.by) }
	return []string{label, strconv.Itoa(len(t.leads)), t.score(), points(t.median), points(t.mean),
		extreme(t.leads[0]), extreme(t.leads[len(t.leads)-1])}
}

func points(v float64) string { return fmt.Sprintf("%+.2f", v) }

// against returns how far ringcache is from the better of otter and theine.
func (d Data) against(sets ...set) (found []lead) {
	for _, s := range sets {
		found = append(found, d.leads(s, us, otter, theine)...)
	}
	return found
}

func (d Data) balance() string {
	line := func(label string, sets ...set) []string { return count(d.against(sets...)).line(label) }
	return grid(tallyHead, [][]string{
		line("recorded, 10 and 30 %", capacity.of(isRecorded).of(noLoop)),
		line("recorded, 1 %", tiny.of(isRecorded).of(noLoop)),
		line("synthetic, 10 and 30 %", capacity.of(isSynthetic).of(noLoop)),
		line("loops, all sizes", capacity.of(isLoop), tiny.of(isLoop)),
		line("**all**", capacity, tiny),
	})
}

// losses lists the workloads on which otter or theine is ahead by more than a tie.
func (d Data) losses() string {
	all := count(d.against(capacity, tiny)).leads
	text := ""
	for _, percent := range slices.Concat(tiny.percents, capacity.percents) {
		var names []string
		for _, l := range all {
			if l.percent == percent && l.by < -tie {
				names = append(names, fmt.Sprintf("%s %+.1f", l.load, l.by))
			}
		}
		text += fmt.Sprintf("- %s %%: %s.\n", percent, cmp.Or(strings.Join(names, ", "), "none"))
	}
	return text
}

var curveStores = []string{us, otter, theine, "freecache", "fastcache"}

// sizes are the bytes of values in the curve.
func (d Data) sizes() (sizes []string) {
	for _, r := range d {
		if memory(r.Values).has(r) && r.Values != "sized" && !slices.Contains(sizes, r.Values) {
			sizes = append(sizes, r.Values)
		}
	}
	slices.SortFunc(sizes, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return sizes
}

// compared is a line of means that ends with how ringcache compares with otter and theine.
func (d Data) compared(label string, s set, stores []string) []string {
	t := count(d.against(s))
	return append(d.line(label, s, stores, hits), t.score(), points(t.median))
}

func comparedHead(label string, stores []string) []string {
	return slices.Concat([]string{label}, titled(stores), []string{"won / tied / lost", "median"})
}

// curve has the mean hit ratios by the size of values, and the share of the memory that is keys and
// values.
func (d Data) curve() string {
	var lines [][]string
	for _, size := range d.sizes() {
		s := memory(size)
		cells := d.compared(grouped(size)+" bytes", s, curveStores)
		for i, name := range curveStores {
			if share, ok := d.mean(s, name, held); ok {
				cells[i+1] += fmt.Sprintf(" (%.0f)", 100*share)
			}
		}
		lines = append(lines, cells)
	}
	return grid(comparedHead("values of", curveStores), lines)
}

// grouped puts a comma before the last three of more than three digits.
func grouped(n string) string {
	if len(n) <= 3 {
		return n
	}
	return n[:len(n)-3] + "," + n[len(n)-3:]
}

var updateStores = []string{us, otter, theine, "fastcache"}

// updateShares are those of the page, as in the data.
var updateShares = []string{"0", "0.2", "0.5"}

func shareLabel(share string) string {
	v, _ := strconv.ParseFloat(share, 64) // one of updateShares
	return fmt.Sprintf("%.0f %% updates", 100*v)
}

func (d Data) updates() string {
	var lines [][]string
	for _, share := range updateShares {
		lines = append(lines, d.compared(shareLabel(share), d.updated(share), updateStores))
	}
	return grid(comparedHead("mean hit ratio in %", updateStores), lines)
}

var lateStores = []string{us, fifo, otter, theine, "fastcache", "freecache"}

// lags are those of the page; the data has more.
var lags = []string{"0.1", "0.6", "0.7", "0.9"}

func (d Data) late() string {
	var lines [][]string
	for _, hot := range []string{"", "+hot"} {
		for _, lag := range lags {
			label := lag
			if hot != "" {
				label += ", mixed"
			}
			line := []string{label}
			for _, name := range lateStores {
				line = append(line, d.lateCell(pair{"lag=" + lag + hot, "10"}, name))
			}
			lines = append(lines, line)
		}
	}
	return grid(append([]string{"lag"}, titled(lateStores)...), lines)
}

func (d Data) lateCell(p pair, store string) string {
	r, ok := d.row(late, p, store)
	switch {
	case !ok:
		return ""
	case r.HasHot:
		return fmt.Sprintf("%.1f (%.1f)", r.Hits, r.Hot)
	}
	return fmt.Sprintf("%.1f", r.Hits)
}

var jsonStores = []string{us, control, s2, otter, theine, "freecache", "fastcache"}

func (d Data) json() string {
	label := fmt.Sprintf("mean of %d rows, %%; %s", len(d.pairs(json)), d.days(json.has))
	others := jsonStores[slices.Index(jsonStores, otter):]
	return grid(append([]string{label}, titled(jsonStores)...), [][]string{
		d.line("all", json, jsonStores, hits),
	}) + "\n" + grid(tallyHead, [][]string{
		count(d.against(json)).line("ringcache, against otter and theine"),
		count(d.leads(json, s2, others...)).line("s2, against all other caches"),
		count(d.leads(json.of(noLoop), s2, us)).line("s2, against ringcache: no loops"),
		count(d.leads(json.of(isLoop), s2, us)).line("s2, against ringcache: loops"),
	})
}

// off says which stores are far from what all should have.
func (d Data) off() string {
	var held, took, refused []string
	for _, name := range slices.Concat(everyone, []string{control, s2}) {
		var h, m, r []float64
		for _, row := range d {
			switch {
			case row.Store != name:
				continue
			case row.Mode == "memory":
				m = append(m, row.Memory)
			default:
				h = append(h, row.Held)
			}
			r = append(r, 100*row.Refused)
		}
		held = append(held, outside(name, h, 1, 0.015)...)
		took = append(took, outside(name, m, 1, 0.025)...)
		refused = append(refused, outside(name, r, 0, 0.005)...)
	}
	list := func(names []string) string { return strings.Join(names, ", ") + ".\n" }
	return "- Share of the budget held, at equal capacity: " + list(held) +
		"- Share of the budget taken, at equal memory: " + list(took) +
		"- Sets refused, in percent of the requests: " + list(refused)
}

// outside renders the least and the most, if one is further from want than the tolerance.
func outside(store string, values []float64, want, tolerance float64) []string {
	if len(values) == 0 {
		return nil
	}
	least, most := slices.Min(values), slices.Max(values)
	if want-least <= tolerance && most-want <= tolerance {
		return nil
	}
	return []string{fmt.Sprintf("%s %.2f to %.2f", title(store), least, most)}
}

// Summary returns the lines of mean hit ratios of the README's table.
func (d Data) Summary(stores []string) []string {
	line := func(what string, sets ...set) string {
		var leads []lead
		for _, s := range sets {
			leads = append(leads, d.leads(s, us, otter)...)
		}
		label := fmt.Sprintf("hit ratio, %%: mean of %d workloads, %s (won / tied / lost against "+
			"otter: %s)", d.loads(sets[0]), what, count(leads).score())
		cells := []string{label}
		for _, name := range stores {
			var means []string
			for _, s := range sets {
				if mean, ok := d.mean(s, name, hits); ok {
					means = append(means, fmt.Sprintf("%.1f", mean))
				}
			}
			cells = append(cells, strings.Join(means, "; "))
		}
		return "| " + strings.Join(cells, " | ") + " |\n"
	}
	return []string{
		line("equal bytes of entries", capacity),
		line("equal memory, values of 100; 1,000 bytes", memory("100"), memory("1000")),
	}
}
