package publish

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringcache/ringcache/bench/chart"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// picture is a chart: a group of bars for each row.
type picture struct {
	file, title, unit string
	rows              []row
	empty             bool // with a process that has no cache
}

var pictures = []picture{
	{"reading.svg", "Get of 4 M entries, each key depends on the last value", "ns",
		[]row{named("", "dep-uniform")}, false},
	{"mixed.svg", "Nine Gets and a Set of 4 M entries, Zipf", "ns",
		[]row{named("", "mix-zipf")}, false},
	{"memory.svg", "Memory besides keys and values of 116 bytes", "bytes an entry", []row{
		{"1 M entries", load{name: "live-1"}, measure.Overhead, ""},
		{"10 M entries", load{name: "live-10"}, measure.Overhead, ""},
	}, false},
	{"gc.svg", "One runtime.GC()", "ms; \"no cache\" shows the noise", []row{
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
				figure := math.NaN()
				if found := r.get(row, name); found.N > 0 {
					figure = found.Median
				}
				s.Values = append(s.Values, figure)
			}
			series = append(series, s)
		}
		unit := p.unit + "; less is better; " + r.Machine.Short()
		errs = append(errs, chart.Bars(filepath.Join(dir, p.file), p.title, unit, false, groups, series))
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
			series[i].Values = append(series[i].Values, mean)
		}
	}
	title := fmt.Sprintf("Equal memory, %d recorded workloads", h.loads(memory("100")))
	return chart.Bars(file, title, "mean hit ratio in %", true, groups, series)
}
