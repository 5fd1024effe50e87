// Command simulate replays traces through simulated eviction policies and prints
// one Markdown table of hit ratios. It holds no bytes, so that all traces take
// seconds.
//
//	go run ./cmd/simulate -traces DIR
//	go run ./cmd/simulate -traces DIR -policies ring,ring:ghosts=0.4,ring:ghosts=0.4/512 \
//		-sizes 1,3,10,30
//	go run ./cmd/simulate -traces DIR -policies lru,engine -by sized
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/sim"
	"github.com/ringcache/ringcache/bench/trace"
)

func main() { cli.Main("simulate", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	results, err := o.simulate(ctx, stderr)
	if err != nil {
		return err
	}
	return o.report(stdout, results)
}

// options is what the flags say.
type options struct {
	sources  []trace.Source
	sizes    []float64 // percent of the footprint
	policies []string
	makes    []sim.Make
	by       string
	workers  int
	csv      string
}

// What the capacity counts, unless it is hitratio.Values: what cmd/hitratio replays.
const (
	byEntries = "entries"
	byBytes   = "bytes" // of the trace's sizes; entries where it has none
)

const (
	defaultSizes    = "1,10,30"
	defaultPolicies = "fifo,lru,clock,s3fifo-1,s3fifo-2,ring,ring:ghosts=0.4,ring/512,engine"
)

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	fs := flag.NewFlagSet("simulate", flag.ContinueOnError)
	fs.SetOutput(stderr)
	dir := fs.String("traces", os.Getenv(trace.Env),
		"`directory` of recorded traces; by default that of "+trace.Env)
	loads := fs.String("loads", "traces,synthetic",
		"`names` or groups (traces, hybrid, synthetic, late) of loads")
	sizes := fs.String("sizes", defaultSizes, "cache sizes in `percent` of the footprint")
	policies := fs.String("policies", defaultPolicies,
		"`policies`: fifo, lru, clock, s3fifo-1, s3fifo-2, ring or engine, with settings")
	by := fs.String("by", byEntries,
		"what the capacity counts: `entries`, bytes, or the bytes of cmd/hitratio with -values sized "+
			"or a number")
	workers := fs.Int("p", runtime.GOMAXPROCS(0), "how many simulations run at once")
	csv := fs.String("csv", "", "write every result to this `file`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 || *workers < 1 ||
		*by != byEntries && *by != byBytes && !hitratio.Values(*by).IsKnown() {
		return nil, errors.New(
			"-by must be entries, bytes, sized or a number, -p at least 1, and no argument may follow")
	}
	o := &options{by: *by, workers: *workers, csv: *csv}
	if err := o.parseLists(*sizes, *policies); err != nil {
		return nil, err
	}
	all, err := trace.Sources(*dir)
	if err != nil && !errors.Is(err, trace.ErrNoTraces) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(stderr, "skipping recorded traces: %v; set -traces or %s\n", err, trace.Env)
	}
	o.sources, err = trace.Find(all, strings.Split(*loads, ","))
	return o, err
}

func (o *options) parseLists(sizes, policies string) error {
	for s := range strings.SplitSeq(sizes, ",") {
		percent, err := strconv.ParseFloat(s, 64)
		if err != nil || percent <= 0 {
			return fmt.Errorf("-sizes: %q is no percentage above 0", s)
		}
		o.sizes = append(o.sizes, percent)
	}
	o.policies = strings.Split(policies, ",")
	for _, spec := range o.policies {
		m, err := sim.Parse(spec)
		if err != nil {
			return err
		}
		o.makes = append(o.makes, m)
	}
	return nil
}
