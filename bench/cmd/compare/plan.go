package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/progress"
)

// result is one run of one round.
type result struct {
	Round   int
	Load    string
	Store   string
	CPU     int
	Metrics measure.Metrics `json:",omitempty"`
	Error   string          `json:",omitempty"`
	Seconds float64
}

func (r *result) String() string {
	if r.Error != "" {
		return "failed: " + r.Error
	}
	if ns, ok := r.Metrics[measure.NsPerOp]; ok {
		return fmt.Sprintf("%.1f ns/op", ns)
	}
	return fmt.Sprintf("done in %v",
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
}

// plan lists all runs in their order, and what they cost in seconds. Stores take
// turns within a load.
func (o *options) plan() (runs []result, costs []float64, err error) {
	loads, err := measure.FindLoads(o.Loads)
	if err != nil {
		return nil, nil, err
	}
	for round := range o.Rounds {
		for i, l := range loads {
			for _, cpu := range o.cpusOf(l) {
				for _, name := range o.stores.Turns(i, round) {
					info, err := interleave.Find(name)
					if err != nil {
						return nil, nil, err
					}
					if l.Fits(info) {
						runs = append(runs, result{Round: round, Load: l.Name, Store: name, CPU: cpu})
						costs = append(costs, interleave.Pace(name)*l.Seconds(o.Scale, min(cpu, runtime.NumCPU())))
					}
				}
			}
		}
	}
	if len(runs) == 0 {
		return nil, nil, errors.New("none of the stores can take part in any of the loads")
	}
	return runs, costs, nil
}

// runAll carries out the plan. A failed run is noted and the rest goes on; if the
// context ends, the results so far are returned with its error.
func (o *options) runAll(ctx context.Context, out io.Writer) ([]result, error) {
	runs, costs, err := o.plan()
	if err != nil {
		return nil, err
	}
	var done []result
	job := progress.Job{Out: out}
	seconds := 0.0
	for i, r := range runs {
		seconds += costs[i]
		job.Tasks = append(job.Tasks,
			progress.Task{Cost: costs[i], Run: func(ctx context.Context) string {
				o.run(ctx, &r)
				if ctx.Err() == nil {
					done = append(done, r)
				}
				return fmt.Sprintf("round %d  %-18s cpu=%d  %-18s %v", r.Round+1, r.Load, r.CPU, r.Store, &r)
			}})
	}
	fmt.Fprintf(out, "%d runs, about %v\n", len(runs),
		time.Duration(seconds*float64(time.Second)).Round(time.Second))
	return done, job.Run(ctx)
}

// run performs one run in its own process.
func (o *options) run(ctx context.Context, r *result) {
	start := time.Now()
	spec := measure.Spec{Load: r.Load, Store: interleave.Bare(r.Store), Scale: o.Scale}
	err := o.stores.Run(ctx, r.Store, spec, &r.Metrics, fmt.Sprintf("GOMAXPROCS=%d", r.CPU))
	if err != nil {
		r.Error = err.Error()
	}
	r.Seconds = time.Since(start).Seconds()
}
