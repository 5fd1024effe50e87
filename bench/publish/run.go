package publish

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/progress"
)

// Child performs a part in its own process.
type Child func(ctx context.Context, p Part, metrics *map[string]float64, env ...string) error

// task is one run of one round.
type task struct {
	load
	round int
	store string
	cost  float64 // in seconds, as estimated
}

// plan lists all runs in their order: all loads of a round, and the stores in turns.
func (h *Head) plan() []task {
	var tasks []task
	for round := range h.Rounds {
		for i, l := range loads() {
			turns := interleave.Stores{Names: l.stores}
			for _, name := range turns.Turns(i, round) {
				cost := l.part(h.Scale, name).seconds(h.Goroutines)
				tasks = append(tasks, task{l, round + 1, name, cost})
			}
		}
	}
	return tasks
}

// Measure carries out the plan of h with child. Each result is added to the file at once, so
// that an interrupted run loses nothing: the next one of the same build and sizes takes what
// the file has, and repeats what failed. A run that fails or hangs is noted, and the rest goes
// on. If the context ends, its error is returned.
func Measure(ctx context.Context, h Head, file string, child Child, out io.Writer) (*Run, error) {
	run := resume(h, file)
	var todo []task
	seconds := 0.0
	for _, t := range h.plan() {
		if !run.has(t) {
			todo = append(todo, t)
			seconds += t.cost
		}
	}
	if n := len(run.Results); n > 0 {
		fmt.Fprintf(out, "%d results are taken from %s\n", n, file)
	}
	fmt.Fprintf(out, "%d runs, about %v\n", len(todo), duration(seconds).Round(time.Second))
	if err := run.Save(file); err != nil { // without what failed
		return nil, err
	}
	job := progress.Job{Out: out}
	var failed error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, t := range todo {
		job.Tasks = append(job.Tasks, progress.Task{Cost: t.cost, Run: func(ctx context.Context) string {
			r := t.perform(ctx, &run.Head, child)
			if ctx.Err() != nil {
				return "interrupted"
			}
			run.Results = append(run.Results, r)
			if failed = r.appendTo(file); failed != nil {
				stop()
			}
			return r.String()
		}})
	}
	err := job.Run(ctx)
	if failed != nil {
		return nil, failed
	}
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

func (r *Run) has(t task) bool {
	return slices.ContainsFunc(r.Results, func(r Result) bool {
		return r.Round == t.round && r.Load == t.name && r.Store == t.store
	})
}

// perform runs t in its own process, whose temporary folder is removed even if it is killed.
func (t task) perform(ctx context.Context, h *Head, child Child) Result {
	r := Result{Round: t.round, Load: t.name, Store: t.store}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+duration(10*t.cost))
	defer cancel()
	dir, err := os.MkdirTemp("", "ringcache-publish-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = child(ctx, t.part(h.Scale, t.store), &r.Metrics,
			fmt.Sprintf("GOMAXPROCS=%d", h.Goroutines), "TMPDIR="+dir)
	}
	if err != nil {
		r.Metrics, r.Error = nil, err.Error()
	}
	return r
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}
