package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/progress"
	"github.com/ringcache/ringcache/bench/store"
)

// replays are all replays of one run of the command.
type replays struct {
	out io.Writer                       // for progress
	had map[hitratio.Cache]hitratio.Row // of the file, and not yet of a set

	mu sync.Mutex
	// bounds are what the last search of a kind has found, as a share of the budget: the next one
	// begins there.
	bounds map[string]float64
}

// replay carries out the sets, but for what the file of o has, and writes the results of the sets
// to the file, and behind them whatever else it had: after an error, that may belong to sets which
// were not reached. Published data has nothing but its sets.
func replay(
	ctx context.Context, o *options, sets []*options, out io.Writer,
) ([]hitratio.Row, error) {
	had, err := o.earlier()
	if err != nil {
		return nil, err
	}
	c := &replays{out: out, had: map[hitratio.Cache]hitratio.Row{}, bounds: map[string]float64{}}
	for _, r := range had {
		c.had[r.Cache()] = r
	}
	var rows []hitratio.Row
	for _, set := range sets {
		var found []hitratio.Row
		found, err = c.replaySet(ctx, set)
		rows = append(rows, found...)
		if err != nil {
			break
		}
	}
	if o.csv != "" {
		rest := slices.DeleteFunc(had, func(r hitratio.Row) bool {
			_, ok := c.had[r.Cache()]
			return !ok || o.publish && err == nil
		})
		err = errors.Join(err, hitratio.WriteRows(o.csv, slices.Concat(rows, rest)))
	}
	good := slices.DeleteFunc(slices.Clone(rows), func(r hitratio.Row) bool { return r.Failed != "" })
	if failed := len(rows) - len(good); failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d caches failed", failed, len(rows)))
	}
	return good, err
}

// earlier returns the rows of the file without those that are to be renewed.
func (o *options) earlier() ([]hitratio.Row, error) {
	if o.csv == "" {
		return nil, nil
	}
	rows, err := hitratio.ReadRows(o.csv)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return slices.DeleteFunc(rows, func(r hitratio.Row) bool {
		return slices.Contains(o.renew, r.Store)
	}), err
}

// replaySet returns the rows of a set in the order of loads, sizes and stores. A replay that
// fails is noted and the rest goes on.
func (c *replays) replaySet(ctx context.Context, o *options) ([]hitratio.Row, error) {
	plans, err := o.plan(ctx, c.out)
	if err != nil {
		return nil, err
	}
	rows := make([]hitratio.Row, len(plans)*len(o.stores)) // a task writes its own
	job := progress.Job{Workers: o.workers, Out: c.out}
	cost := 0.0
	for i := range rows {
		p, info := plans[i/len(o.stores)], o.stores[i%len(o.stores)]
		r := hitratio.Row{Mode: o.mode, Plan: *p, Store: info.Name}
		if had, ok := c.had[r.Cache()]; ok {
			rows[i] = had
			delete(c.had, r.Cache())
			continue
		}
		task := progress.Task{Cost: float64(o.rounds) * seconds(p, info)}
		task.Run = func(ctx context.Context) string {
			r := c.store(ctx, o, r, info)
			if ctx.Err() == nil {
				rows[i] = r
			}
			return describe(&r)
		}
		job.Tasks = append(job.Tasks, task)
		cost += task.Cost
	}
	estimate := time.Duration(cost / float64(o.workers) * float64(time.Second))
	fmt.Fprintf(c.out, "%d caches to replay on, about %v with %d at once\n", len(job.Tasks),
		estimate.Round(time.Second), o.workers)
	err = job.Run(ctx)
	return slices.DeleteFunc(rows, func(r hitratio.Row) bool { return r.Store == "" }), err
}

