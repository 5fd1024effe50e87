// Package publish makes the published figures: it runs the set of loads that the pages show,
// keeps every round in one CSV file, and writes tables and charts from that file alone.
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
	"github.com/ringcache/ringcache/bench/store"
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

// load is one thing to measure, and who takes part.
type load struct {
	name    string
	stores  []string
	part    func(s measure.Scale, store string) Part
	seconds func(s measure.Scale, p Part, goroutines int) float64
}

// The stores of the set. Every question has the fastest rivals, and a few loads have all of them.
var (
	all = []string{"ringcache", "fastcache", "freecache", "bigcache", "otter"}
	few = []string{"ringcache", "fastcache", "otter"}
	two = []string{"ringcache", "fastcache"}
)

// loads are measured in this order.
var loads = slices.Concat(
	timed(all, "dep-uniform"),
	timed(few, "dep-zipf", "dep-small-zipf", "get-uniform", "get-zipf", "ref-get"),
	timed(two, "get-nil", "get-absent", "get-batch"),

	timed(few, "overwrite", "set-small", "ref-set"),
	timed([]string{"ringcache", "ringcache-fifo", "fastcache"}, "set-new"),
	timed(two, "latency-evict"),
	rewritten("churn", 0.7), rewritten("churn", 0.95), rewritten("append", 0.7),
	rewritten("invalidate", 0.8), rewritten("delete-half", 0.72),

	timed(all, "mix-zipf"),
	timed(few, "mix-small", "ref-setget"),

	timed([]string{"ringcache", "fastcache", "freecache", "otter"}, "ttl-dep-uniform"),
	timed(two, "ttl-get-uniform", "ttl-set"),

	decoded("json", 1000),

	timed(few, "get-1000", "set-1000", "get-10k", "set-10k", "get-100k", "set-100k"),

	timed(append(slices.Clip(all), store.Null), "live-1", "live-10"),
	restarted(),
)

// timed are loads of package measure.
func timed(stores []string, names ...string) []load {
	var found []load
	for _, name := range names {
		found = append(found, load{
			name: name, stores: stores,
			part: func(s measure.Scale, store string) Part {
				return Part{Spec: measure.Spec{Load: name, Store: store, Scale: s}}
			},
			seconds: func(s measure.Scale, p Part, goroutines int) float64 {
				l, err := measure.FindLoads([]string{name})
				if err != nil {
					return 0 // the run will say so
				}
				return interleave.Pace(p.Store) * l[0].Seconds(s, goroutines)
			},
		})
	}
	return found
}

// rewritten is a load of package churn.
func rewritten(name string, live float64) []load {
	return []load{{
		name: rewrittenName(name, live), stores: all,
		part: func(s measure.Scale, store string) Part {
			c := churn.Case{Load: name, MB: 64, Mean: 400, Live: live}
			turns := 6
			if s.Entries < Scale.Entries {
				c.MB, turns = 32, 1
			}
			return Part{Churn: &churn.Spec{Case: c, Store: store, Turns: turns}}
		},
		seconds: func(_ measure.Scale, p Part, _ int) float64 {
			return interleave.Pace(p.Churn.Store) * p.Churn.Seconds()
		},
	}}
}

func rewrittenName(name string, live float64) string { return fmt.Sprintf("%s %v", name, live) }

// decoded is a load of package objects.
func decoded(kind string, bytes int) []load {
	return []load{{
		name: fmt.Sprintf("%s %d", kind, bytes), stores: objects.StoreNames,
		part: func(s measure.Scale, store string) Part {
			v := objects.Values{Kind: kind, Bytes: bytes, Entries: max(objects.HotKeys, s.Entries/16)}
			return Part{Objects: &objects.Task{Values: v, Store: store, Duration: s.Duration}}
		},
		seconds: func(_ measure.Scale, p Part, _ int) float64 { return p.Objects.Seconds() },
	}}
}

// restarted is the load of package restart.
func restarted() []load {
	return []load{{
		name: "restart", stores: restart.Stores,
		part: func(s measure.Scale, store string) Part {
			return Part{Restart: &restart.Task{Store: store, Entries: s.Entries}}
		},
		seconds: func(_ measure.Scale, p Part, _ int) float64 { return p.Restart.Seconds() },
	}}
}
