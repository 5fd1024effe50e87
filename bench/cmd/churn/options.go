package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/bench/store"
)

// options is what the flags say.
type options struct {
	stores  *interleave.Stores
	loads   []churn.Load
	mbs     []int
	means   []int
	lives   []float64 // none: those of the loads
	turns   int
	rounds  int
	payload string

	markdown, csv string // files, "" for none
}

// raw is the flags as they are.
type raw struct {
	quick                                     bool
	stores, baseline, loads, mbs, means, live string
}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o, r := &options{}, &raw{}
	fs := flag.NewFlagSet("churn", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&r.quick, "quick", false,
		"32 MB, one live share, two turns and one round: shows that all works")
	fs.StringVar(&r.stores, "stores", strings.Join(store.Names(store.Writes), ","),
		"`names` of the stores")
	fs.StringVar(&r.baseline, "baseline", "",
		"another `build` of churn, which runs the stores with the ending "+interleave.Ending)
	fs.StringVar(&r.loads, "loads", strings.Join(churn.Names(), ","), "`names` of the loads")
	fs.StringVar(&r.mbs, "mb", "64", "`MB` that the stores are bounded to; several are possible")
	fs.StringVar(&r.means, "mean", "400", "mean `bytes` of a value; several are possible")
	fs.StringVar(&r.live, "live", "",
		"`shares` of the bound that live entries take, instead of those of each load")
	fs.IntVar(&o.turns, "turns", 6, "how many times the bound is written after the cache is filled")
	fs.IntVar(&o.rounds, "rounds", 5, "how often every run is repeated")
	fs.StringVar(&o.payload, "payload", "",
		"`kind` of what values are filled with (json, html, proto, random), for stores that compress")
	fs.StringVar(&o.markdown, "o", "", "write the Markdown to this `file` instead of standard output")
	fs.StringVar(&o.csv, "csv", "", "write every single result to this `file`, a metric in each line")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if r.quick {
		o.beQuick(r, fs)
	}
	return o, o.interpret(r)
}

// beQuick replaces what was not asked for otherwise.
func (o *options) beQuick(r *raw, fs *flag.FlagSet) {
	asked := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	if !asked["mb"] {
		r.mbs = "32"
	}
	if !asked["live"] {
		r.live = "0.5"
	}
	if !asked["turns"] {
		o.turns = 2
	}
	if !asked["rounds"] {
		o.rounds = 1
	}
}

func (o *options) interpret(r *raw) (err error) {
	if o.turns < 1 || o.rounds < 1 {
		return errors.New("-turns and -rounds must be at least 1")
	}
	if o.payload != "" && !slices.Contains(payload.Kinds, o.payload) {
		return fmt.Errorf("-payload: %q is not among %s", o.payload, strings.Join(payload.Kinds, ", "))
	}
	if o.mbs, err = integers("-mb", r.mbs, 32); err != nil {
		return err
	}
	if o.means, err = integers("-mean", r.means, 100); err != nil {
		return err
	}
	if r.live != "" {
		for s := range strings.SplitSeq(r.live, ",") {
			live, err := strconv.ParseFloat(s, 64)
			if err != nil || !(live >= 0.01 && live <= 2) {
				return fmt.Errorf("-live: %q is no share from 0.01 to 2", s)
			}
			o.lives = append(o.lives, live)
		}
	}
	if o.loads, err = churn.Find(strings.Split(r.loads, ",")); err != nil {
		return err
	}
	o.stores, err = interleave.New(r.stores, r.baseline)
	return err
}

func integers(name, list string, least int) (all []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < least {
			return nil, fmt.Errorf("%s: %q is no integer from %d on", name, s, least)
		}
		all = append(all, n)
	}
	return all, nil
}
