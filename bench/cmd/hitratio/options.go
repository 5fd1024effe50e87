package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// options is what the flags say.
type options struct {
	traces  string
	sources []trace.Source
	stores  []store.Info
	sizes   []float64
	modes   []string
	values  []hitratio.Values
	payload string
	writes  float64 // share of the requests
	limits  hitratio.Limits
	memory  hitratio.Measure
	rounds  int
	workers int

	markdown, csv string // files, "" for none
	resume        string // the same
	earlier       earlier
}

// The modes: what is equal.
const (
	capacityMode = "capacity"
	memoryMode   = "memory"
	boundMode    = "bound"
)

// tolerance is by how much of the budget a store may be off.
var tolerance = map[string]float64{capacityMode: 0.01, memoryMode: 0.02, boundMode: math.Inf(1)}

// raw is the flags as they are.
type raw struct {
	quick                         bool
	loads, stores, sizes          string
	modes, values, rss            string
	budgetMB, requestsM, maxValue int
}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o, r := &options{}, &raw{}
	fs := flag.NewFlagSet("hitratio", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&r.quick, "quick", false,
		"two synthetic loads and the smallest traces at 10 %: shows that all works")
	fs.StringVar(&o.traces, "traces", os.Getenv(trace.Env),
		"`directory` of recorded traces; by default that of "+trace.Env)
	fs.StringVar(&r.loads, "loads", "traces,synthetic",
		"`names` or groups (traces, hybrid, synthetic, late) of loads")
	fs.StringVar(&r.stores, "stores", strings.Join(store.Names(store.HitRatio), ","),
		"`names` of the stores")
	fs.StringVar(&r.sizes, "sizes", "1,10,30", "cache sizes in `percent` of the footprint")
	fs.StringVar(&r.modes, "mode", capacityMode,
		"what is equal for all stores: `modes` capacity, memory, or bound: what they are told")
	fs.StringVar(&r.values, "values", string(hitratio.Sized),
		"how large values are: `kinds` sized (realistic), a number of bytes, or several")
	fs.StringVar(&o.payload, "payload", "",
		"`kind` of what values are filled with (json, html, proto, random), for stores that compress")
	fs.Float64Var(&o.writes, "writes", 0,
		"`share` of the requests that are updates: Sets of a value of another length")
	fs.StringVar(&r.rss, "rss", "live",
		"the memory that is equal: `kind` live, without garbage, or peak")
	fs.IntVar(&r.budgetMB, "budget", int(hitratio.DefaultLimits.MinBudget>>20),
		"`MB` of the smallest budget")
	fs.IntVar(&r.requestsM, "max-requests", hitratio.DefaultLimits.MaxRequests/1e6,
		"`millions` of requests in one replay at most")
	fs.IntVar(&r.maxValue, "max-value", hitratio.DefaultLimits.MaxValue,
		"mean `bytes` of a drawn value at most")
	fs.IntVar(&o.rounds, "rounds", 1,
		"how often each replay is repeated; the one with the median hit ratio counts")
	fs.IntVar(&o.workers, "p", runtime.GOMAXPROCS(0), "how many replays run at once")
	fs.StringVar(&o.markdown, "o", "", "write the Markdown to this `file` instead of standard output")
	fs.StringVar(&o.resume, "resume", "",
		"take the results in this CSV `file` as they are, and replay only what it lacks")
	fs.StringVar(&o.csv, "csv", "", "write every result to this `file`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if r.quick {
		r.beQuick(fs)
	}
	if o.payload != "" && r.stores == strings.Join(store.Names(store.HitRatio), ",") {
		r.stores = strings.Join(store.Names(store.Compressed), ",")
	}
	return o, o.interpret(r, stderr)
}

// beQuick replaces what was not asked for otherwise.
func (r *raw) beQuick(fs *flag.FlagSet) {
	asked := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	if !asked["loads"] {
		r.loads = "bu_web98,web07,lirs_ps,zipf-0.99,loops"
	}
	if !asked["sizes"] {
		r.sizes = "10"
	}
}

