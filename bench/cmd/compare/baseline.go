package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

const (
	// ofBaseline ends the name of a store that runs in the program of -baseline.
	ofBaseline = "-baseline"
	// oldRingcache is the one that such a program is usually there for.
	oldRingcache = "ringcache" + ofBaseline
)

// find returns the store of that name, here or in the program of -baseline.
func (o *options) find(name string) (store.Info, error) {
	if isBaseline(name) && o.baseline == "" {
		return store.Info{}, fmt.Errorf("%s needs -baseline", name)
	}
	return store.Find(strings.TrimSuffix(name, ofBaseline))
}

func isBaseline(name string) bool { return strings.HasSuffix(name, ofBaseline) }

// findBaseline makes sure that the program of -baseline can be started, from any
// directory, and that one of its stores takes part.
func (o *options) findBaseline() error {
	if o.baseline == "" {
		return nil
	}
	exe, err := filepath.Abs(o.baseline)
	if err == nil {
		o.baseline, err = exec.LookPath(exe)
	}
	if err != nil {
		return fmt.Errorf("-baseline: %w", err)
	}
	if !slices.ContainsFunc(o.Stores, isBaseline) {
		after := slices.Index(o.Stores, "ringcache") // -1 if it does not take part
		o.Stores = slices.Insert(o.Stores, after+1, oldRingcache)
	}
	return nil
}

// measure performs one run in a process of its own, of this program or the other.
func (o *options) measure(ctx context.Context, r *result) error {
	spec := measure.Spec{
		Load: r.Load, Store: strings.TrimSuffix(r.Store, ofBaseline), Scale: o.Scale,
	}
	env := fmt.Sprintf("GOMAXPROCS=%d", r.CPU)
	if isBaseline(r.Store) {
		return cli.Other(ctx, o.baseline, spec, &r.Metrics, env)
	}
	return cli.Again(ctx, spec, &r.Metrics, env)
}
