package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
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

// options is what the flags say: a set of replays, and what is done with the results.
type options struct {
	publish bool
	traces  string
	csv     string   // a file with results, "" for none
	renew   []string // stores
	workers int

	sources []trace.Source
	stores  []store.Info
	sizes   []float64
	mode    string
	values  hitratio.Values
	payload string
	writes  float64 // share of the requests
	limits  hitratio.Limits
	rounds  int
}

// tolerance is by how much of the budget a store may be off.
var tolerance = map[string]float64{hitratio.Capacity: 0.01, hitratio.Memory: 0.02}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{sizes: []float64{1, 10, 30}, limits: hitratio.DefaultLimits}
	fs := flag.NewFlagSet("hitratio", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&o.publish, "publish", false, "replay what docs/data lacks, and write data and pages")
	fs.StringVar(&o.traces, "traces", os.Getenv(trace.Env),
		"`directory` of recorded traces; by default that of "+trace.Env)
	fs.StringVar(&o.csv, "csv", "",
		"`file` for every result; what it has already is not replayed")
	list(fs, "renew", "`stores` that are replayed although the file has them", &o.renew,
		func(name string) (string, error) { return name, nil })
	fs.IntVar(&o.workers, "p", runtime.GOMAXPROCS(0), "how many replays run at once")
	loads := fs.String("loads", "traces,synthetic",
		"`names` or groups (traces, hybrid, synthetic, late) of loads")
	list(fs, "stores", "`names` of the stores", &o.stores, findStore)
	list(fs, "sizes", "cache sizes in `percent` of the footprint (default 1,10,30)", &o.sizes,
		parseSize)
	fs.StringVar(&o.mode, "mode", hitratio.Capacity,
		"what is equal for all stores: capacity or memory")
	fs.StringVar((*string)(&o.values), "values", string(hitratio.Sized),
		"how large values are: sized (realistic), or a number of bytes")
	fs.StringVar(&o.payload, "payload", "",
		"`kind` of what values are filled with (json, proto, random), for stores that compress")
	fs.Float64Var(&o.writes, "writes", 0,
		"`share` of the requests that are updates: Sets of a value of another length")
	budget := fs.Int("budget", int(o.limits.MinBudget>>20), "`MB` of the smallest budget")
	requests := fs.Int("max-requests", o.limits.MaxRequests/1e6,
		"`millions` of requests in one replay at most")
	fs.IntVar(&o.limits.MaxValue, "max-value", o.limits.MaxValue,
		"mean `bytes` of a drawn value at most")
	fs.IntVar(&o.rounds, "rounds", 1,
		"how often each replay is repeated; the one with the median hit ratio counts")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	o.limits.MinBudget, o.limits.MaxRequests = int64(*budget)<<20, *requests*1e6
	o.limits.MaxCopied = min(o.limits.MaxRequests, o.limits.MaxCopied)
	switch {
	case o.stores != nil:
	case o.payload == "":
		o.stores = store.HitRatio
	default:
		o.stores = store.Compressed
	}
	return o, errors.Join(o.check(), o.findSources(strings.Split(*loads, ","), stderr))
}

// list declares a flag whose values are separated by commas.
func list[T any](
	fs *flag.FlagSet, name, usage string, to *[]T, parse func(string) (T, error),
) {
	fs.Func(name, usage, func(text string) error {
		*to = nil
		for part := range strings.SplitSeq(text, ",") {
			v, err := parse(part)
			if err != nil {
				return err
			}
			*to = append(*to, v)
		}
		return nil
	})
}

func parseSize(text string) (float64, error) {
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("%q is no percentage above 0 and up to 100", text)
	}
	return percent, nil
}

func findStore(name string) (store.Info, error) {
	info, err := store.Find(name)
	if err == nil && name == store.Null {
		err = fmt.Errorf("%s keeps nothing", name)
	}
	return info, err
}

func (o *options) check() error {
	_, isMode := tolerance[o.mode]
	switch {
	case o.limits.MinBudget < 1 || o.limits.MaxRequests < 1 || o.limits.MaxValue < 100 ||
		o.workers < 1 || o.rounds < 1:
		return errors.New(
			"-budget, -max-requests, -rounds and -p must be at least 1, -max-value at least 100")
	case !isMode:
		return fmt.Errorf("-mode: %q is neither capacity nor memory", o.mode)
	case !o.values.IsKnown():
		return fmt.Errorf("-values: %q is neither sized nor a number of bytes", o.values)
	case o.payload != "" && !slices.Contains(payload.Kinds, o.payload):
		return fmt.Errorf("-payload: %q is not among %s", o.payload, strings.Join(payload.Kinds, ", "))
	case !(o.writes >= 0 && o.writes < 1):
		return fmt.Errorf("-writes: %v is no share from 0 to below 1", o.writes)
	}
	return nil
}

// findSources does without recorded traces where there are none, unless nothing else is asked for.
func (o *options) findSources(names []string, stderr io.Writer) error {
	all, err := trace.Sources(o.traces)
	if err != nil && !errors.Is(err, trace.ErrNoTraces) {
		return err
	}
	if err != nil {
		fmt.Fprintf(stderr, "skipping recorded traces: %v; set -traces or %s\n", err, trace.Env)
	}
	if o.sources, err = trace.Find(all, names); err != nil {
		return err
	}
	if len(o.sources) == 0 {
		return fmt.Errorf("-loads: nothing is left of %s", strings.Join(names, ","))
	}
	return nil
}
