package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/progress"
	"github.com/ringcache/ringcache/bench/sim"
	"github.com/ringcache/ringcache/bench/table"
	"github.com/ringcache/ringcache/bench/trace"
)

const (
	// keyBytes is what a key weighs when entries are weighed by bytes.
	keyBytes = 16

	// manyEntries is 8 for each of 512 buckets: below, the share of a bucket is
	// too small to say much.
	manyEntries = 512 * 8
)

// result is one simulation.
type result struct {
	load     string
	percent  float64
	policy   string
	capacity int64
	entries  float64 // that fit, of mean weight
	sim.Result
	beside sim.Result // what is read through beside late reads
}

// simulate runs all simulations, trace by trace.
func (o *options) simulate(ctx context.Context, progressOut io.Writer) ([]result, error) {
	var all []result
	for i, src := range o.sources {
		base, err := src.Open(1)
		if err != nil {
			return nil, err
		}
		for _, percent := range src.Sizes(o.sizes) {
			l, err := o.load(src, base, percent)
			if errors.Is(err, hitratio.ErrTooLong) {
				fmt.Fprintf(progressOut, "left out: %v\n", err)
				continue
			}
			if err != nil {
				return nil, err
			}
			results, err := o.simulateLoad(ctx, l)
			if err != nil {
				return nil, err
			}
			all = append(all, results...)
		}
		fmt.Fprintf(progressOut, "[%d/%d] %s: %d requests for %d keys\n", i+1, len(o.sources), src.Name,
			len(base.Requests), base.Keys)
	}
	return all, nil
}

// load is what is simulated at one size.
type load struct {
	*trace.Trace
	percent  float64
	copies   int // of the key space
	capacity int64
	entries  float64 // that fit, of mean weight
	weigh    func(id uint64, size uint32) uint32
}

// load prepares a simulation. By entries or bytes, the trace is taken as it is; by
// values it is what cmd/hitratio replays.
func (o *options) load(src trace.Source, base *trace.Trace, percent float64) (*load, error) {
	if hitratio.Values(o.by).IsKnown() {
		return planned(src, base, percent, hitratio.Values(o.by))
	}
	l := &load{Trace: base, percent: percent, copies: 1,
		weigh: func(uint64, uint32) uint32 { return 1 }}
	footprint := int64(base.Keys)
	if o.by == byBytes && base.Sized {
		l.weigh = func(_ uint64, size uint32) uint32 { return keyBytes + size }
		footprint = l.footprint()
	}
	l.capacity = max(1, int64(percent*float64(footprint)/100+0.5))
	l.entries = float64(l.capacity) / float64(footprint) * float64(base.Keys)
	return l, nil
}

func planned(
	src trace.Source, base *trace.Trace, percent float64, values hitratio.Values,
) (*load, error) {
	p, err := hitratio.NewPlan(src, base, percent, values, hitratio.DefaultLimits)
	if err != nil {
		return nil, err
	}
	t := base
	if p.Scale > 1 && p.Copies == 1 { // a synthetic load that is made larger
		if t, err = src.Open(p.Scale); err != nil {
			return nil, err
		}
	}
	return &load{
		Trace: t, percent: percent, copies: p.Copies, capacity: p.Budget, entries: float64(p.Entries()),
		weigh: func(id uint64, size uint32) uint32 { return uint32(p.Weight(id, size)) },
	}, nil
}

// footprint is the weight of all keys, each as it first appears.
func (l *load) footprint() (sum int64) {
	next := uint32(0)
	for _, r := range l.Requests {
		if r.Key == next { // ids are dense
			sum += int64(l.weigh(uint64(r.Key), r.Size))
			next++
		}
	}
	return sum
}

func (o *options) simulateLoad(ctx context.Context, l *load) ([]result, error) {
	results := make([]result, len(o.policies))
	job := progress.Job{Workers: o.workers, Out: io.Discard}
	for i, name := range o.policies {
		job.Tasks = append(job.Tasks, progress.Task{Run: func(context.Context) string {
			r := result{load: l.Name, percent: l.percent, policy: name, capacity: l.capacity,
				entries: l.entries}
			l.replay(&r, o.makes[i](l.capacity, l.Keys*l.copies))
			results[i] = r
			return ""
		}})
	}
	return results, job.Run(ctx)
}

func (l *load) replay(r *result, p sim.Policy) {
	for i, req := range l.Requests {
		step, count := l.Step(i), &r.Result
		if step == trace.ReadThrough && len(l.Cycle) > 0 {
			count = &r.beside
		}
		for c := range l.copies {
			id := uint64(req.Key)*uint64(l.copies) + uint64(c)
			size := l.weigh(id, req.Size)
			var hit bool
			if step == trace.Read {
				hit = p.Get(uint32(id))
			} else {
				hit = p.Access(uint32(id), size)
			}
			if i >= l.Warm && step != trace.Write {
				count.Add(hit, size)
			}
		}
	}
}

// report prints the table, and writes the CSV where one is asked for.
func (o *options) report(stdout io.Writer, results []result) error {
	if o.csv != "" {
		if err := writeCSV(o.csv, results); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	o.tables(&b, results)
	if _, err := stdout.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	return nil
}

func (o *options) tables(b *bytes.Buffer, results []result) {
	fmt.Fprintf(b, "Hit ratio, %%, simulated:\n\n%s",
		o.table(results, func(r result) float64 { return r.Ratio() }).Markdown())
	if slices.ContainsFunc(results, func(r result) bool { return r.beside.Requests > 0 }) {
		hot := slices.DeleteFunc(slices.Clone(results),
			func(r result) bool { return r.beside.Requests == 0 })
		fmt.Fprintf(b, "\nHot keys beside the late reads, %%, simulated:\n\n%s",
			o.table(hot, func(r result) float64 { return r.beside.Ratio() }).Markdown())
	}
	if o.by == byBytes || o.by == string(hitratio.Sized) {
		fmt.Fprintf(b, "\nByte hit ratio, %%, simulated:\n\n%s",
			o.table(results, func(r result) float64 { return r.ByteRatio() }).Markdown())
	}
}

func (o *options) table(results []result, figure func(result) float64) *table.Table {
	t := table.New("load, size", o.policies, nil)
	var entries []float64
	for i := 0; i < len(results); i += len(o.policies) {
		row := results[i:][:len(o.policies)]
		var values []float64
		for _, r := range row {
			values = append(values, figure(r))
		}
		t.Add(fmt.Sprintf("%s, %v %%", row[0].load, row[0].percent), values)
		entries = append(entries, row[0].entries)
	}
	t.AddMeans("mean", func(int) bool { return true })
	t.AddMeans("mean, at least 8 entries in each of 512 buckets",
		func(i int) bool { return entries[i] >= manyEntries })
	return t
}

func writeCSV(file string, results []result) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	records := [][]string{{"load", "percent", "policy", "capacity", "entries", "requests", "hits",
		"hit_ratio", "byte_hit_ratio", "beside_ratio"}}
	for _, r := range results {
		records = append(records, []string{
			r.load, fmt.Sprint(r.percent), r.policy, strconv.FormatInt(r.capacity, 10),
			fmt.Sprintf("%.0f", r.entries),
			strconv.FormatInt(r.Requests, 10), strconv.FormatInt(r.Hits, 10),
			fmt.Sprintf("%.4f", r.Ratio()), fmt.Sprintf("%.4f", r.ByteRatio()),
			fmt.Sprintf("%.4f", r.beside.Ratio()),
		})
	}
	if err := w.WriteAll(records); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
