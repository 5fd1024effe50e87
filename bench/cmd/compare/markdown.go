package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// yardstick is the store that the ratios are to, of tables and charts. Tables also
// have those to the baseline, if there is one.
const yardstick = "fastcache"

// table is one heading of the document.
type table struct {
	title, note string
	loads       string   // a load or a group of them
	metrics     []string // one row each for every load and GOMAXPROCS
	ratio       bool     // with more tables, of ratios
}

var tables = []table{
	{
		title: "Reference", loads: string(measure.Reference), metrics: []string{measure.NsPerOp},
		ratio: true,
		note: "65,536 items of 4 + 4 bytes; every goroutine goes through all of them in order, again " +
			"and again.",
	},
	{
		title: "Entries of 16 + 100 bytes", loads: string(measure.Small),
		metrics: []string{measure.NsPerOp}, ratio: true,
	},
	{
		title: "Entries with a time to live", loads: string(measure.TTL), ratio: true,
		metrics: []string{measure.NsPerOp},
		note:    "16 + 100 bytes, and an hour to live, which no run takes. " + immortals(),
	},
	{
		title: "Entries of 16 + 1000 bytes", loads: string(measure.Large),
		metrics: []string{measure.NsPerOp}, ratio: true,
	},
	{
		title: "Entries of 16 + 10,000 and 16 + 100,000 bytes", loads: string(measure.Larger),
		metrics: []string{measure.NsPerOp}, ratio: true,
	},
	{
		title: "A small, hot cache", loads: string(measure.Hot), metrics: []string{measure.NsPerOp},
		ratio: true,
		note:  "65,536 entries of 16 + 8 bytes.",
	},
	{
		title: "Latency in a full cache", loads: "latency-evict", metrics: latencies(measure.HeldEntries),
		ratio: true,
		note: "One goroutine sets a new key and gets a recent one, in turn; Gets that hit. The null " +
			"store shows the clock and the machine's own noise.",
	},
	{
		title: "Latency in a full cache whose statistics are read", loads: "latency-stats", ratio: true,
		// too few calls for these
		metrics: latencies(measure.HeldEntries, slices.Delete(measure.Latencies(measure.Stats), 2, 4)...),
		note:    "The same, while another goroutine asks for the store's statistics every millisecond.",
	},
	{
		title: "Latency in a cache that grows", loads: "latency-grow", metrics: latencies(measure.Held),
		ratio: true,
		note: "One goroutine sets new keys from the first to the last, with no room made in advance, " +
			"and gets one of those set so far after each.",
	},
	{
		title: "Memory", loads: string(measure.Live),
		metrics: []string{measure.Overhead, measure.HeapObjects},
		note: "Resident memory added by the filled store, less the bytes of keys and values; objects " +
			"added to the Go heap.",
	},
	{
		title: "Garbage collection", loads: string(measure.Live),
		metrics: []string{measure.GCTime, measure.GCCPU},
		note: "One `runtime.GC()` with the entries live, and the CPU time of it; the null store is a " +
			"process without entries.",
	},
}

// immortals names the stores that do these loads without a time to live.
func immortals() string {
	var names []string
	for _, info := range store.All {
		if !info.Expires && info.Name != store.Null {
			names = append(names, info.Name)
		}
	}
	return "These have no such thing, and do the same without: " + strings.Join(names, ", ") + "."
}

// latencies lists the metrics of a latency load.
func latencies(held string, more ...string) []string {
	return slices.Concat(
		measure.Latencies(measure.Sets), []string{measure.Slow(measure.Sets)},
		measure.Latencies(measure.Gets), []string{measure.Slow(measure.Gets), measure.Hits, held}, more,
	)
}

// markdown renders the document.
func (d *document) markdown() []byte {
	var b bytes.Buffer
	d.header(&b)
	all := d.summaries()
	for _, t := range tables {
		if rows := d.rows(t, all); len(rows) > 0 {
			d.table(&b, t, rows, all)
		}
	}
	d.remarks(&b, all)
	return b.Bytes()
}

func (d *document) header(b *bytes.Buffer) {
	s := d.Options.Scale
	fmt.Fprintf(b, "# ringcache beside other caches\n\n")
	b.WriteString(d.Machine.Header(d.Command, d.Options.Stores))
	fmt.Fprintf(b, "- Sizes: %d entries, full caches of %d MB, %d Sets timed one by one, throughput "+
		"over %v\n", s.Entries, s.FullMB, s.Sets, s.Duration)
	fmt.Fprintf(b, "- Rounds: %d\n", d.Options.Rounds)
	if over := d.oversubscribed(); over != "" {
		fmt.Fprintf(b,
			"- **GOMAXPROCS of %s is more than the machine's %d cores**: goroutines wait for a core, and "+
				"ns/op counts that\n", over, d.Machine.Cores)
	}
	if d.Incomplete {
		fmt.Fprintf(b, "- **Interrupted**: %d runs were done\n", len(d.Results))
	}
	fmt.Fprintf(b,
		"\nMedians of the rounds, with the lowest and the highest in brackets; one process per run, "+
			"stores interleaved.\n")
	fmt.Fprintf(b,
		"ns/op is wall time x goroutines / operations: what one operation takes as its goroutine sees "+
			"it.\n")
	fmt.Fprintf(b, "Nothing is subtracted; %s is a store that does nothing.", store.Null)
	if to := d.yardsticks(); len(to) > 0 {
		fmt.Fprintf(b, " Ratios are to the median of %s: below 1 is faster or smaller, "+
			"and level where the ranges overlap.", strings.Join(to, " or of "))
	}
	b.WriteByte('\n')
	if d.Options.stores.Baseline != "" {
		fmt.Fprintf(b, "Stores with the ending %s ran in another build of this command.\n",
			interleave.Ending)
	}
}

