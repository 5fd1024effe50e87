// Package interleave is what the commands share that compare stores with one process for each
// run: the stores take turns, and any of them can also run in another build of the command,
// the baseline.
package interleave

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/store"
)

const (
	// Ending ends the name of a store that runs in the baseline.
	Ending = "-baseline"
	// OldRingcache is the store that a baseline usually is for.
	OldRingcache = "ringcache" + Ending
)

// Stores are the stores of a comparison.
type Stores struct {
	Names    []string
	Baseline string // the program, "" for none
}

// New returns the stores of a comma-separated list. With a baseline, OldRingcache joins them
// unless the list has another store that runs in it. The path of the program becomes absolute.
func New(list, baseline string) (*Stores, error) {
	s := &Stores{Names: strings.Split(list, ",")}
	for _, name := range s.Names {
		if isBaseline(name) && baseline == "" {
			return nil, fmt.Errorf("%s needs -baseline", name)
		}
		if _, err := Find(name); err != nil {
			return nil, err
		}
	}
	if baseline == "" {
		return s, nil
	}
	exe, err := filepath.Abs(baseline)
	if err == nil {
		s.Baseline, err = exec.LookPath(exe)
	}
	if err != nil {
		return nil, fmt.Errorf("-baseline: %w", err)
	}
	if !slices.ContainsFunc(s.Names, isBaseline) {
		after := slices.Index(s.Names, "ringcache") // -1 if it does not take part
		s.Names = slices.Insert(s.Names, after+1, OldRingcache)
	}
	return s, nil
}

// Find returns the store of that name, wherever it runs.
func Find(name string) (store.Info, error) { return store.Find(Bare(name)) }

// Bare returns the name that the store has in the program that runs it.
func Bare(name string) string { return strings.TrimSuffix(name, Ending) }

func isBaseline(name string) bool { return strings.HasSuffix(name, Ending) }

// Turns returns the names in the order of one turn. Another store begins each time, and every
// second round goes backwards, so that no store always follows the same one.
func (s *Stores) Turns(turn, round int) []string {
	first := (turn + round) % len(s.Names)
	names := slices.Concat(s.Names[first:], s.Names[:first])
	if round%2 == 1 {
		slices.Reverse(names[1:])
	}
	return names
}

// Pace returns how much slower than most a store is.
func Pace(name string) float64 {
	switch Bare(name) {
	case "otter", "ristretto":
		return 1.6
	case "theine":
		return 2.2
	case store.Null:
		return 0.1
	}
	return 1
}

// Run performs the task of spec in its own process, of this program or of the baseline,
// as the name of the store says, and reads its result.
func (s *Stores) Run(ctx context.Context, name string, spec, result any, env ...string) error {
	if isBaseline(name) {
		return cli.Other(ctx, s.Baseline, spec, result, env...)
	}
	return cli.Again(ctx, spec, result, env...)
}
