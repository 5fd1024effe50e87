package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/progress"
)

// Result is what came out for one store in one round.
type Result struct {
	Round       int // from 1
	Load, Store string
	CPU         int
	Metrics     Metrics
	Error       string
}

func (r *Result) String() string {
	text := fmt.Sprintf("round %d  %-18s cpu=%d  %-18s ", r.Round, r.Load, r.CPU, r.Store)
	if r.Error != "" {
		return text + "failed: " + r.Error
	}
	if ns, ok := r.Metrics[measure.NsPerOp]; ok {
		return text + fmt.Sprintf("%.1f ns/op", ns)
	}
	return text + "done"
}

// Run is one run of a plan.
type Run struct {
	Spec
	CPU  int     // GOMAXPROCS
	Cost float64 // in seconds, as estimated
}

// Part is a load of a plan, and who takes part.
type Part struct {
	*Load
	Stores []string
	CPUs   []int
}

// Plan lists all runs in their order: all loads of a round, and the stores in turns.
func Plan(parts []Part, rounds int, s measure.Scale) (runs []Run) {
	for round := range rounds {
		for i, p := range parts {
			for _, cpu := range p.CPUs {
				seconds := p.seconds(s, min(cpu, runtime.NumCPU()))
				for _, name := range Turns(p.Stores, i, round) {
					spec := Spec{Load: p.Name, Store: name, Scale: s, Round: round + 1}
					runs = append(runs, Run{spec, cpu, pace(name) * seconds})
				}
			}
		}
	}
	return runs
}

// Child performs a run in its own process, such as Again.
type Child func(ctx context.Context, s Spec, m *Metrics, env ...string) error

// Perform carries out the runs one after another, and hands out each result. A run that fails or
// hangs is a result too, and the rest goes on. If done fails, or the context ends, that is returned.
func Perform(
	ctx context.Context, runs []Run, child Child, out io.Writer, done func(Result) error,
) error {
	job := progress.Job{Out: out}
	seconds := 0.0
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, r := range runs {
		seconds += r.Cost
		job.Tasks = append(job.Tasks, progress.Task{Cost: r.Cost, Run: func(ctx context.Context) string {
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
	fmt.Fprintf(out, "%d runs, about %v\n", len(runs), duration(seconds).Round(time.Second))
	_ = job.Run(ctx) // says no more than the cause
	return context.Cause(ctx)
}

// perform performs r in its own process, whose temporary folder is removed even if it is killed.
func (r Run) perform(ctx context.Context, child Child) Result {
	result := Result{Round: r.Round, Load: r.Load, Store: r.Store, CPU: r.CPU}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+duration(10*r.Cost))
	defer cancel()
	dir, err := os.MkdirTemp("", "ringcache-bench-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = child(ctx, r.Spec, &result.Metrics,
			fmt.Sprintf("GOMAXPROCS=%d", r.CPU), "TMPDIR="+dir)
	}
	if err != nil {
		result.Metrics, result.Error = nil, err.Error()
	}
	return result
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}
