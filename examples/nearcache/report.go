package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// row is a line of the table: for each side, the figure of each process.
type row struct {
	name   string
	figure func(r result) string
}

func rows(cfg config) []row {
	seconds := cfg.span.Seconds()
	return []row{
		{"reads a second", func(r result) string { return count(float64(r.Reads) / seconds) }},
		{"round trips a second", func(r result) string {
			return count(float64(r.Reads-r.Hits) / seconds)
		}},
		{"hit ratio", func(r result) string { return percent(r.Hits, r.Reads) }},
		{"p50 of a read", func(r result) string { return duration(r.P50) }},
		{"p99 of a read", func(r result) string { return duration(r.P99) }},
		{"writes", func(r result) string { return count(float64(r.Writes)) }},
		{"stale in the end", func(r result) string { return count(float64(r.Stale)) }},
	}
}

// report prints the table.
func report(out io.Writer, cfg config, sides [2]side) error {
	b := new(strings.Builder)
	fmt.Fprintf(b, "Two processes read %d keys of %d bytes for %v each way; one of them also "+
		"writes.\n\n", cfg.keys, cfg.valueSize, cfg.span)
	fmt.Fprintf(b, "%-22s  %-23s  %-23s\n", "", "without a near cache", "with a near cache")
	fmt.Fprintf(b, "%-22s", "process")
	for range sides {
		for _, role := range roles {
			fmt.Fprintf(b, " %12s", role)
		}
	}
	fmt.Fprintln(b)
	for _, row := range rows(cfg) {
		fmt.Fprintf(b, "%-22s", row.name)
		for _, s := range sides {
			for _, r := range s {
				fmt.Fprintf(b, " %12s", row.figure(r))
			}
		}
		fmt.Fprintln(b)
	}
	reads, hits := 0, 0
	for _, r := range sides[1] {
		reads += r.Reads
		hits += r.Hits
	}
	fmt.Fprintf(b, "\nNetwork round trips saved: %s of %s reads, %s.\n",
		count(float64(hits)), count(float64(reads)), percent(hits, reads))
	_, err := io.WriteString(out, b.String())
	return err
}

// count writes a number with a comma before each group of three digits.
func count(f float64) string {
	s := fmt.Sprintf("%.0f", f)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(part, whole int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(1, whole)))
}

func duration(d time.Duration) string { return fmt.Sprintf("%.1f µs", d.Seconds()*1e6) }
