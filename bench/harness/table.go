package harness

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/measure"
)

// Table returns an empty line and a Markdown table: the median of each cell, with its range, and,
// except in the column of base, the ratio to base's median. Rows and columns without figures are
// left out.
func Table(
	head string, rows, columns []string, base string, get func(row, column string) measure.Summary,
) []byte {
	some := func(row, column string) bool { return get(row, column).N > 0 }
	rows = slices.DeleteFunc(slices.Clone(rows), func(row string) bool {
		return !slices.ContainsFunc(columns, func(c string) bool { return some(row, c) })
	})
	columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool {
		return !slices.ContainsFunc(rows, func(row string) bool { return some(row, c) })
	})
	var b bytes.Buffer
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(&b, "\n| %s | %s |\n|---|%s\n", head, strings.Join(columns, " | "),
		strings.Repeat("--:|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, column := range columns {
			s := get(row, column)
			text := s.String()
			if strings.Contains(head, "share") {
				text = s.Text(share)
			}
			if ratio := s.Over(get(row, base)); column != base && ratio != "-" {
				text += ", " + ratio
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// share rounds down, so that 1.000 is all.
func share(v float64) string { return fmt.Sprintf("%.3f", math.Floor(v*1000)/1000) }
