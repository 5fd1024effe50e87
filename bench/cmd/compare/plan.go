package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/progress"
	"github.com/ringcache/ringcache/bench/store"
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
// turns within a load. Another one begins for every load and round, and every second
// round goes backwards, so that no store always follows the same one.
func (o *options) plan() (runs []result, costs []float64, err error) {
	loads, err := measure.FindLoads(o.Loads)
	if err != nil {
		return nil, nil, err
	}
	for round := range o.Rounds {
		for i, l := range loads {
			for _, cpu := range o.cpusOf(l) {
				for _, name := range o.turns(i+round, round%2 == 1) {
					info, err := o.find(name)
					if err != nil {
						return nil, nil, err
					}
					if l.Fits(info) {
						runs = append(runs, result{Round: round, Load: l.Name, Store: name, CPU: cpu})
						costs = append(costs, pace(info.Name)*l.Seconds(o.Scale, min(cpu, runtime.NumCPU())))
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

// pace is how much slower than most a store is.
func pace(name string) float64 {
	switch name {
	case "otter", "ristretto":
		return 1.6
	case "theine":
		return 2.2
	case store.Null:
		return 0.1
	}
	return 1
}

// turns returns the stores, beginning with the one at first.
func (o *options) turns(first int, backwards bool) []string {
	first %= len(o.Stores)
	names := slices.Concat(o.Stores[first:], o.Stores[:first])
	if backwards {
		slices.Reverse(names[1:])
	}
	return names
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

// run performs one run in a process of its own.
func (o *options) run(ctx context.Context, r *result) {
	start := time.Now()
	if err := o.measure(ctx, r); err != nil {
		r.Error = err.Error()
	}
	r.Seconds = time.Since(start).Seconds()
}
