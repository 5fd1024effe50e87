// Package table has tables of figures: rows of loads, columns of stores or
// policies, means, and differences.
package table

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// None is the figure of a cell that has none.
var None = math.NaN()

// Table is a table of percentages.
type Table struct {
	Head    string   // above the labels
	Columns []string // that are compared: the best of a row is set in bold
	Diffs   []Diff   // columns that follow
	Rows    []Row
	Foot    []Row // means and the like, below the rows
}

// Row is one line.
type Row struct {
	Label  string
	Values []float64 // one for each of Columns
	Diffs  []float64 // one for each of Diffs
}

// Diff is a column that says by how much one column is above others.
type Diff struct {
	Name string
	Of   string
	Than []string // the best of these
}

// New returns a table of the columns. Differences to columns that are not there
// are left out.
func New(head string, columns []string, diffs []Diff) *Table {
	t := &Table{Head: head, Columns: columns}
	for _, d := range diffs {
		d.Than = slices.DeleteFunc(slices.Clone(d.Than),
			func(name string) bool { return t.column(name) < 0 })
		if t.column(d.Of) >= 0 && len(d.Than) > 0 {
			t.Diffs = append(t.Diffs, d)
		}
	}
	return t
}

func (t *Table) column(name string) int { return slices.Index(t.Columns, name) }

// Add appends a row and works out its differences.
func (t *Table) Add(label string, values []float64) {
	r := Row{Label: label, Values: values}
	for _, d := range t.Diffs {
		best := math.Inf(-1)
		for _, name := range d.Than {
			best = higher(best, values[t.column(name)])
		}
		r.Diffs = append(r.Diffs, values[t.column(d.Of)]-best) // NaN if one is missing
	}
	t.Rows = append(t.Rows, r)
}

// higher returns NaN if one of its arguments is.
func higher(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return None
	}
	return max(a, b)
}

// AddMeans adds a row at the foot: for each column the mean over the rows that
// keep says yes to and that are complete, so that all means are of the same rows.
func (t *Table) AddMeans(label string, keep func(i int) bool) {
	foot := Row{Values: make([]float64, len(t.Columns)), Diffs: make([]float64, len(t.Diffs))}
	n := 0
	for i, r := range t.Rows {
		if keep(i) && complete(r) {
			add(foot.Values, r.Values)
			add(foot.Diffs, r.Diffs)
			n++
		}
	}
	for _, values := range [][]float64{foot.Values, foot.Diffs} {
		for i := range values {
			values[i] /= float64(n) // NaN if there are none
		}
	}
	foot.Label = fmt.Sprintf("%s (%d)", label, n)
	t.Foot = append(t.Foot, foot)
}

func complete(r Row) bool {
	return !slices.ContainsFunc(r.Values, math.IsNaN) && !slices.ContainsFunc(r.Diffs, math.IsNaN)
}

func add(sum, values []float64) {
	for i, v := range values {
		sum[i] += v
	}
}

// AddLeast adds a row at the foot: the least of each difference.
func (t *Table) AddLeast(label string, keep func(i int) bool) {
	foot := Row{Label: label}
	for range t.Columns {
		foot.Values = append(foot.Values, None)
	}
	for d := range t.Diffs {
		least := None
		for i, r := range t.Rows {
			if v := r.Diffs[d]; keep(i) && !math.IsNaN(v) && !(v >= least) {
				least = v
			}
		}
		foot.Diffs = append(foot.Diffs, least)
	}
	t.Foot = append(t.Foot, foot)
}

// Markdown renders the table.
func (t *Table) Markdown() []byte {
	var b bytes.Buffer
	names := slices.Clone(t.Columns)
	for _, d := range t.Diffs {
		names = append(names, d.Name)
	}
	fmt.Fprintf(&b, "| %s | %s |\n|---|%s\n", t.Head, strings.Join(names, " | "),
		strings.Repeat("--:|", len(names)))
	for _, r := range slices.Concat(t.Rows, t.Foot) {
		fmt.Fprintf(&b, "| %s |", r.Label)
		best := highest(r.Values)
		for _, v := range r.Values {
			fmt.Fprintf(&b, " %s |", figure(v, best))
		}
		for _, v := range r.Diffs {
			fmt.Fprintf(&b, " %s |", difference(v))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// highest returns the best figure of a row as it is printed.
func highest(values []float64) string {
	best := math.Inf(-1)
	for _, v := range values {
		if v > best {
			best = v
		}
	}
	return fmt.Sprintf("%.2f", best)
}

func figure(v float64, best string) string {
	if math.IsNaN(v) {
		return "-"
	}
	text := fmt.Sprintf("%.2f", v)
	if text == best {
		return "**" + text + "**"
	}
	return text
}

func difference(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%+.2f", v)
}
