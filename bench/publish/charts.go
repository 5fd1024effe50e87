package publish

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringcache/ringcache/bench/chart"
	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// picture is a chart: a group of bars for each row.
type picture struct {
	file, title, unit string
	scale             chart.Scale
	rows              []row
	empty             bool // with a process that has no cache
}

var pictures = []picture{
	{"reading.svg", "Get from 4 M entries; each key depends on the last value", "ns", chart.Linear,
		[]row{named("", "dep-uniform")}, false},
	{"writing.svg", "Writing", "ns", chart.Linear, []row{
		named("4 M entries are overwritten at random", "overwrite"),
		{"Sets of different lengths; live entries take 0.7 of the bound", rewritten("churn", 0.7),
			churn.NsWrite, ""},
	}, false},
	{"mixed.svg", "A Get or a Set, nine to one, 4 M entries, Zipf", "ns", chart.Linear,
		[]row{named("", "mix-zipf")}, false},
	{"memory.svg", "Memory besides keys and values of 116 bytes", "bytes an entry", chart.Linear,
		[]row{
			{"1 M entries", load{name: "live-1"}, measure.Overhead, ""},
			{"10 M entries", load{name: "live-10"}, measure.Overhead, ""},
		}, false},
	{"gc.svg", "One runtime.GC()", "ms; \"no cache\" shows the noise; logarithmic", chart.Log, []row{
		{"1 M entries", load{name: "live-1"}, measure.GCTime, ""},
		{"10 M entries", load{name: "live-10"}, measure.GCTime, ""},
	}, true},
}

// charts draws the pictures of which there are figures into files of the directory.
func (r *Run) charts(dir string, hits Hits) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	errs := []error{hits.chart(filepath.Join(dir, "hitratio-memory.svg"))}
	for _, p := range pictures {
		rows := slices.DeleteFunc(slices.Clone(p.rows), func(row row) bool { return !r.measured(row) })
		if len(rows) == 0 {
			continue
		}
		var groups []string
		for _, row := range rows {
			groups = append(groups, row.label)
		}
		var series []chart.Series
		for _, name := range order {
			if name == store.Null && !p.empty {
				continue
			}
			s := chart.Series{Name: title(name)}
			for _, row := range rows {
				figure := chart.None
				if found := r.get(row, name); found.N > 0 {
					figure = chart.Value{Median: found.Median, Min: found.Min, Max: found.Max}
				}
				s.Values = append(s.Values, figure)
			}
			series = append(series, s)
		}
		unit := p.unit + "; less is better; " + r.Machine.Short()
		errs = append(errs, chart.Bars(filepath.Join(dir, p.file), p.title, unit, p.scale,
			false, groups, series))
	}
	return errors.Join(errs...)
}

// chart draws the curve.
func (h Hits) chart(file string) error {
	var groups []string
	series := make([]chart.Series, len(curveStores))
	for _, size := range h.sizes() {
		groups = append(groups, "values of "+grouped(size)+" bytes")
		for i, mean := range h.means(memory(size), curveStores, hitRatio) {
			series[i].Name = title(curveStores[i])
			series[i].Values = append(series[i].Values, chart.Single(mean))
		}
	}
	title := fmt.Sprintf("Equal memory, %d recorded workloads", h.loads(memory("100")))
	return chart.Bars(file, title, "mean hit ratio in %", chart.Linear, true, groups, series)
}
