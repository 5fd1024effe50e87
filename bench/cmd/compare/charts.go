package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringcache/ringcache/bench/chart"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// drawing is one chart: a group for each of cells, and in it a figure for each
// store.
type drawing struct {
	file, title, unit string
	more              bool // is better
	groups            []string
	cells             []cell                                // of no store
	figure            func(s, base measure.Summary) float64 // base is the yardstick's
}

func median(s, _ measure.Summary) float64 { return s.Median }

// speed is how many times as fast as the yardstick a store is.
func speed(s, base measure.Summary) float64 { return base.Median / s.Median }

func (g *drawing) add(group string, c cell) {
	g.groups = append(g.groups, group)
	g.cells = append(g.cells, c)
}

// drop leaves out groups.
func (g *drawing) drop(absent func(cell) bool) {
	var groups []string
	var cells []cell
	for i, c := range g.cells {
		if !absent(c) {
			groups, cells = append(groups, g.groups[i]), append(cells, c)
		}
	}
	g.groups, g.cells = groups, cells
}

// charts draws what was measured into SVG files of the directory, if there is one.
func (d *document) charts(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	all := d.summaries()
	var errs []error
	for _, g := range d.drawings() {
		g.drop(func(c cell) bool { return !d.measured(row{cell: c}, all) })
		if series := d.series(g, all); len(series) > 0 {
			errs = append(errs, chart.Bars(filepath.Join(dir, g.file), g.title, g.unit, g.more,
				g.groups, series))
		}
	}
	return errors.Join(errs...)
}

// series returns the figures of all stores that have any. The null store is there
// to be compared with in numbers: its bars would dwarf all others.
func (d *document) series(g drawing, all map[cell]measure.Summary) []chart.Series {
	var found []chart.Series
	for _, name := range d.Options.Stores {
		if name == store.Null {
			continue
		}
		s := chart.Series{Name: name}
		some := false
		for _, c := range g.cells {
			base := c
			c.store, base.store = name, yardstick
			v := g.figure(all[c], all[base]) // NaN, infinite or 0 if one was not measured
			if all[c].N == 0 || math.IsInf(v, 0) || v == 0 {
				v = math.NaN()
			}
			some = some || !math.IsNaN(v)
			s.Values = append(s.Values, v)
		}
		if some {
			found = append(found, s)
		}
	}
	return found
}

func (d *document) drawings() []drawing {
	var all []drawing
	for _, t := range tables {
		if t.metrics[0] == measure.NsPerOp {
			for _, cpu := range d.Options.CPUs {
				all = append(all, d.throughput(t, cpu))
			}
		}
	}
	all = append(all,
		d.live(drawing{file: "memory.svg", title: "Memory beside keys and values of 116 bytes",
			unit: "bytes an entry"}, measure.Overhead),
		d.live(drawing{file: "gc.svg", title: "One collection, by number of entries", unit: "ms"},
			measure.GCTime),
	)
	for _, l := range measured(measure.Latency) {
		for _, op := range []string{measure.Sets, measure.Gets} {
			all = append(all, d.tail(l, op))
		}
	}
	return all
}

// measured returns the loads of a group.
func measured(g measure.Group) []*measure.Load {
	loads, _ := measure.FindLoads([]string{string(g)}) // groups exist
	return loads
}

func (d *document) throughput(t table, cpu int) drawing {
	g := drawing{
		file:  fmt.Sprintf("throughput-%s-cpu%d.svg", t.loads, cpu),
		title: fmt.Sprintf("%s, GOMAXPROCS=%d", t.title, cpu),
		unit:  "operations, " + yardstick + " = 1", more: true, figure: speed,
	}
	for _, l := range measured(measure.Group(t.loads)) {
		g.add(l.Name, cell{load: l.Name, metric: measure.NsPerOp, cpu: cpu})
	}
	return g
}

func (d *document) live(g drawing, metric string) drawing {
	g.figure = median
	for _, l := range measured(measure.Live) {
		g.add(fmt.Sprintf("%.3g M", float64(l.Entries(d.Options.Scale))/1e6),
			cell{load: l.Name, metric: metric, cpu: d.Options.cpusOf(l)[0]})
	}
	return g
}

func (d *document) tail(l *measure.Load, op string) drawing {
	g := drawing{file: fmt.Sprintf("%s-%s.svg", l.Name, op),
		title: fmt.Sprintf("%s: one %s", l.Name, op), unit: "ns", figure: median}
	for _, metric := range measure.Latencies(op) {
		g.add(strings.TrimSuffix(strings.TrimPrefix(metric, op+" "), " ns"),
			cell{load: l.Name, metric: metric, cpu: d.Options.cpusOf(l)[0]})
	}
	return g
}