func (o *options) interpret(r *raw, stderr io.Writer) error {
	requests := r.requestsM * 1e6
	o.limits = hitratio.Limits{
		MinBudget: int64(r.budgetMB) << 20, MaxValue: r.maxValue,
		MaxRequests: requests, MaxCopied: min(requests, hitratio.DefaultLimits.MaxCopied),
	}
	if r.budgetMB < 1 || r.requestsM < 1 || r.maxValue < 100 || o.workers < 1 ||
		o.rounds < 1 {
		return errors.New(
			"-budget, -max-requests, -rounds and -p must be at least 1, -max-value at least 100")
	}
	if o.payload != "" && !slices.Contains(payload.Kinds, o.payload) {
		return fmt.Errorf("-payload: %q is not among %s", o.payload, strings.Join(payload.Kinds, ", "))
	}
	if !(o.writes >= 0 && o.writes < 1) {
		return fmt.Errorf("-writes: %v is no share from 0 to below 1", o.writes)
	}
	switch r.rss {
	case "live":
		o.memory = hitratio.Memory
	case "peak":
		o.memory = hitratio.Peak
	default:
		return fmt.Errorf("-rss: %q is neither live nor peak", r.rss)
	}
	return errors.Join(o.parseSizes(r.sizes), o.parseNames(r), o.findSources(r, stderr),
		o.readEarlier())
}

func (o *options) readEarlier() (err error) {
	if o.resume != "" {
		o.earlier, err = readEarlier(o.resume)
	}
	return err
}

func (o *options) parseSizes(sizes string) error {
	for s := range strings.SplitSeq(sizes, ",") {
		percent, err := strconv.ParseFloat(s, 64)
		if err != nil || percent <= 0 || percent > 100 {
			return fmt.Errorf("-sizes: %q is no percentage above 0 and up to 100", s)
		}
		o.sizes = append(o.sizes, percent)
	}
	return nil
}

func (o *options) parseNames(r *raw) error {
	for name := range strings.SplitSeq(r.stores, ",") {
		info, err := store.Find(name)
		if err != nil {
			return err
		}
		if name == store.Null {
			return fmt.Errorf("-stores: %s keeps nothing", name)
		}
		o.stores = append(o.stores, info)
	}
	o.modes = strings.Split(r.modes, ",")
	for _, mode := range o.modes {
		if _, ok := tolerance[mode]; !ok {
			return fmt.Errorf("-mode: %q is neither capacity nor memory nor bound", mode)
		}
	}
	for name := range strings.SplitSeq(r.values, ",") {
		v := hitratio.Values(name)
		if !v.IsKnown() {
			return fmt.Errorf("-values: %q is neither sized nor a number of bytes", name)
		}
		o.values = append(o.values, v)
	}
	return nil
}

// findSources does without recorded traces where there are none, unless nothing
// else is asked for.
func (o *options) findSources(r *raw, stderr io.Writer) error {
	all, err := trace.Sources(o.traces)
	if err != nil && !errors.Is(err, trace.ErrNoTraces) {
		return err
	}
	names := strings.Split(r.loads, ",")
	if err != nil {
		fmt.Fprintf(stderr, "skipping recorded traces: %v; set -traces or %s\n", err, trace.Env)
		if r.quick {
			names = slices.DeleteFunc(names, func(name string) bool {
				_, err := trace.Find(all, []string{name})
				return err != nil
			})
		}
	}
	if o.sources, err = trace.Find(all, names); err != nil {
		return err
	}
	if len(o.sources) == 0 {
		return fmt.Errorf("-loads: nothing is left of %s", r.loads)
	}
	return nil
}

// isLate reports whether a load is one of late reads.
func (o *options) isLate(load string) bool {
	return slices.ContainsFunc(o.sources,
		func(s trace.Source) bool { return s.Name == load && s.Group == trace.Late })
}

func (o *options) storeNames() []string { return store.Names(o.stores) }
