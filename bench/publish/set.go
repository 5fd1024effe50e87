// Package publish makes the published figures: it runs the loads that the pages show, keeps every
// round in one CSV file, and writes tables and charts from that file and from the hit ratios of
// cmd/hitratio.
package publish

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/interleave"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
	"github.com/ringcache/ringcache/bench/restart"
)

// Rounds is the least number of rounds that may be published.
const Rounds = 5

// Scale is that of published figures. It times fewer single Sets than the default.
var Scale = func() measure.Scale {
	s := measure.Default
	s.Sets = 2_000_000
	return s
}()

// Quick shows within two minutes that every load and page works.
var Quick = measure.Scale{Entries: 20_000, FullMB: 32, Sets: 5_000, Duration: 20 * time.Millisecond}

// Part is what a process measures: Spec, unless one of the others is there.
type Part struct {
	measure.Spec
	Churn   *churn.Spec   `json:",omitempty"`
	Objects *objects.Task `json:",omitempty"`
	Restart *restart.Task `json:",omitempty"`
}

// Do performs p in this process, which should do nothing else and end afterwards.
func (p Part) Do(ctx context.Context) (map[string]float64, error) {
	switch {
	case p.Churn != nil:
		return churn.Run(*p.Churn)
	case p.Objects != nil:
		return p.Objects.Do()
	case p.Restart != nil:
		return p.Restart.Do(ctx)
	}
	return measure.Run(p.Spec)
}

// seconds estimates how long p takes.
func (p Part) seconds(goroutines int) float64 {
	switch {
	case p.Churn != nil:
		return interleave.Pace(p.Churn.Store) * p.Churn.Seconds()
	case p.Objects != nil:
		return p.Objects.Seconds()
	case p.Restart != nil:
		return p.Restart.Seconds()
	}
	l, err := measure.FindLoads([]string{p.Load})
	if err != nil {
		return 0 // the run will say so
	}
	return interleave.Pace(p.Store) * l[0].Seconds(p.Scale, goroutines)
}

// load is one thing to measure, and who takes part.
type load struct {
	name   string
	stores []string
	part   func(s measure.Scale, store string) Part
}

// loads are what the tables show, in their order.
func loads() (found []load) {
	for _, q := range questions {
		for _, row := range q.rows {
			same := func(l load) bool { return l.name == row.load.name }
			if !slices.ContainsFunc(found, same) {
				found = append(found, row.load)
			}
		}
	}
	return found
}

// The stores of the set. Every question has the fastest rivals, and a few loads have all of them.
var (
	all = []string{"ringcache", "fastcache", "freecache", "bigcache", "otter"}
	few = []string{"ringcache", "fastcache", "otter"}
	two = []string{"ringcache", "fastcache"}
)

// timed is a load of package measure.
func timed(stores []string, name string) load {
	return load{name, stores, func(s measure.Scale, store string) Part {
		return Part{Spec: measure.Spec{Load: name, Store: store, Scale: s}}
	}}
}

// rewritten is a load of package churn.
func rewritten(name string, live float64) load {
	return load{fmt.Sprintf("%s %v", name, live), all, func(s measure.Scale, store string) Part {
		c := churn.Case{Load: name, MB: 64, Mean: 400, Live: live}
		turns := 6
		if s.Entries < Scale.Entries {
			c.MB, turns = 32, 1
		}
		return Part{Churn: &churn.Spec{Case: c, Store: store, Turns: turns}}
	}}
}

// decoded is a load of package objects.
func decoded(kind string, bytes int) load {
	name := fmt.Sprintf("%s %d", kind, bytes)
	return load{name, objects.StoreNames, func(s measure.Scale, store string) Part {
		v := objects.Values{Kind: kind, Bytes: bytes, Entries: max(objects.HotKeys, s.Entries/16)}
		return Part{Objects: &objects.Task{Values: v, Store: store, Duration: s.Duration}}
	}}
}

// restarted is the load of package restart.
var restarted = load{"restart", restart.Stores, func(s measure.Scale, store string) Part {
	return Part{Restart: &restart.Task{Store: store, Entries: s.Entries}}
}}
