// Package publish makes the published figures: it runs the loads that the pages show, keeps every
// round in one CSV file, and writes tables and charts from that file and from the hit ratios of
// cmd/hitratio.
package publish

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
	"github.com/ringcache/ringcache/bench/restart"
)

// Rounds is the least number of rounds that may be published.
const Rounds = 5

// Scale is that of published figures.
var Scale = measure.Default

// Quick shows within two minutes that every load and page works.
var Quick = measure.Scale{Entries: 20_000, FullMB: 32, Sets: 5_000, Duration: 20 * time.Millisecond}

// load is one thing to measure, and who takes part.
type load struct {
	name   string
	stores []string
}

// loads are what the tables show, in their order, each with the stores of all its rows.
func loads() (found []load) {
	for _, q := range questions {
		for _, row := range q.rows {
			same := func(l load) bool { return l.name == row.load.name }
			i := slices.IndexFunc(found, same)
			if i < 0 {
				i = len(found)
				found = append(found, load{name: row.load.name})
			}
			for _, name := range row.load.stores {
				if !slices.Contains(found[i].stores, name) {
					found[i].stores = append(found[i].stores, name)
				}
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

	others = []string{"ringcache", "theine", "ristretto", "freelru", "phuslu"}
)

func timed(stores []string, name string) load { return load{name, stores} }

// rewritten is a load of package churn.
func rewritten(name string, live float64) load {
	return load{fmt.Sprintf("%s %v", name, live), all}
}

// The loads of packages objects and restart.
var (
	decoded   = load{"json 1000", objects.StoreNames}
	restarted = load{restart.Kill, restart.Stores}
)
