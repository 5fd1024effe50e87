// Package publish makes the published figures: it runs the set of loads that the pages show,
// keeps every round in one CSV file, and writes tables and charts from that file alone.
package publish

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/harness"
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
	timed(all, "churn 0.7", "churn 0.95", "append 0.7", "invalidate 0.8", "delete-half 0.72"),

	timed(all, "mix-zipf"),
	timed(few, "mix-small", "ref-setget"),

	timed([]string{"ringcache", "fastcache", "freecache", "otter"}, "ttl-dep-uniform"),
	timed(two, "ttl-get-uniform", "ttl-set"),

	timed(objects.StoreNames, "json 1000"),

	timed(few, "get-1000", "set-1000", "get-10k", "set-10k", "get-100k", "set-100k"),

	timed(append(slices.Clip(all), store.Null), "live-1", "live-10"),
	timed(restart.Stores, restart.Kill),
)

func timed(stores []string, names ...string) (parts []harness.Part) {
	for _, name := range names {
		parts = append(parts, harness.Part{Load: name, Stores: stores})
	}
	return parts
}

func rewrittenName(name string, live float64) string { return fmt.Sprintf("%s %v", name, live) }
