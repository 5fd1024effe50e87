package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

func main() {
	cache := flag.String("cache", "ringcache", "the `name` of the cache to fill")
	percent := flag.Int("percent", 10, "the collector's target, as GOGC; the original has 10")
	flag.Parse()
	debug.SetGCPercent(*percent)
	begin := time.Now()
	get, err := filled(*cache)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	took := time.Since(begin)
	firstKey, _ := generateKeyValue(1, valueSize)
	checkFirstElement(get(firstKey))

	pauses := gcPause() // the figure of the original
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	cpu := collectorSeconds()
	one := measure.Collection(5)
	resident, _ := machine.Resident() // 0 where the system does not tell
	for _, figure := range []struct {
		name  string
		value float64
	}{
		{"pauses, ms", pauses.Seconds() * 1e3},
		{"collections", float64(stats.NumGC)},
		{"CPU time of collections, s", cpu},
		{"one more collection, ms", one},
		{"time to fill, s", took.Seconds()},
		{"resident, MB", float64(resident) / 1e6},
	} {
		fmt.Printf("%s\t%s\t%.3f\n", *cache, figure.name, figure.value)
	}
	checkFirstElement(get(firstKey)) // keeps the cache alive
}

// collectorSeconds returns the CPU time that collections have used.
func collectorSeconds() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}

// filled fills a cache with entries, as the original program does, and returns a lookup of it. All
// caches get the room that the original gives freecache.
func filled(name string) (get func(key string) ([]byte, error), err error) {
	m := map[string][]byte{}
	set := func(key string, v []byte) error { m[key] = v; return nil }
	get = func(key string) ([]byte, error) { return m[key], nil }
	if name != "map" {
		info, err := store.Find(name)
		if err != nil {
			return nil, err
		}
		s, err := info.New(store.Config{MaxBytes: entries * 200, Entries: entries, EntryBytes: 120})
		if err != nil {
			return nil, err
		}
		set = func(key string, v []byte) error { return s.Set([]byte(key), v) }
		get = func(key string) ([]byte, error) {
			if v, ok := s.Get(nil, []byte(key)); ok {
				return v, nil
			}
			return nil, errors.New("absent")
		}
	}
	for i := range entries {
		key, v := generateKeyValue(i, valueSize)
		if err := set(key, v); err != nil {
			return nil, err
		}
	}
	return get, nil
}
