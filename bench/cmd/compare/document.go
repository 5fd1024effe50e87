package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

// document is all that was measured, and where and how.
type document struct {
	Machine machine.Machine
	Command string
	Options options
	Results []result
}

// write prints the Markdown to stdout or its file, and the JSON to its file.
func (d *document) write(markdown, jsonFile string, stdout io.Writer) error {
	if jsonFile != "" {
		data, err := json.MarshalIndent(d, "", "\t")
		if err != nil {
			return fmt.Errorf("write results: %w", err)
		}
		if err := os.WriteFile(jsonFile, append(data, '\n'), 0o644); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	text := d.markdown()
	if markdown != "" {
		if err := os.WriteFile(markdown, text, 0o644); err != nil {
			return fmt.Errorf("write document: %w", err)
		}
		return nil
	}
	if _, err := stdout.Write(text); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// cell is one field of a table: a metric of a load on a store.
type cell struct {
	load, metric, store string
	cpu                 int
}

// summaries puts the rounds together.
func (d *document) summaries() map[cell]measure.Summary {
	values := map[cell][]float64{}
	for _, r := range d.Results {
		for metric, v := range r.Metrics {
			c := cell{r.Load, metric, r.Store, r.CPU}
			values[c] = append(values[c], v)
		}
	}
	all := map[cell]measure.Summary{}
	for c, vs := range values {
		all[c] = measure.Summarize(vs)
	}
	return all
}

// failures describes the failed runs.
func (d *document) failures() []string {
	var failed []string
	for _, r := range d.Results {
		if r.Error != "" {
			failed = append(failed, fmt.Sprintf("%s, cpu=%d, %s, round %d: %s", r.Load, r.CPU, r.Store, r.Round+1, r.Error))
		}
	}
	return failed
}
