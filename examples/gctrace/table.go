package main

import (
	"fmt"
	"io"
	"strings"
)

// A row of the table is one figure of every store.
type row struct {
	name string
	cell func(r result) string
}

const mb = 1 << 20

var rows = []row{
	{"entries kept", func(r result) string { return fmt.Sprint(r.Kept) }},
	{"fill time, s", func(r result) string { return fmt.Sprintf("%.2f", r.FillTime) }},
	{"heap, MB", func(r result) string { return fmt.Sprintf("%.1f", float64(r.HeapBytes)/mb) }},
	{"heap objects", func(r result) string { return fmt.Sprint(r.HeapObjects) }},
	{"resident memory, MB", residentCell},
	{"GC cycles", func(r result) string { return fmt.Sprint(r.Cycles) }},
	{"GC pauses, total ms", func(r result) string { return millis(r.PauseTotal) }},
	{"GC pauses, longest ms", func(r result) string { return millis(r.PauseMax) }},
	{"runtime.GC(), ms", func(r result) string { return millis(r.ForcedWall) }},
	{"marking in it, CPU ms", func(r result) string { return millis(r.ForcedMark) }},
	{"GC share of fill, CPU %",
		func(r result) string { return fmt.Sprintf("%.1f", 100*r.GCShareOfCPU) }},
}

func millis(seconds float64) string { return fmt.Sprintf("%.2f", 1000*seconds) }

func residentCell(r result) string {
	if r.RSS == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(r.RSS)/mb)
}

// writeTable prints the stores side by side as a Markdown table that also
// reads well as plain text.
func writeTable(out io.Writer, cfg config, results []result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d entries of %d + %d bytes, %d forced collections; a MB is 2^20 bytes\n\n",
		cfg.entries, keySize, cfg.valueSize, forced+1)

	const first, width = 23, 11
	line := func(name string, cell func(r result) string) {
		fmt.Fprintf(&b, "| %-*s |", first, name)
		for _, r := range results {
			fmt.Fprintf(&b, " %*s |", width, cell(r))
		}
		b.WriteByte('\n')
	}
	line("", func(r result) string { return r.Store })
	fmt.Fprintf(&b, "|%s|", strings.Repeat("-", first+2))
	for range results {
		fmt.Fprintf(&b, "%s:|", strings.Repeat("-", width+1))
	}
	b.WriteByte('\n')
	for _, row := range rows {
		line(row.name, row.cell)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
