package publish

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

// Head says where, when and how a run was made.
type Head struct {
	Machine    machine.Machine
	Command    string
	Rounds     int
	Scale      measure.Scale
	Goroutines int    // GOMAXPROCS of each process
	Build      string `json:",omitempty"` // the hash of the program
}

// same reports whether results of h and o may stand in one table.
func (h Head) same(o Head) bool {
	return h.Build == o.Build && h.Rounds == o.Rounds && h.Scale == o.Scale &&
		h.Goroutines == o.Goroutines && h.Machine.CPU == o.Machine.CPU && h.Machine.OS == o.Machine.OS
}

// Result is what came out for one store in one round.
type Result struct {
	Round       int
	Load, Store string
	Metrics     map[string]float64
	Error       string
}

// Run is a whole run.
type Run struct {
	Head
	Results []Result
}

// columns are those of the file, after a line with the head in JSON.
var columns = []string{"round", "load", "store", "metric", "value", "error"}

const headMark = "# "

// Save writes the run as a file.
func (r *Run) Save(file string) error {
	head, err := json.Marshal(r.Head)
	if err != nil {
		return fmt.Errorf("publish: write head: %w", err)
	}
	b := bytes.NewBufferString(headMark + string(head) + "\n" + strings.Join(columns, ",") + "\n")
	for _, result := range r.Results {
		b.Write(result.lines())
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// lines returns the result as CSV: a line for each metric, or one for its error.
func (r *Result) lines() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	first := []string{strconv.Itoa(r.Round), r.Load, r.Store}
	for _, metric := range slices.Sorted(maps.Keys(r.Metrics)) {
		value := strconv.FormatFloat(r.Metrics[metric], 'g', 6, 64)
		_ = w.Write(slices.Concat(first, []string{metric, value, ""})) // to memory
	}
	if r.Error != "" {
		_ = w.Write(slices.Concat(first, []string{"", "", r.Error}))
	}
	w.Flush()
	return b.Bytes()
}

// appendTo adds the result to a file in one write.
func (r *Result) appendTo(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	_, err = f.Write(r.lines())
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// Read returns the run that a file has. A last line that is cut short is ignored.
func Read(file string) (*Run, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	first, rest, _ := strings.Cut(string(text), "\n")
	r := &Run{}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(first, headMark)), &r.Head); err != nil {
		return nil, fmt.Errorf("publish: read head of %s: %w", file, err)
	}
	lines, err := csv.NewReader(strings.NewReader(rest)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("publish: read %s: %w", file, err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], columns) {
		return nil, fmt.Errorf("publish: read %s: the columns are not %v", file, columns)
	}
	for _, line := range lines[1:] {
		if err := r.add(line); err != nil {
			return nil, fmt.Errorf("publish: read %s: %w", file, err)
		}
	}
	return r, nil
}

// add takes a line, which may go on with the result of the line before.
func (r *Run) add(line []string) error {
	round, err := strconv.Atoi(line[0])
	if err != nil {
		return err
	}
	last := len(r.Results) - 1
	if last < 0 || r.Results[last].Round != round || r.Results[last].Load != line[1] ||
		r.Results[last].Store != line[2] {
		r.Results = append(r.Results, Result{
			Round: round, Load: line[1], Store: line[2], Metrics: map[string]float64{}, Error: line[5],
		})
		last++
	}
	if line[3] == "" {
		return nil
	}
	value, err := strconv.ParseFloat(line[4], 64)
	r.Results[last].Metrics[line[3]] = value
	return err
}

// of returns the rounds of one cell of the tables.
func (r *Run) of(load, metric, store string) measure.Summary {
	var values []float64
	for _, result := range r.Results {
		if v, ok := result.Metrics[metric]; ok && result.Load == load && result.Store == store {
			values = append(values, v)
		}
	}
	return measure.Summarize(values)
}

// Failures describes the runs that failed.
func (r *Run) Failures() []string {
	var failed []string
	for _, result := range r.Results {
		if result.Error != "" {
			failed = append(failed, fmt.Sprintf("%s, %s, round %d: %s", result.Load, result.Store,
				result.Round, result.Error))
		}
	}
	return failed
}

// Failure reports the failed runs as one error.
func (r *Run) Failure() error {
	failed := r.Failures()
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("publish: %d of %d runs failed, the first: %s", len(failed), len(r.Results),
		failed[0])
}
