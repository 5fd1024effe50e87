package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/progress"
)

// Result is what came out for one store in one round.
type Result struct {
	Round       int // from 1
	Load, Store string
	Metrics     Metrics
	Error       string
}

func (r *Result) String() string {
	text := fmt.Sprintf("round %d  %-18s %-18s ", r.Round, r.Load, r.Store)
	if r.Error != "" {
		return text + "failed: " + r.Error
	}
	if ns, ok := r.Metrics[measure.NsPerOp]; ok {
		return text + fmt.Sprintf("%.1f ns/op", ns)
	}
	return text + "done"
}

// Part is a load of a plan, and who takes part.
type Part struct {
	Load   string
	Stores []string
}

// Plan lists all runs in their order: all loads of a round, and the stores in turns.
func Plan(parts []Part, rounds int, s measure.Scale) (runs []Spec) {
	for round := range rounds {
		for i, p := range parts {
			for _, name := range Turns(p.Stores, i, round) {
				runs = append(runs, Spec{Load: p.Load, Store: name, Scale: s, Round: round + 1})
			}
		}
	}
	return runs
}

// longest is the time after which a run has hung. Those of ten million entries take a minute.
const longest = 10 * time.Minute

// Child performs a run in its own process, such as Again.
type Child func(ctx context.Context, s Spec, m *Metrics, env ...string) error

// Perform carries out the runs one after another, and passes each result to done. A run that fails
// or hangs is a result too, and the rest goes on. Perform returns an error if done fails or the
// context ends.
func Perform(
	ctx context.Context, runs []Spec, child Child, out io.Writer, done func(Result) error,
) error {
	job := progress.Job{Out: out}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, r := range runs {
		job.Tasks = append(job.Tasks, progress.Task{Cost: 1, Run: func(ctx context.Context) string {
			result := r.perform(ctx, child)
			if ctx.Err() != nil {
				return "interrupted"
			}
			if err := done(result); err != nil {
				stop(err)
			}
			return result.String()
		}})
	}
	_ = job.Run(ctx) // says no more than the cause
	return context.Cause(ctx)
}

// perform performs r in its own process, whose temporary folder is removed even if it is killed.
func (r Spec) perform(ctx context.Context, child Child) Result {
	result := Result{Round: r.Round, Load: r.Load, Store: r.Store}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "ringcache-bench-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = child(ctx, r, &result.Metrics, "TMPDIR="+dir)
	}
	if err != nil {
		result.Metrics, result.Error = nil, err.Error()
	}
	return result
}
