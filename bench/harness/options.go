package harness

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/measure"
)

// options is what the flags say.
type options struct {
	scale    measure.Scale
	rounds   int
	parts    []Part
	baseline string // another build of the program; "": there is none

	markdown, csv string // files, "" for none
}

func (p *Program) parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{scale: measure.Default}
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	quick := fs.Bool("quick", false, "small sizes and one round: a smoke test")
	fs.IntVar(&o.rounds, "rounds", 0, "how often every run is repeated (default 5, or 1 with -quick)")
	stores := fs.String("stores", "", "`names` of stores, instead of those of each load")
	loads := fs.String("loads", "", "`names` or groups of loads; all by default")
	entries := fs.Int("entries", 0,
		"entries of 16+100 bytes, with which other loads scale (default 4,000,000)")
	duration := fs.Duration("duration", 0, "timed part of a run (default 1s)")
	fs.StringVar(&o.baseline, "baseline", "",
		"another `build` of the program, which runs the stores with the ending "+ending)
	fs.StringVar(&o.markdown, "o", "", "write the Markdown to this `file` instead of standard output")
	fs.StringVar(&o.csv, "csv", "", "write every single result to this `file`, a metric in each line")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if *quick {
		o.scale, o.rounds = p.Quick, cmp.Or(o.rounds, 1)
	}
	o.rounds = cmp.Or(o.rounds, 5)
	o.scale.Entries = cmp.Or(*entries, o.scale.Entries)
	o.scale.Duration = cmp.Or(*duration, o.scale.Duration)
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.rounds < 1 || o.scale.Entries < 1000 || o.scale.Duration < 0:
		return nil, errors.New("-rounds must be at least 1, -entries at least 1000, -duration above 0")
	}
	return o, errors.Join(o.findBaseline(), o.takePart(p, list(*loads), list(*stores)))
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// findBaseline makes the path of the program absolute.
func (o *options) findBaseline() (err error) {
	if o.baseline == "" {
		return nil
	}
	if o.baseline, err = filepath.Abs(o.baseline); err == nil {
		_, err = exec.LookPath(o.baseline)
	}
	if err != nil {
		return fmt.Errorf("-baseline: %w", err)
	}
	return nil
}

// takePart works out who takes part in what.
func (o *options) takePart(p *Program, names, asked []string) error {
	loads, err := p.find(names)
	if err != nil {
		return err
	}
	taking := map[string]bool{}
	for _, l := range loads {
		part := Part{l.Name, o.storesOf(l, asked)}
		for _, name := range part.Stores {
			taking[name] = true
		}
		o.parts = append(o.parts, part)
	}
	for _, name := range asked {
		if isBaseline(name) && o.baseline == "" {
			return fmt.Errorf("%s needs -baseline", name)
		}
		if !taking[name] {
			return fmt.Errorf("-stores: %q can take part in none of the loads", name)
		}
	}
	return nil
}

// storesOf returns the stores of asked that can take part in l; those of l if none are asked for.
// With a baseline, oldRingcache joins them unless the list has another store that runs in it.
func (o *options) storesOf(l *Load, asked []string) []string {
	names := slices.Clone(asked)
	if len(names) == 0 {
		names = slices.Clone(l.Stores)
	}
	if o.baseline != "" && !slices.ContainsFunc(names, isBaseline) {
		after := slices.Index(names, "ringcache") // -1 if it does not take part
		names = slices.Insert(names, after+1, oldRingcache)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !l.fits(name) })
}

// child performs a run in this program or in the baseline, as the name of the store says.
func (o *options) child(
	ctx context.Context, s Spec, m *Metrics, env ...string,
) error {
	run := cli.Again
	if isBaseline(s.Store) {
		run = func(ctx context.Context, spec, result any, env ...string) error {
			return cli.Other(ctx, o.baseline, spec, result, env...)
		}
	}
	s.Store = Bare(s.Store)
	return run(ctx, s, m, env...)
}
