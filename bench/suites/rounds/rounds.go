// Package rounds runs the programs of the suites: each run in its own process, the stores in
// turns, several rounds, and tables of the medians.
package rounds

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

// Task is one run.
type Task struct {
	Part     string // of the program
	Load     string
	Store    string
	Round    int // from 0
	Duration time.Duration
	Quick    bool // a smoke test: sizes may be small
}

// Figures are the results of a run by name.
type Figures map[string]float64

// Part is a part of a suite.
type Part struct {
	Name    string
	Note    string   // above its tables
	Loads   []string // rows
	Stores  []string // columns
	Figures []string // one table each
	Do      func(Task) (Figures, error)
}

// Program is a suite.
type Program struct {
	Name  string
	Title string
	Parts []Part
}

// Main runs the program with the arguments of the process, and ends the process.
func (p Program) Main() { cli.Main(p.Name, p.run) }

// do performs one task.
func (p Program) do(t Task) (Figures, error) {
	for _, part := range p.Parts {
		if part.Name == t.Part {
			return part.Do(t)
		}
	}
	return nil, fmt.Errorf("no part %q", t.Part)
}

// options are the flags.
type options struct {
	parts    string
	rounds   int
	duration time.Duration
	quick    bool
	file     string
}

func (p Program) parse(args []string, stderr io.Writer) (o options, err error) {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.parts, "parts", "", "the `parts` to run, separated by commas; all by default")
	fs.IntVar(&o.rounds, "rounds", 5, "how often every run is repeated")
	fs.DurationVar(&o.duration, "duration", time.Second, "time of a timed run")
	fs.BoolVar(&o.quick, "quick", false, "small sizes, one short round: a smoke test")
	fs.StringVar(&o.file, "o", "", "write the Markdown to this `file` instead of standard output")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 || o.rounds < 1 || o.duration <= 0 {
		return o, errors.New("-rounds and -duration must be above 0, and no argument may follow")
	}
	if o.quick {
		o.rounds, o.duration = 1, 10*time.Millisecond
	}
	return o, nil
}

func (p Program) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, p.do); is {
		return err
	}
	o, err := p.parse(args, stderr)
	if err != nil {
		return err
	}
	b := bytes.NewBufferString("# " + p.Title + "\n\n")
	command := strings.TrimSpace("go run ./suites/" + p.Name + " " + strings.Join(args, " "))
	b.WriteString(machine.This().Header(command, p.stores()))
	fmt.Fprintf(b, "\nMedians of %d rounds, with the lowest and the highest in brackets.\n", o.rounds)
	for _, part := range p.Parts {
		if o.parts != "" && !slices.Contains(strings.Split(o.parts, ","), part.Name) {
			continue
		}
		all, err := part.measure(ctx, o, stderr)
		if err != nil {
			return err
		}
		part.write(b, all)
	}
	return cli.Write(o.file, stdout, b.Bytes())
}

// stores returns the stores of all parts.
func (p Program) stores() (all []string) {
	for _, part := range p.Parts {
		for _, name := range part.Stores {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// cell is one field of a table.
type cell struct{ load, store, figure string }

// results has what each round found.
type results map[cell][]float64

// measure runs all rounds of the part.
func (p Part) measure(ctx context.Context, o options, stderr io.Writer) (results, error) {
	all := results{}
	stores := interleave.Stores{Names: p.Stores}
	for round := range o.rounds {
		fmt.Fprintf(stderr, "%s: round %d of %d\n", p.Name, round+1, o.rounds)
		for i, load := range p.Loads {
			for _, store := range stores.Turns(i, round) {
				t := Task{p.Name, load, store, round, o.duration, o.quick}
				var found Figures
				if err := cli.Again(ctx, t, &found); err != nil {
					return nil, fmt.Errorf("%s, %s, %s: %w", p.Name, load, store, err)
				}
				for figure, v := range found {
					c := cell{load, store, figure}
					all[c] = append(all[c], v)
				}
			}
		}
	}
	return all, nil
}

// write renders the tables of the part.
func (p Part) write(b *bytes.Buffer, all results) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", p.Name, p.Note)
	for _, figure := range p.Figures {
		fmt.Fprintf(b, "\n| %s | %s |\n|---|%s\n", figure, strings.Join(p.Stores, " | "),
			strings.Repeat("--:|", len(p.Stores)))
		for _, load := range p.Loads {
			if !slices.ContainsFunc(p.Stores,
				func(store string) bool { return all[cell{load, store, figure}] != nil }) {
				continue
			}
			fmt.Fprintf(b, "| %s |", load)
			for _, store := range p.Stores {
				fmt.Fprintf(b, " %v |", measure.Summarize(all[cell{load, store, figure}]))
			}
			b.WriteByte('\n')
		}
	}
}