// oversubscribed lists the values of -cpu that the machine has no cores for.
func (d *document) oversubscribed() string {
	var over []string
	for _, cpu := range d.Options.CPUs {
		if cpu > d.Machine.Cores {
			over = append(over, strconv.Itoa(cpu))
		}
	}
	return strings.Join(over, ", ")
}

// row is a cell for which every store has a column.
type row struct {
	label string
	cell  // of no store
}

// rows lists what of t was measured.
func (d *document) rows(t table, all map[cell]measure.Summary) []row {
	loads, err := measure.FindLoads([]string{t.loads})
	if err != nil {
		return nil
	}
	var rows []row
	for _, l := range loads {
		metrics := t.metrics
		if l.Full && l.Group != measure.Latency {
			metrics = append(metrics[:len(metrics):len(metrics)], measure.HeldEntries)
		}
		for _, cpu := range d.Options.cpusOf(l) {
			for _, metric := range metrics {
				r := row{d.label(l, cpu, metric), cell{load: l.Name, metric: metric, cpu: cpu}}
				if d.measured(r, all) {
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

func (d *document) measured(r row, all map[cell]measure.Summary) bool {
	for _, name := range d.Options.Stores {
		if all[r.of(name)].N > 0 {
			return true
		}
	}
	return false
}

func (r row) of(store string) cell {
	c := r.cell
	c.store = store
	return c
}

func (d *document) label(l *measure.Load, cpu int, metric string) string {
	switch l.Group {
	case measure.Latency:
		return metric
	case measure.Live:
		return fmt.Sprintf("%d entries, %s", l.Entries(d.Options.Scale), metric)
	}
	if metric == measure.NsPerOp {
		return fmt.Sprintf("%s, cpu=%d", l.Name, cpu)
	}
	return fmt.Sprintf("%s, cpu=%d, %s", l.Name, cpu, metric)
}

func (d *document) table(b *bytes.Buffer, t table, rows []row, all map[cell]measure.Summary) {
	unit := ""
	if len(t.metrics) == 1 {
		unit = ", " + t.metrics[0]
	}
	fmt.Fprintf(b, "\n## %s%s\n\n", t.title, unit)
	if t.note != "" {
		fmt.Fprintf(b, "%s\n\n", t.note)
	}
	d.grid(b, rows, func(c cell) string { return all[c].String() })
	if !t.ratio {
		return
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return slices.Contains(moreIsBetter, r.metric) })
	for _, name := range d.yardsticks() {
		fmt.Fprintf(b, "\nRatio to %s:\n\n", name)
		d.grid(b, rows, func(c cell) string {
			base := c
			base.store = name
			if c == base {
				return "1.00"
			}
			return all[c].Over(all[base])
		})
	}
}

// yardsticks lists the stores that there are ratios to.
func (d *document) yardsticks() []string {
	return slices.DeleteFunc([]string{yardstick, interleave.OldRingcache}, func(name string) bool {
		return !slices.Contains(d.Options.Stores, name)
	})
}

// moreIsBetter lists metrics that are no cost.
var moreIsBetter = []string{measure.Hits, measure.Held, measure.HeldEntries}

// grid prints a Markdown table with a column for every store.
func (d *document) grid(b *bytes.Buffer, rows []row, text func(cell) string) {
	fmt.Fprintf(b, "| | %s |\n|---|%s\n", strings.Join(d.Options.Stores, " | "),
		strings.Repeat("--:|", len(d.Options.Stores)))
	for _, r := range rows {
		fmt.Fprintf(b, "| %s |", r.label)
		for _, name := range d.Options.Stores {
			fmt.Fprintf(b, " %s |", text(r.of(name)))
		}
		b.WriteByte('\n')
	}
}

// remarks names what the tables do not show: failed runs, and stores that did
// not hold what they were given although there was room.
func (d *document) remarks(b *bytes.Buffer, all map[cell]measure.Summary) {
	var remarks []string
	for _, r := range d.failures() {
		remarks = append(remarks, "failed: "+r)
	}
	loads, _ := measure.FindLoads(d.Options.Loads) // they have been found before
	for _, name := range d.Options.Stores {
		if name == store.Null {
			continue
		}
		for _, l := range loads {
			for _, cpu := range d.Options.cpusOf(l) {
				held, ok := all[cell{l.Name, measure.Held, name, cpu}]
				if ok && held.Min < 0.9995 {
					remarks = append(remarks, fmt.Sprintf("%s held %.1f %% of the entries after %s, cpu=%d", name,
						100*held.Min, l.Name, cpu))
				}
			}
		}
	}
	if len(remarks) > 0 {
		fmt.Fprintf(b, "\n## Remarks\n\n- %s\n", strings.Join(remarks, "\n- "))
	}
}
