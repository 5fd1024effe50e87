package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// yardstick is the store that the ratios are to.
const yardstick = "fastcache"

// table is one heading of the document.
type table struct {
	title, note string
	group       measure.Group
	metrics     []string // one row each for every load and GOMAXPROCS
	ratio       bool     // with a second table of ratios to the yardstick
}

var tables = []table{
	{
		title: "Reference", group: measure.Reference, metrics: []string{measure.NsPerOp}, ratio: true,
		note: "65,536 items; every goroutine goes through all of them in order, again and again.",
	},
	{
		title: "Entries of 16 + 100 bytes", group: measure.Small, metrics: []string{measure.NsPerOp}, ratio: true,
	},
	{
		title: "Entries of 16 + 1000 bytes", group: measure.Large, metrics: []string{measure.NsPerOp}, ratio: true,
	},
	{
		title: "Latency of a single Set", group: measure.Latency, ratio: true,
		metrics: []string{measure.P50, measure.P99, measure.P999, measure.P9999, measure.Max, measure.Over100, measure.HeldEntries},
		note:    "New keys into a full cache, one goroutine. The null store shows the clock and the machine's own noise.",
	},
	{
		title: "Memory", group: measure.Live, metrics: []string{measure.Overhead, measure.HeapObjects},
		note: "Resident memory added by the filled store, less the bytes of keys and values; objects added to the Go heap.",
	},
	{
		title: "Garbage collection", group: measure.Live, metrics: []string{measure.GCTime, measure.GCCPU},
		note: "One `runtime.GC()` with the entries live, and the CPU time of it; the null store is a process without entries.",
	},
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
	fmt.Fprintf(b, "- Sizes: %d entries, full caches of %d MB, %d single Sets, throughput over %v\n", s.Entries, s.FullMB, s.Sets, s.Duration)
	fmt.Fprintf(b, "- Rounds: %d\n", d.Options.Rounds)
	fmt.Fprintf(b, "\nMedians of the rounds, with the lowest and the highest in brackets; one process per run, stores interleaved.\n")
	fmt.Fprintf(b, "ns/op is wall time x goroutines / operations: what one operation takes as its goroutine sees it.\n")
	fmt.Fprintf(b, "Nothing is subtracted; %s is a store that does nothing. Ratios are to the median of %s: below 1 is faster or smaller.\n", store.Null, yardstick)
}

// row is a cell for which every store has a column.
type row struct {
	label string
	cell  // of no store
}

// rows lists what of t was measured.
func (d *document) rows(t table, all map[cell]measure.Summary) []row {
	loads, err := measure.FindLoads([]string{string(t.group)})
	if err != nil {
		return nil
	}
	var rows []row
	for _, l := range loads {
		metrics := t.metrics
		if l.Full && t.group != measure.Latency {
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
	d.grid(b, rows, func(c cell) string { return spread(all[c]) })
	if !t.ratio {
		return
	}
	base := func(c cell) measure.Summary {
		c.store = yardstick
		return all[c]
	}
	fmt.Fprintf(b, "\nRatio to %s:\n\n", yardstick)
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.metric == measure.HeldEntries }) // more is better
	d.grid(b, rows, func(c cell) string { return ratio(all[c], base(c)) })
}

// grid prints a Markdown table with a column for every store.
func (d *document) grid(b *bytes.Buffer, rows []row, text func(cell) string) {
	fmt.Fprintf(b, "| | %s |\n|---|%s\n", strings.Join(d.Options.Stores, " | "), strings.Repeat("--:|", len(d.Options.Stores)))
	for _, r := range rows {
		fmt.Fprintf(b, "| %s |", r.label)
		for _, name := range d.Options.Stores {
			fmt.Fprintf(b, " %s |", text(r.of(name)))
		}
		b.WriteByte('\n')
	}
}

func spread(s measure.Summary) string {
	switch s.N {
	case 0:
		return "-"
	case 1:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s-%s)", number(s.Median), number(s.Min), number(s.Max))
}

func ratio(s, base measure.Summary) string {
	if s.N == 0 || base.N == 0 || base.Median == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", s.Median/base.Median)
}

// number prints at least three digits that count, and no more decimals than that
// takes.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// remarks names what the tables do not show: failed runs, and stores that did
// not hold what they were given although there was room.
func (d *document) remarks(b *bytes.Buffer, all map[cell]measure.Summary) {
	var remarks []string
	for _, r := range d.failures() {
		remarks = append(remarks, "failed: "+r)
	}
	for _, name := range d.Options.Stores {
		if name == store.Null {
			continue
		}
		for _, load := range d.Options.Loads {
			for _, cpu := range d.Options.CPUs {
				held, ok := all[cell{load, measure.Held, name, cpu}]
				if ok && held.Min < 0.9995 {
					remarks = append(remarks, fmt.Sprintf("%s held %.1f %% of the entries after %s, cpu=%d", name, 100*held.Min, load, cpu))
				}
			}
		}
	}
	if len(remarks) > 0 {
		fmt.Fprintf(b, "\n## Remarks\n\n- %s\n", strings.Join(remarks, "\n- "))
	}
}
