// Command medians reads the results of several rounds from standard input and prints a Markdown
// table of their medians, with the lowest and the highest. Each line has three fields separated by
// tabs: row, column, value. Other lines are ignored. With -base COLUMN, the other columns show the
// ratio of their median to that column's as well, marked ~ where the ranges overlap.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/harness"
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
		c := cell{fields[0], fields[1]}
		if !slices.Contains(rows, c.row) {
			rows = append(rows, c.row)
		}
		if !slices.Contains(columns, c.column) {
			columns = append(columns, c.column)
		}
		values[c] = append(values[c], v)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(rows) == 0 {
		return errors.New("no results")
	}
	_, err := w.Write(harness.Table(head, rows, columns, base,
		func(row, column string) measure.Summary { return measure.Summarize(values[cell{row, column}]) }))
	return err
}
