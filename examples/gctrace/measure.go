package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"
)

// forced is how many collections are timed once the store is full.
const forced = 5

// result is the cost of one store. Sizes are in bytes, times in seconds.
type result struct {
	Store        string  `json:"store"`
	Kept         int     `json:"kept"` // entries that were read back correctly at the end
	FillTime     float64 `json:"fill_s"`
	HeapBytes    uint64  `json:"heap_bytes"`     // after the last forced collection
	HeapObjects  uint64  `json:"heap_objects"`   // after the last forced collection
	RSS          int64   `json:"rss_bytes"`      // at that time; 0: unknown
	Cycles       int64   `json:"gc_cycles"`      // from start to then, the forced ones included
	PauseTotal   float64 `json:"gc_pause_s"`     // stop-the-world time of all cycles
	PauseMax     float64 `json:"gc_pause_max_s"` // of the worst of the last 256 cycles
	ForcedWall   float64 `json:"forced_wall_s"`  // median time of one runtime.GC() call
	ForcedMark   float64 `json:"forced_mark_s"`  // mean CPU time that marking took in one of them
	GCShareOfCPU float64 `json:"gc_cpu_share"`   // of CPU time up to the first forced one, 0 to 1
}

// measure fills the store and measures the work of the collector.
func measure(cfg config) (result, error) {
	s, err := newStore[cfg.store](cfg.entries, cfg.valueSize)
	if err != nil {
		return result{}, fmt.Errorf("make %s: %w", cfg.store, err)
	}
	start := time.Now()
	if err := fill(s, cfg.entries, cfg.valueSize); err != nil {
		return result{}, fmt.Errorf("fill %s: %w", cfg.store, err)
	}
	r := result{Store: cfg.store, FillTime: time.Since(start).Seconds()}
	r.collect()
	r.Kept = countKept(s, cfg.entries, cfg.valueSize)
	return r, nil
}

// collect forces collections and records their cost.
func (r *result) collect() {
	runtime.GC() // also finishes what the fill had begun, and brings the CPU times up to date
	before := readCPU()
	walls := make([]time.Duration, forced)
	for i := range walls {
		start := time.Now()
		runtime.GC()
		walls[i] = time.Since(start)
	}
	after := readCPU()
	slices.Sort(walls)
	r.ForcedWall = walls[forced/2].Seconds()
	r.ForcedMark = (after.mark - before.mark) / forced
	// Marking on idle processors counts as used too: a busy program pays for it.
	r.GCShareOfCPU = before.gc / (before.total - before.idle)

	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	r.HeapBytes, r.HeapObjects = ms.HeapAlloc, ms.HeapObjects
	r.RSS = residentMemory()
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	r.Cycles = gc.NumGC
	r.PauseTotal = gc.PauseTotal.Seconds()
	r.PauseMax = slices.Max(gc.Pause).Seconds() // of the last 256 cycles
}

// cpu is CPU time in seconds since the start, as of the last collection.
type cpu struct{ mark, gc, idle, total float64 }

func readCPU() cpu {
	samples := []metrics.Sample{
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(samples)
	v := func(i int) float64 { return samples[i].Value.Float64() }
	return cpu{mark: v(0) + v(1) + v(2), gc: v(3), idle: v(4), total: v(5)}
}

// residentMemory returns the resident memory of this process as reported by
// Linux; 0 on other systems.
func residentMemory() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(statm)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
