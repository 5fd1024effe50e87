package hitpage

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Line is a line of a file of results, by the names of its columns.
type Line struct {
	place        string
	head, fields []string
	err          error
}

// Lines returns the lines of a file of cmd/hitratio without those that failed.
func Lines(file string) ([]*Line, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var lines []*Line
	for i, fields := range records[min(1, len(records)):] {
		l := &Line{place: fmt.Sprintf("%s: line %d", file, i+2), head: records[0], fields: fields}
		if l.Text("error") == "" {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// Text returns what stands in a column.
func (l *Line) Text(column string) string {
	i := slices.Index(l.head, column)
	if i < 0 {
		l.fail(fmt.Errorf("there is no column %q", column))
		return ""
	}
	return l.fields[i]
}

// Number returns the number in a column.
func (l *Line) Number(column string) float64 {
	v, err := strconv.ParseFloat(l.Text(column), 64)
	if err != nil {
		l.fail(fmt.Errorf("column %q: %w", column, err))
	}
	return v
}

// Err returns the first error of the calls above.
func (l *Line) Err() error { return l.err }

func (l *Line) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("read %s: %w", l.place, err)
	}
}
