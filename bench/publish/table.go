package publish

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"
)

// fragments are the Markdown of all pages.
//
//go:embed fragments.tmpl
var fragments string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"join": strings.Join,
}).Parse(strings.ReplaceAll(fragments, "\r\n", "\n"))) // of a checkout on Windows

// fragment executes the template of that name.
func fragment(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("publish: %v", err)) // a template that does not fit the type of its data
	}
	return b.String()
}

// Table is a table in Markdown. Its first column has labels, the others have figures.
type Table struct {
	Head []string
	Rows [][]string
}

func newTable(label string, columns ...string) *Table {
	return &Table{Head: slices.Concat([]string{label}, columns)}
}

func (t *Table) add(label string, cells ...string) {
	t.Rows = append(t.Rows, slices.Concat([]string{label}, cells))
}

func (t *Table) String() string { return fragment("table", t) }

// figures formats values, the best in bold. NaN is none.
func figures(format string, values []float64) []string {
	cells := make([]string, len(values))
	best, most := "", math.Inf(-1)
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		cells[i] = fmt.Sprintf(format, v)
		if v > most {
			best, most = cells[i], v
		}
	}
	for i, cell := range cells {
		if cell != "" && cell == best {
			cells[i] = "**" + cell + "**"
		}
	}
	return cells
}
