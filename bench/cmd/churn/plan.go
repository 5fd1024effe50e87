package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/progress"
)

// result is one run of one round.
type result struct {
	churn.Case
	round   int
	store   string
	metrics churn.Metrics
	err     error
	cost    float64 // in seconds, as estimated
}

func (r *result) String() string {
	text := fmt.Sprintf("round %d  %-16s %v  %-18s ", r.round+1, r.Load, r.Case, r.store)
	if r.err != nil {
		return text + "failed: " + r.err.Error()
	}
	if found, ok := r.metrics[churn.Found]; ok {
		text += fmt.Sprintf("%.3f found, ", found)
	}
	return text + fmt.Sprintf("%.0f ns per write", r.metrics[churn.NsWrite])
}

func (o *options) spec(r *result) churn.Spec {
	return churn.Spec{
		Case: r.Case, Store: interleave.Bare(r.store), Turns: o.turns, Payload: o.payload,
	}
}

// plan lists all runs in their order. Stores take turns within a case.
func (o *options) plan() (runs []result, err error) {
	for round := range o.rounds {
		turn := 0
		for _, l := range o.loads {
			for _, c := range l.Cases(o.mbs, o.means, o.lives) {
				for _, name := range o.stores.Turns(turn, round) {
					info, err := interleave.Find(name)
					if err != nil {
						return nil, err
					}
					if !l.Fits(info) {
						continue
					}
					r := result{Case: c, round: round, store: name}
					r.cost = interleave.Pace(name) * o.spec(&r).Seconds()
					runs = append(runs, r)
				}
				turn++
			}
		}
	}
	if len(runs) == 0 {
		return nil, errors.New("none of the stores can take part in any of the loads")
	}
	return runs, nil
}

// runAll carries out the plan. A failed run is noted and the rest goes on; if the
// context ends, the results so far are returned with its error.
func (o *options) runAll(ctx context.Context, out io.Writer) ([]result, error) {
	runs, err := o.plan()
	if err != nil {
		return nil, err
	}
	var done []result
	job := progress.Job{Out: out}
	seconds := 0.0
	for _, r := range runs {
		seconds += r.cost
		job.Tasks = append(job.Tasks, progress.Task{Cost: r.cost, Run: func(ctx context.Context) string {
			r.err = o.run(ctx, &r)
			if ctx.Err() == nil {
				done = append(done, r)
			}
			return r.String()
		}})
	}
	fmt.Fprintf(out, "%d runs, about %v\n", len(runs),
		time.Duration(seconds*float64(time.Second)).Round(time.Second))
	return done, job.Run(ctx)
}

// memoryDir is a file system in memory, where a store in a file does not wait for a disk.
const memoryDir = "/dev/shm"

// run performs one run in its own process. Its temporary folder is removed even if the
// process is killed.
func (o *options) run(ctx context.Context, r *result) (err error) {
	parent := memoryDir
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "ringcache-churn-")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return o.stores.Run(ctx, r.store, o.spec(r), &r.metrics, "TMPDIR="+dir)
}
