package publish

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

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
		[]row{{"", "dep-uniform", measure.NsPerOp, ""}}, false},
	{"mixed.svg", "Nine Gets and a Set of 4 M entries, Zipf", "ns",
		[]row{{"", "mix-zipf", measure.NsPerOp, ""}}, false},
	{"memory.svg", "Memory besides keys and values of 116 bytes", "bytes an entry", []row{
		{"1 M entries", "live-1", measure.Overhead, ""},
		{"10 M entries", "live-10", measure.Overhead, ""},
	}, false},
	{"gc.svg", "One runtime.GC()", "ms; \"no cache\" shows the noise", []row{
		{"1 M entries", "live-1", measure.GCTime, ""},
		{"10 M entries", "live-10", measure.GCTime, ""},
	}, true},
}

// charts draws the pictures of which there are figures into files of the directory.
func (r *Run) charts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	var errs []error
	for _, p := range pictures {
		var groups []string
		series := make([]chart.Series, 0, len(order))
		for _, name := range order {
			if name == store.Null && !p.empty {
				continue
			}
			s := chart.Series{Name: plain(name)}
			groups = groups[:0]
			for _, row := range p.rows {
				if !r.measured(row) {
					continue
				}
				groups = append(groups, row.label)
				figure := math.NaN()
				if found := r.get(row, name); found.N > 0 {
					figure = found.Median
				}
				s.Values = append(s.Values, figure)
			}
			series = append(series, s)
		}
		if len(groups) > 0 {
			unit := p.unit + "; less is better; " + r.Machine.Short()
			errs = append(errs, chart.Bars(filepath.Join(dir, p.file), p.title, unit, false, groups, series))
		}
	}
	return errors.Join(errs...)
}

// plain is the title of a store outside of Markdown.
func plain(name string) string {
	if title, ok := titles[name]; ok && title[0] != '`' {
		return title
	}
	return name
}