// plan decides how each load is replayed at each size.
func (o *options) plan(ctx context.Context, out io.Writer) (plans []*hitratio.Plan, err error) {
	for _, src := range o.sources {
		base, err := src.Open(1)
		if err != nil {
			return nil, err
		}
		for _, percent := range src.Sizes(o.sizes) {
			p, err := hitratio.NewPlan(src, base, percent, o.values, o.limits)
			if errors.Is(err, hitratio.ErrTooLong) {
				fmt.Fprintf(out, "left out: %v\n", err)
				continue
			}
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, err
			}
			p.Payload, p.Writes = o.payload, o.writes
			plans = append(plans, p)
		}
	}
	return plans, nil
}

// slow says how long a request takes on stores where that is not about 0.5 us, in
// seconds: allocation, collection, a policy that decides on another goroutine, and pauses.
var slow = map[string]float64{"golang-lru": 1.3e-6, "otter": 2e-6, "theine": 2e-6,
	"ristretto": 5e-6, "ringcache-s2": 4e-6}

// seconds estimates what a cache takes that is replayed twice. The figures are of two replays at
// once on a machine of 2026; the progress lines correct them.
func seconds(p *hitratio.Plan, info store.Info) float64 {
	perRequest := max(0.5e-6, slow[info.Name]) + 0.25e-9*float64(p.EntryBytes())
	return 2 * (float64(p.Requests)*perRequest + float64(p.Keys)*0.3e-6 + 0.1)
}

// store replays on a store as often as there are rounds, and returns the median result. A round
// that fails is the result.
func (c *replays) store(
	ctx context.Context, o *options, r hitratio.Row, info store.Info,
) hitratio.Row {
	var rounds []hitratio.Row
	for range o.rounds {
		round := c.round(ctx, o, r, info)
		if round.Failed != "" {
			return round
		}
		rounds = append(rounds, round)
	}
	return median(rounds)
}

// median returns the round with the median hit ratio, and notes how far they are apart.
func median(rounds []hitratio.Row) hitratio.Row {
	slices.SortFunc(rounds, func(a, b hitratio.Row) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
	r := rounds[(len(rounds)-1)/2]
	r.Rounds = len(rounds)
	r.Spread = rounds[len(rounds)-1].Ratio() - rounds[0].Ratio()
	return r
}

// round searches for the MaxBytes that gives a store its budget, and returns what came out.
func (c *replays) round(
	ctx context.Context, o *options, r hitratio.Row, info store.Info,
) hitratio.Row {
	kind := r.Mode + " " + r.Store
	s := hitratio.Search{
		Store: info, Target: r.Plan.Budget, Memory: r.Mode == hitratio.Memory,
		Tolerance: tolerance[r.Mode], Guess: int(c.bound(kind) * float64(r.Plan.Budget)),
	}
	if info.Exact && !s.Memory {
		s.Guess, s.Tolerance = int(s.Target), 1 // its bound is what is to be equal
	}
	outcome, err := s.Run(func(nominal int) (*hitratio.Outcome, error) {
		r.Replays++
		found := new(hitratio.Outcome)
		return found, cli.Again(ctx,
			hitratio.Spec{Plan: r.Plan, Store: r.Store, Nominal: nominal, Traces: o.traces}, found)
	})
	r.Date = time.Now().UTC().Format(time.DateOnly)
	if err != nil {
		r.Failed = err.Error()
		return r
	}
	r.Outcome, r.Off = *outcome, s.Off(outcome)
	if r.Off <= s.Tolerance {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bounds[kind] = float64(r.Nominal) / float64(s.Target)
	}
	return r
}

func (c *replays) bound(kind string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.bounds[kind], 1)
}

// describe is the line of progress.
func describe(r *hitratio.Row) string {
	name := fmt.Sprintf("%s, %s values, %v, %s", r.Mode, r.Plan.Values, &r.Plan, r.Store)
	if r.Failed != "" {
		return fmt.Sprintf("%s: failed: %s", name, r.Failed)
	}
	return fmt.Sprintf("%s: %.2f %% hits, %.1f %% off the budget, %d replays of %.1f s", name,
		r.Ratio(), 100*r.Off, r.Replays, r.Seconds)
}
