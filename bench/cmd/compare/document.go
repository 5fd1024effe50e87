package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

// document is all that was measured, and where and how.
type document struct {
	Machine    machine.Machine
	Command    string
	Options    options
	Results    []result
	Incomplete bool // interrupted
}

// write puts everything where the options say.
func (d *document) write(stdout io.Writer) error {
	o := d.Options
	err := errors.Join(
		cli.Write(o.markdown, stdout, d.markdown()),
		save(o.json, func() ([]byte, error) { return json.MarshalIndent(d, "", "\t") }),
		save(o.csv, d.lines),
		d.charts(o.charts),
	)
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// save writes what render returns, if there is a file for it.
func save(file string, render func() ([]byte, error)) error {
	if file == "" {
		return nil
	}
	data, err := render()
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// lines returns every result as CSV: a line for each metric of each run, or for its
// error.
func (d *document) lines() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	lines := [][]string{{"round", "load", "store", "cpu", "metric", "value", "error"}}
	for _, r := range d.Results {
		run := []string{strconv.Itoa(r.Round + 1), r.Load, r.Store, strconv.Itoa(r.CPU)}
		for _, metric := range slices.Sorted(maps.Keys(r.Metrics)) {
			lines = append(lines,
				slices.Concat(run, []string{metric, strconv.FormatFloat(r.Metrics[metric], 'g', -1, 64), ""}))
		}
		if r.Error != "" {
			lines = append(lines, slices.Concat(run, []string{"", "", r.Error}))
		}
	}
	err := w.WriteAll(lines)
	return b.Bytes(), err
}

// cell is one field of a table: a metric of a load on a store.
type cell struct {
	load, metric, store string
	cpu                 int
}

// summaries puts the rounds together.
func (d *document) summaries() map[cell]measure.Summary {
	values := map[cell][]float64{}
	for _, r := range d.Results {
		for metric, v := range r.Metrics {
			c := cell{r.Load, metric, r.Store, r.CPU}
			values[c] = append(values[c], v)
		}
	}
	all := map[cell]measure.Summary{}
	for c, vs := range values {
		all[c] = measure.Summarize(vs)
	}
	return all
}

// failures describes the failed runs.
func (d *document) failures() []string {
	var failed []string
	for _, r := range d.Results {
		if r.Error != "" {
			failed = append(failed,
				fmt.Sprintf("%s, cpu=%d, %s, round %d: %s", r.Load, r.CPU, r.Store, r.Round+1, r.Error))
		}
	}
	return failed
}
