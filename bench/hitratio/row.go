package hitratio

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// The modes: what is equal for all stores.
const (
	Capacity = "capacity" // bytes of keys and values
	Memory   = "memory"   // resident memory of the process
)

// Row is what came out for one store on one load at one size: a line of the results.
type Row struct {
	Mode  string
	Plan  Plan
	Store string
	Outcome
	Off     float64 // from the budget, as a share of it
	Replays int
	Rounds  int     // of which this is the median
	Spread  float64 // between their hit ratios, in points
	Date    string  // of the measurement
	Failed  string  // why there are no figures
}

// Cache names the cache that a row is of. The budget is in it, so that a load of the same name
// and another size is not taken for it.
type Cache struct {
	Mode, Store, Load, Payload string
	Values                     Values
	Writes, Percent            float64
	Budget                     int64
}

// Cache returns what the row is of.
func (r *Row) Cache() Cache {
	p := &r.Plan
	return Cache{r.Mode, r.Store, p.Load, p.Payload, p.Values, p.Writes, p.Percent, p.Budget}
}

// column is a column of the file. Its value is a pointer to a field, or a figure that is not read
// because it follows from others.
type column struct {
	name  string
	value any
}

func (r *Row) columns() []column {
	p := &r.Plan
	return []column{
		{"mode", &r.Mode}, {"values", (*string)(&p.Values)}, {"payload", &p.Payload},
		{"writes", &p.Writes}, {"load", &p.Load}, {"percent", &p.Percent}, {"store", &r.Store},
		{"hit_ratio", r.Ratio()}, {"byte_hit_ratio", &r.ByteRatio},
		{"requests", &r.Requests}, {"hits", &r.Hits}, {"refused", &r.Refused},
		{"copies", &p.Copies}, {"keys", &p.Keys}, {"stretch", &p.Stretch},
		{"footprint_bytes", &p.Footprint}, {"budget_bytes", &p.Budget},
		{"max_bytes", &r.Nominal}, {"held_bytes", &r.Held}, {"memory_bytes", &r.Memory},
		{"off", &r.Off}, {"replays", &r.Replays}, {"rounds", &r.Rounds}, {"spread", &r.Spread},
		{"beside_requests", &r.Beside}, {"beside_hits", &r.BesideHits}, {"date", &r.Date},
		{"error", &r.Failed},
	}
}

func (c column) format() string {
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	switch v := c.value.(type) {
	case *string:
		return *v
	case *float64:
		return decimal(*v)
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	}
	return decimal(c.value.(float64))
}

func (c column) parse(text string) (err error) {
	switch v := c.value.(type) {
	case *string:
		*v = text
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
	case *int:
		*v, err = strconv.Atoi(text)
	case *int64:
		*v, err = strconv.ParseInt(text, 10, 64)
	}
	return err
}

// WriteRows writes a file of results.
func WriteRows(file string, rows []Row) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := new(Row).columns()
	line := make([]string, len(head))
	for i, c := range head {
		line[i] = c.name
	}
	_ = w.Write(line) // to memory, as the others
	for i := range rows {
		for j, c := range rows[i].columns() {
			line[j] = c.format()
		}
		_ = w.Write(line)
	}
	w.Flush()
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("hitratio: write results: %w", err)
	}
	return nil
}

// ReadRows returns the rows of a file without those that failed. Columns that it does not know are
// ignored.
func ReadRows(file string) ([]Row, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("hitratio: read results: %w", err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("hitratio: read %s: %w", file, err)
	}
	if len(lines) == 0 {
		return nil, nil
	}
	var at []int // where the columns are
	for _, c := range new(Row).columns() {
		i := slices.Index(lines[0], c.name)
		if i < 0 {
			return nil, fmt.Errorf("hitratio: read %s: there is no column %q", file, c.name)
		}
		at = append(at, i)
	}
	var rows []Row
	for i, line := range lines[1:] {
		var r Row
		for j, c := range r.columns() {
			if err := c.parse(line[at[j]]); err != nil {
				return nil, fmt.Errorf("hitratio: read %s: line %d: column %q: %w", file, i+2, c.name, err)
			}
		}
		if r.Failed == "" {
			rows = append(rows, r)
		}
	}
	return rows, nil
}
