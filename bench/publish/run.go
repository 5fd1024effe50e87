package publish

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ringcache/ringcache/bench/harness"
)

// Measure carries out the plan of h with child. Each result is added to the file at once, so
// that an interrupted run loses nothing: the next one of the same build and sizes takes what
// the file has, and repeats what failed. A run that fails or hangs is noted, and the rest goes
// on. If the context ends, its error is returned.
func Measure(
	ctx context.Context, h Head, file string, child harness.Child, out io.Writer,
) (*Run, error) {
	run := resume(h, file)
	var parts []harness.Part
	for _, l := range loads() {
		parts = append(parts, harness.Part{Load: l.name, Stores: l.stores})
	}
	todo := slices.DeleteFunc(harness.Plan(parts, h.Rounds, h.Scale), run.has)
	if n := len(run.Results); n > 0 {
		fmt.Fprintf(out, "%d results are taken from %s\n", n, file)
	}
	if err := run.Save(file); err != nil { // without what failed
		return nil, err
	}
	err := harness.Perform(ctx, todo, child, out, func(found harness.Result) error {
		r := Result{Round: found.Round, Load: found.Load, Store: found.Store, Metrics: found.Metrics,
			Error: found.Error}
		run.Results = append(run.Results, r)
		return r.appendTo(file)
	})
	return run, err
}

// resume returns the results of an earlier run of the same plan and build, without those that
// failed, or an empty run.
func resume(h Head, file string) *Run {
	old, err := Read(file)
	if err != nil || !old.Head.same(h) {
		return &Run{Head: h}
	}
	old.Results = slices.DeleteFunc(old.Results, func(r Result) bool { return r.Error != "" })
	return old
}

func (r *Run) has(run harness.Spec) bool {
	return slices.ContainsFunc(r.Results, func(r Result) bool {
		return r.Round == run.Round && r.Load == run.Load && r.Store == run.Store
	})
}
