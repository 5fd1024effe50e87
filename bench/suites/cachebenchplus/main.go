// Command cachebenchplus measures what go-cache-benchmark-plus, the benchmark of theine, measures.
// It was written for this project. See the README in this directory.
package main

import (
	"runtime"
	"slices"
	"strconv"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/suites/client"
	"github.com/ringcache/ringcache/bench/suites/drive"
)

func main() {
	p := &harness.Program{
		Name: "cachebenchplus", Title: "A program of the shape of go-cache-benchmark-plus",
		Package: "./suites/cachebenchplus", Quick: drive.Quick,
		Groups: []harness.Group{
			{
				Name: "throughput", Note: throughputNote, Metrics: []string{nsPerOp, hits, held},
				Loads: harness.Rows([]string{loadGet, loadGetOne, loadSet}, client.Names, throughput),
			},
			drive.Ratio([]int{1000, 5000, 20_000}, false),
		},
	}
	p.Main()
}

const throughputNote = `As many goroutines as cores. Gets of 100,000 keys in turn, of one key, and
Sets of 1,000,000 keys in turn to a cache for 100,000 entries. Keys are decimal numbers; values
are their keys in the first two loads, else three letters. The suite does not look at whether a
Get hits, though a cache that has dropped Sets answers faster.`

// Names of figures and loads.
const (
	nsPerOp = "nanoseconds, of one goroutine"
	hits    = "hits, %"
	held    = "entries held after the Sets"

	loadGet    = "Get, 100,000 keys"
	loadGetOne = "Get, one key"
	loadSet    = "Set, 1,000,000 keys"
)

const capacity = 100_000

func throughput(t harness.Spec) (harness.Metrics, error) {
	writes := t.Load == loadSet
	keys := numbers(capacity)
	values := keys
	if writes {
		keys = numbers(10 * capacity)
		values = slices.Repeat([]string{"bar"}, len(keys))
	}
	c, err := client.Open(t.Store, client.Options{
		Capacity: capacity, Ample: !writes,
		KeySize: len(keys[len(keys)-1]), ValueSize: len(values[len(values)-1]),
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	traffic := drive.Traffic{Cache: c, Keys: keys, Values: values, Seed: uint64(t.Round)}
	if writes {
		traffic.Writers = runtime.GOMAXPROCS(0)
		r := traffic.For(t.Scale.Duration)
		return harness.Metrics{nsPerOp: perOp(r.Writes), held: float64(c.Len())}, nil
	}
	for _, key := range keys {
		c.Set(key, key)
	}
	if t.Load == loadGetOne {
		traffic.Keys = keys[:1]
	}
	traffic.Readers = runtime.GOMAXPROCS(0)
	r := traffic.For(t.Scale.Duration)
	return harness.Metrics{nsPerOp: perOp(r.Reads), hits: 100 * r.Hits}, nil
}

// perOp is the time of an operation for its goroutine, which has a core to itself.
func perOp(rate float64) float64 { return 1e9 * float64(runtime.GOMAXPROCS(0)) / rate }

// numbers returns the decimal numbers below n.
func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}
