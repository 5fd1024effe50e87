package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/progress"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// comparison is all replays of all stores.
type comparison struct {
	*options
	out io.Writer // for progress

	mu        sync.Mutex
	plans     []*hitratio.Plan
	unplanned []string // why some replays are left out
	results   []result
	guesses   hitratio.Guesses
}

// result is what came out for one store.
type result struct {
	mode    string
	plan    *hitratio.Plan
	store   string
	off     float64 // from the budget, as a share of it
	replays int
	rounds  int     // of which this is the median
	spread  float64 // between their hit ratios, in points
	date    string  // of the measurement
	*hitratio.Outcome
	err error
}

// plan decides how each load is replayed, with all loads read once.
func (c *comparison) plan(ctx context.Context) error {
	plans := make([][]*hitratio.Plan, len(c.sources))
	job := progress.Job{Workers: c.workers, Out: c.out}
	var errs []error
	for i, src := range c.sources {
		job.Tasks = append(job.Tasks, progress.Task{Cost: 1, Run: func(context.Context) string {
			found, err := c.planLoad(src)
			c.mu.Lock()
			defer c.mu.Unlock()
			plans[i] = found
			errs = append(errs, err)
			return "planned " + src.Name
		}})
	}
	if err := job.Run(ctx); err != nil {
		return err
	}
	c.plans = slices.Concat(plans...)
	return errors.Join(errs...)
}

func (c *comparison) planLoad(src trace.Source) ([]*hitratio.Plan, error) {
	base, err := src.Open(1)
	if err != nil {
		return nil, err
	}
	var plans []*hitratio.Plan
	for _, values := range c.values {
		for _, percent := range src.Sizes(c.sizes) {
			p, err := hitratio.NewPlan(src, base, percent, values, c.limits)
			if errors.Is(err, hitratio.ErrTooLong) {
				c.mu.Lock()
				c.unplanned = append(c.unplanned, fmt.Sprintf("%s values: %v", values, err))
				c.mu.Unlock()
				continue
			}
			if err != nil {
				return nil, err
			}
			p.Payload, p.Writes = c.payload, c.writes
			plans = append(plans, p)
		}
	}
	return plans, nil
}

// replay carries out the plans. A replay that fails is noted and the rest goes on.
func (c *comparison) replay(ctx context.Context) error {
	job := progress.Job{Workers: c.workers, Out: c.out}
	cost := 0.0
	for _, mode := range c.modes {
		for _, p := range c.plans {
			for _, info := range c.stores {
				r := result{mode: mode, plan: p, store: info.Name}
				if had, ok := c.earlier[r.key()]; ok {
					had.mode, had.plan, had.store = mode, p, info.Name
					c.results = append(c.results, had)
					continue
				}
				task := progress.Task{Cost: float64(c.rounds) * seconds(p, info, mode)}
				task.Run = func(ctx context.Context) string { return c.store(ctx, r, info) }
				job.Tasks = append(job.Tasks, task)
				cost += task.Cost
			}
		}
	}
	estimate := time.Duration(cost / float64(c.workers) * float64(time.Second))
	fmt.Fprintf(c.out, "%d caches to replay on, about %v with %d at once\n", len(job.Tasks),
		estimate.Round(time.Second), c.workers)
	err := job.Run(ctx)
	slices.SortStableFunc(c.results, c.order)
	return err
}

// slow says how long a request takes on stores where that is not about 0.5 us, in
// seconds: allocation, collection, a policy that decides on another goroutine, and pauses.
var slow = map[string]float64{"golang-lru": 1.3e-6, "otter": 2e-6, "theine": 2e-6,
	"ristretto": 5e-6, "ringcache-s2": 4e-6}

// seconds estimates what a cache takes. The figures are of two replays at once on
// a machine of 2026; the progress lines correct them.
func seconds(p *hitratio.Plan, info store.Info, mode string) float64 {
	perRequest := max(0.5e-6, slow[info.Name]) + 0.25e-9*float64(p.EntryBytes())
	replay := float64(p.Requests)*perRequest + float64(p.Keys)*0.3e-6 + 0.1
	switch {
	case mode == memoryMode:
		return 2 * replay
	case !info.Exact:
		return 1.4 * replay
	}
	return replay
}

// order is that of the tables.
func (c *comparison) order(a, b result) int {
	return cmp.Or(
		cmp.Compare(slices.Index(c.modes, a.mode), slices.Index(c.modes, b.mode)),
		cmp.Compare(slices.Index(c.values, a.plan.Values), slices.Index(c.values, b.plan.Values)),
		cmp.Compare(slices.Index(c.plans, a.plan), slices.Index(c.plans, b.plan)),
		cmp.Compare(slices.Index(c.storeNames(), a.store), slices.Index(c.storeNames(), b.store)),
	)
}

// store replays on a store as often as there are rounds, and notes the median result.
func (c *comparison) store(ctx context.Context, r result, info store.Info) string {
	rounds := make([]result, c.rounds)
	for i := range rounds {
		if rounds[i] = c.round(ctx, r, info); rounds[i].err != nil {
			rounds = rounds[i : i+1]
			break
		}
	}
	r = median(rounds)
	if ctx.Err() == nil {
		c.mu.Lock()
		c.results = append(c.results, r)
		c.mu.Unlock()
	}
	return r.String()
}

// median returns the round with the median hit ratio, and notes how far they are apart. A round
// that failed is the only one.
func median(rounds []result) result {
	if rounds[0].err != nil {
		return rounds[0]
	}
	slices.SortFunc(rounds, func(a, b result) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
	r := rounds[(len(rounds)-1)/2]
	r.rounds = len(rounds)
	r.spread = rounds[len(rounds)-1].Ratio() - rounds[0].Ratio()
	return r
}

// round searches for the MaxBytes that gives a store its budget, and returns what came out.
func (c *comparison) round(ctx context.Context, r result, info store.Info) result {
	kind := r.mode + " " + r.store
	s := hitratio.Search{
		Store: info, Target: r.plan.Budget, Of: hitratio.Held, Tolerance: tolerance[r.mode],
		Guess: c.guesses.Next(kind, r.plan.EntryBytes(), r.plan.Budget),
	}
	if r.mode == memoryMode {
		s.Of = c.memory
	} else if info.Exact || r.mode == boundMode {
		s.Guess, s.Tolerance = int(s.Target), 1 // its bound is what is to be equal
	}
	r.Outcome, r.err = s.Run(func(nominal int) (*hitratio.Outcome, error) {
		r.replays++
		o := new(hitratio.Outcome)
		return o, cli.Again(ctx,
			hitratio.Spec{Plan: *r.plan, Store: r.store, Nominal: nominal, Traces: c.traces}, o)
	})
	r.date = time.Now().UTC().Format(time.DateOnly)
	if r.err == nil {
		r.off = s.Off(r.Outcome)
		if r.off <= s.Tolerance {
			c.guesses.Learn(kind, r.plan.EntryBytes(), r.plan.Budget, r.Nominal)
		}
	}
	return r
}

func (r *result) String() string {
	values := string(r.plan.Values)
	if r.plan.Payload != "" {
		values += " " + r.plan.Payload
	}
	name := fmt.Sprintf("%s, %s values, %v, %s", r.mode, values, r.plan, r.store)
	if r.err != nil {
		return fmt.Sprintf("%s: failed: %v", name, r.err)
	}
	return fmt.Sprintf("%s: %.2f %% hits, %.1f %% off the budget, %d replays of %.1f s", name,
		r.Ratio(), 100*r.off, r.replays, r.Seconds)
}
