package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

// document is all that was measured, and where and how.
type document struct {
	machine    machine.Machine
	command    string
	options    *options
	results    []result
	incomplete bool
}

// write puts everything where the options say.
func (d *document) write(stdout io.Writer) error {
	err := cli.Write(d.options.markdown, stdout, d.markdown())
	if file := d.options.csv; file != "" {
		lines, csvErr := d.lines()
		err = errors.Join(err, csvErr, os.WriteFile(file, lines, 0o644))
	}
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// lines returns every result as CSV: a line for each metric of each run, or for its error.
func (d *document) lines() ([]byte, error) {
	var b bytes.Buffer
	lines := [][]string{
		{"round", "load", "mb", "mean", "live", "store", "metric", "value", "error"},
	}
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, r := range d.results {
		run := []string{strconv.Itoa(r.round + 1), r.Load, strconv.Itoa(r.MB), strconv.Itoa(r.Mean),
			decimal(r.Live), r.store}
		for _, metric := range slices.Sorted(maps.Keys(r.metrics)) {
			lines = append(lines, slices.Concat(run, []string{metric, decimal(r.metrics[metric]), ""}))
		}
		if r.err != nil {
			lines = append(lines, slices.Concat(run, []string{"", "", r.err.Error()}))
		}
	}
	err := csv.NewWriter(&b).WriteAll(lines)
	return b.Bytes(), err
}

// cell is one field of a table.
type cell struct {
	churn.Case
	metric, store string
}

// summaries puts the rounds together.
func (d *document) summaries() map[cell]measure.Summary {
	values := map[cell][]float64{}
	for _, r := range d.results {
		for metric, v := range r.metrics {
			c := cell{r.Case, metric, r.store}
			values[c] = append(values[c], v)
		}
	}
	all := map[cell]measure.Summary{}
	for c, vs := range values {
		all[c] = measure.Summarize(vs)
	}
	return all
}

// markdown renders the document.
func (d *document) markdown() []byte {
	var b bytes.Buffer
	o := d.options
	fmt.Fprintf(&b, "# Caches under writes\n\n%s", d.machine.Header(d.command, o.stores.Names))
	if o.payload != "" {
		fmt.Fprintf(&b, "- Values: %s\n", o.payload)
	}
	fmt.Fprintf(&b, `
Medians of %d rounds, with the lowest and the highest in brackets; one process per run, stores
interleaved. "live" is the bytes of the keys (%d each) and values of all live entries, as a share of
the bound, with nothing added for what a store keeps beside them. After it is filled, a cache gets
%d times its bound in keys and values, unless the load says otherwise: figures are of that time.
`, o.rounds, churn.KeyBytes, o.turns)
	if d.incomplete {
		b.WriteString("\n**Interrupted: results are missing.**\n")
	}
	if o.stores.Baseline != "" {
		fmt.Fprintf(&b, "\nStores with the ending %s ran in another build of this command.\n",
			interleave.Ending)
	}
	all := d.summaries()
	for _, l := range o.loads {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", l.Name, l.Note)
		cases := l.Cases(o.mbs, o.means, o.lives)
		for _, metric := range l.Metrics {
			d.table(&b, metric, cases, all)
		}
	}
	if remarks := slices.Concat(d.failures(), d.refusals(all)); len(remarks) > 0 {
		fmt.Fprintf(&b, "\n## Remarks\n\n- %s\n", strings.Join(remarks, "\n- "))
	}
	return b.Bytes()
}

// table prints one metric of a load, unless no store has it.
func (d *document) table(
	b *bytes.Buffer, metric string, cases []churn.Case, all map[cell]measure.Summary,
) {
	names := slices.DeleteFunc(slices.Clone(d.options.stores.Names), func(name string) bool {
		return !slices.ContainsFunc(cases,
			func(c churn.Case) bool { return all[cell{c, metric, name}].N > 0 })
	})
	if len(names) == 0 {
		return
	}
	text := measure.Summary.String
	if churn.IsShare(metric) {
		text = func(s measure.Summary) string { return s.Text(share) }
	}
	fmt.Fprintf(b, "\n| %s | %s |\n|---|%s\n", metric, strings.Join(names, " | "),
		strings.Repeat("--:|", len(names)))
	for _, c := range cases {
		fmt.Fprintf(b, "| %v |", c)
		for _, name := range names {
			fmt.Fprintf(b, " %s |", text(all[cell{c, metric, name}]))
		}
		b.WriteByte('\n')
	}
}

// share rounds down, so that 1.000 is all.
func share(v float64) string { return fmt.Sprintf("%.3f", math.Floor(v*1000)/1000) }

// failures describes the failed runs.
func (d *document) failures() []string {
	var failed []string
	for _, r := range d.results {
		if r.err != nil {
			failed = append(failed, fmt.Sprintf("failed: %s, %v, %s, round %d: %v",
				r.Load, r.Case, r.store, r.round+1, r.err))
		}
	}
	return failed
}

// refusals names the stores that have refused writes. The keys of those count as lost.
func (d *document) refusals(all map[cell]measure.Summary) []string {
	var refused []string
	for _, l := range d.options.loads {
		for _, c := range l.Cases(d.options.mbs, d.options.means, d.options.lives) {
			for _, name := range d.options.stores.Names {
				if s := all[cell{c, churn.Refused, name}]; s.Max > 0 {
					refused = append(refused,
						fmt.Sprintf("%s refused %.0f writes of %s, %v", name, s.Median, l.Name, c))
				}
			}
		}
	}
	return refused
}
