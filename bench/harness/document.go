package harness

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// document is all that was measured, and how.
type document struct {
	*Program
	*options
	command    string
	results    []Result
	incomplete bool // interrupted
}

// Run is the program without its surroundings.
func (p *Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, p.Do); is {
		return err
	}
	o, err := p.parse(args, stderr)
	if err != nil {
		return err
	}
	d := document{Program: p, options: o,
		command: strings.TrimSpace("go run " + p.Package + " " + strings.Join(args, " "))}
	interrupted := Perform(ctx, Plan(o.parts, o.rounds, o.scale), o.child, stderr,
		func(r Result) error { d.results = append(d.results, r); return nil })
	if interrupted != nil && len(d.results) == 0 {
		return interrupted
	}
	d.incomplete = interrupted != nil // what is there is written all the same
	err = cli.Write(o.markdown, stdout, d.render())
	if o.csv != "" {
		err = errors.Join(err, os.WriteFile(o.csv, d.lines(), 0o644))
	}
	if failed := d.failures(); len(failed) > 0 {
		err = errors.Join(err,
			fmt.Errorf("%d of %d runs failed, the first: %s", len(failed), len(d.results), failed[0]))
	}
	return errors.Join(interrupted, err)
}

// lines returns every result as CSV: a line for each metric of each run, or for its error.
func (d *document) lines() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"round", "load", "store", "metric", "value", "error"}) // to memory
	for _, r := range d.results {
		run := []string{strconv.Itoa(r.Round), r.Load, r.Store}
		for _, metric := range slices.Sorted(maps.Keys(r.Metrics)) {
			value := strconv.FormatFloat(r.Metrics[metric], 'g', -1, 64)
			_ = w.Write(slices.Concat(run, []string{metric, value, ""}))
		}
		if r.Error != "" {
			_ = w.Write(slices.Concat(run, []string{"", "", r.Error}))
		}
	}
	w.Flush()
	return b.Bytes()
}

// cell is one field of a table.
type cell struct{ load, store, metric string }

// summaries puts the rounds together.
func (d *document) summaries() map[cell]measure.Summary {
	values := map[cell][]float64{}
	for _, r := range d.results {
		for metric, v := range r.Metrics {
			c := cell{r.Load, r.Store, metric}
			values[c] = append(values[c], v)
		}
	}
	all := map[cell]measure.Summary{}
	for c, vs := range values {
		all[c] = measure.Summarize(vs)
	}
	return all
}

// render returns the document as Markdown.
func (d *document) render() []byte {
	var b bytes.Buffer
	d.header(&b)
	all := d.summaries()
	for _, g := range d.Groups {
		d.group(&b, g, all)
	}
	remarks := d.failures()
	for _, c := range slices.SortedFunc(maps.Keys(all), compareCells) {
		s := all[c]
		want, ok := d.Want[c.metric]
		if ok && c.store != store.Null && max(math.Abs(s.Min-want), math.Abs(s.Max-want)) > 5e-4 {
			remarks = append(remarks, fmt.Sprintf("%s, %s: %s %v", c.load, c.store, c.metric, s))
		}
	}
	if len(remarks) > 0 {
		fmt.Fprintf(&b, "\n## Remarks\n\n- %s\n", strings.Join(remarks, "\n- "))
	}
	return b.Bytes()
}

func compareCells(a, b cell) int {
	return slices.Compare([]string{a.load, a.store, a.metric}, []string{b.load, b.store, b.metric})
}

func (d *document) header(b *bytes.Buffer) {
	fmt.Fprintf(b, "# %s\n\n%s", d.Title, machine.This().Header(d.command, d.columns(d.parts)))
	fmt.Fprintf(b, "- Rounds: %d; throughput is usually timed for %v by %d goroutines\n", d.rounds,
		d.scale.Duration, runtime.GOMAXPROCS(0))
	if d.incomplete {
		fmt.Fprintf(b, "- **Interrupted**: %d runs were done\n", len(d.results))
	}
	b.WriteString("\nMedians of the rounds, with the lowest and the highest in brackets; one " +
		"process per run, stores interleaved.\n")
	if slices.Contains(d.columns(d.parts), d.base()) {
		fmt.Fprintf(b, "The last figure is the ratio to the median of %s, after ~ where the ranges "+
			"overlap.\n", d.base())
	}
}

// base is the store that ratios are to.
func (d *document) base() string {
	if d.baseline != "" && slices.Contains(d.columns(d.parts), oldRingcache) {
		return oldRingcache
	}
	return d.Base
}

// columns returns the stores of some parts in their order.
func (d *document) columns(parts []Part) (names []string) {
	for _, p := range parts {
		for _, name := range p.Stores {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// group renders the tables of a group.
func (d *document) group(b *bytes.Buffer, g Group, all map[cell]measure.Summary) {
	parts := slices.DeleteFunc(slices.Clone(d.parts),
		func(p Part) bool { return !slices.Contains(g.Loads, d.Find(p.Load)) })
	if len(parts) == 0 {
		return
	}
	rows := make([]string, len(parts))
	for i, p := range parts {
		rows[i] = p.Load
	}
	fmt.Fprintf(b, "\n## %s\n", g.Name)
	if g.Note != "" {
		fmt.Fprintf(b, "\n%s\n", g.Note)
	}
	for _, metric := range g.Metrics {
		b.Write(Table(metric, rows, d.columns(parts), d.base(),
			func(load, name string) measure.Summary { return all[cell{load, name, metric}] }))
	}
}

// failures describes the failed runs.
func (d *document) failures() []string {
	var failed []string
	for _, r := range d.results {
		if r.Error != "" {
			failed = append(failed, fmt.Sprintf("%s, %s, round %d: %s", r.Load, r.Store, r.Round, r.Error))
		}
	}
	return failed
}
