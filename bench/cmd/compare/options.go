package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// options is what the flags say.
type options struct {
	Scale  measure.Scale
	Rounds int
	Stores []string
	Loads  []string
	CPUs   []int

	stores *interleave.Stores // those of Stores

	markdown, json, csv, charts string // files and a directory, "" for none
}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{Scale: measure.Default}
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(stderr)
	quick := fs.Bool("quick", false, "small sizes and one round: all loads in about two minutes")
	fs.IntVar(&o.Rounds, "rounds", 3, "how often every run is repeated")
	stores := fs.String("stores", strings.Join(store.Names(store.All), ","), "`names` of the stores")
	loads := fs.String("loads", strings.Join(measure.LoadNames(), ","),
		"`names` or groups of the loads")
	cpus := fs.String("cpu", strconv.Itoa(runtime.GOMAXPROCS(0)),
		"`list` of GOMAXPROCS for the throughput loads; for the others the largest that the machine "+
			"has cores for")
	entries := fs.Int("entries", measure.Default.Entries,
		"entries of 16+100 bytes; other loads scale with it")
	duration := fs.Duration("duration", measure.Default.Duration, "timed part of a throughput run")
	baseline := fs.String("baseline", "",
		"another `build` of compare, which runs the stores with the ending "+interleave.Ending)
	fs.StringVar(&o.markdown, "o", "", "write the Markdown to this `file` instead of standard output")
	fs.StringVar(&o.json, "json", "", "write every single result to this `file`")
	fs.StringVar(&o.csv, "csv", "", "write every single result to this `file`, a metric in each line")
	fs.StringVar(&o.charts, "charts", "", "write SVG charts to this `directory`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}

	isSet := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	if *quick {
		o.Scale = measure.Quick
		if !isSet["rounds"] {
			o.Rounds = 1
		}
	}
	if isSet["entries"] {
		o.Scale.Entries = *entries
	}
	if isSet["duration"] {
		o.Scale.Duration = *duration
	}
	if o.Rounds < 1 || o.Scale.Entries < 1000 || o.Scale.Duration <= 0 {
		return nil, errors.New(
			"-rounds must be at least 1, -entries at least 1000, -duration more than 0")
	}
	return o, o.parseLists(*stores, *baseline, *loads, *cpus)
}

func (o *options) parseLists(stores, baseline, loads, cpus string) error {
	var err error
	if o.stores, err = interleave.New(stores, baseline); err != nil {
		return err
	}
	o.Stores = o.stores.Names
	found, err := measure.FindLoads(strings.Split(loads, ","))
	if err != nil {
		return err
	}
	for _, l := range found {
		o.Loads = append(o.Loads, l.Name)
	}
	for s := range strings.SplitSeq(cpus, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-cpu: %q is not a positive number", s)
		}
		o.CPUs = append(o.CPUs, n)
	}
	return nil
}

// cpusOf returns the GOMAXPROCS that a load is run with. For one that is not about
// many goroutines that is the most that the machine can really run at once.
func (o *options) cpusOf(l *measure.Load) []int {
	if l.PerCPU {
		return o.CPUs
	}
	return []int{min(slices.Max(o.CPUs), runtime.NumCPU())}
}
