package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/allegro/bigcache/v3"
	"github.com/coocood/freecache"
	"github.com/ringcache/ringcache"
)

// filled are the caches. Each function fills one with entries, as the original program does, and
// returns a lookup of it.
var filled = map[string]func() (get func(key string) ([]byte, error)){
	"ringcache": fillRingcache,
	"fastcache": fillFastcache,
	"bigcache":  fillBigcache,
	"freecache": fillFreecache,
	"map":       fillMap,
}

func main() {
	cache := flag.String("cache", "ringcache", "the `name` of the cache to fill")
	percent := flag.Int("percent", 10, "the collector's target, as GOGC; the original has 10")
	flag.Parse()
	fill, ok := filled[*cache]
	if !ok {
		fmt.Fprintf(os.Stderr, "no cache %q\n", *cache)
		os.Exit(2)
	}
	debug.SetGCPercent(*percent)
	begin := time.Now()
	get := fill()
	took := time.Since(begin)
	firstKey, _ := generateKeyValue(1, valueSize)
	checkFirstElement(get(firstKey))

	pauses := gcPause() // the figure of the original
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	cpu := collectorSeconds()
	one := oneCollection()
	resident := residentMB()
	for _, figure := range []struct {
		name  string
		value float64
	}{
		{"pauses, ms", pauses.Seconds() * 1e3},
		{"collections", float64(stats.NumGC)},
		{"CPU time of collections, s", cpu},
		{"one more collection, ms", one.Seconds() * 1e3},
		{"time to fill, s", took.Seconds()},
		{"resident, MB", resident},
	} {
		fmt.Printf("%s\t%s\t%.3f\n", *cache, figure.name, figure.value)
	}
	checkFirstElement(get(firstKey)) // keeps the cache alive
}

// oneCollection returns the median wall time of five collections.
func oneCollection() time.Duration {
	times := make([]time.Duration, 5)
	for i := range times {
		begin := time.Now()
		runtime.GC()
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// collectorSeconds returns the CPU time that collections have used.
func collectorSeconds() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}

// residentMB returns the resident memory of the process, or NaN where there is no /proc.
func residentMB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.NaN()
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		return math.NaN()
	}
	return float64(pages) * float64(os.Getpagesize()) / 1e6
}

// All caches get the room that the original gives freecache.
const room = entries * 200

func fillRingcache() func(string) ([]byte, error) {
	cache := ringcache.New(room)
	for i := range entries {
		key, val := generateKeyValue(i, valueSize)
		if err := cache.Set([]byte(key), val); err != nil {
			fmt.Println("Error in set: ", err)
		}
	}
	if n := cache.Len(); n != entries {
		fmt.Println("Entries: ", n)
	}
	return func(key string) ([]byte, error) { return cache.Get(nil, []byte(key)), nil }
}

func fillFastcache() func(string) ([]byte, error) {
	cache := fastcache.New(room)
	for i := range entries {
		key, val := generateKeyValue(i, valueSize)
		cache.Set([]byte(key), val)
	}
	return func(key string) ([]byte, error) { return cache.Get(nil, []byte(key)), nil }
}

func fillBigcache() func(string) ([]byte, error) {
	cache, err := bigcache.NewBigCache(bigcache.Config{
		Shards:             256,
		LifeWindow:         100 * time.Minute,
		MaxEntriesInWindow: entries,
		MaxEntrySize:       200,
	})
	if err != nil {
		fmt.Println("Error in new: ", err)
		os.Exit(1)
	}
	for i := range entries {
		key, val := generateKeyValue(i, valueSize)
		if err := cache.Set(key, val); err != nil {
			fmt.Println("Error in set: ", err)
		}
	}
	return cache.Get
}

func fillFreecache() func(string) ([]byte, error) {
	cache := freecache.NewCache(room)
	for i := range entries {
		key, val := generateKeyValue(i, valueSize)
		if err := cache.Set([]byte(key), val, 0); err != nil {
			fmt.Println("Error in set: ", err)
		}
	}
	return func(key string) ([]byte, error) { return cache.Get([]byte(key)) }
}

func fillMap() func(string) ([]byte, error) {
	m := make(map[string][]byte)
	for i := range entries {
		key, val := generateKeyValue(i, valueSize)
		m[key] = val
	}
	return func(key string) ([]byte, error) { return m[key], nil }
}
