// Command medians reads the results of several rounds from standard input and prints a Markdown
// table of their medians, with the lowest and the highest. Each line has three fields separated by
// tabs: row, column, value. Other lines are ignored. With -base COLUMN, the other columns show the
// ratio of their median to that column's as well, where the ranges do not overlap.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/measure"
)

func main() {
	head := flag.String("head", "", "the `name` of the first column")
	base := flag.String("base", "", "the `column` to which the others are compared")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *head, *base); err != nil {
		fmt.Fprintln(os.Stderr, "medians:", err)
		os.Exit(1)
	}
}

type cell struct{ row, column string }

func run(r io.Reader, w io.Writer, head, base string) error {
	var rows, columns []string
	values := map[cell][]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[2]), 64)
		if err != nil {
			return fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		rows = appendNew(rows, fields[0])
		columns = appendNew(columns, fields[1])
		c := cell{fields[0], fields[1]}
		values[c] = append(values[c], v)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("no results")
	}
	fmt.Fprintf(w, "| %s | %s |\n|---|%s\n", head, strings.Join(columns, " | "),
		strings.Repeat("--:|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |", row)
		from := measure.Summarize(values[cell{row, base}])
		for _, column := range columns {
			s := measure.Summarize(values[cell{row, column}])
			fmt.Fprintf(w, " %v", s)
			if ratio := s.Over(from); column != base && ratio != "-" {
				fmt.Fprintf(w, ", %s", ratio)
			}
			fmt.Fprint(w, " |")
		}
		fmt.Fprintln(w)
	}
	return nil
}

func appendNew(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}
