package main

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/suites/client"
)

const memoryNote = `A cache for so many entries is filled with that many, each read ten times
after its Set; keys and values are the same decimal number, made before the first reading, and
expire after an hour. The suite reports what the Go heap has gained, of which a cache outside of
the heap has nearly nothing; the resident memory shows it. The strings themselves are not part of
the gain of the caches that keep pointers to them, but ringcache copies them.`

// Names of figures.
const (
	heapMB     = "Go heap, MB (the suite's figure)"
	residentMB = "resident memory, MB"
	liveMB     = "resident memory after a collection, MB"
	held       = "entries held"
)

// reading is what is known about memory at one moment.
type reading struct {
	runtime.MemStats
	resident int64
}

func read() (r reading, err error) {
	runtime.ReadMemStats(&r.MemStats)
	r.resident, err = machine.Resident()
	return r, err
}

func memory(t harness.Spec) (harness.Metrics, error) {
	n, err := strconv.Atoi(t.Load)
	if err != nil {
		return nil, err
	}
	if t.Scale.IsSmall() {
		n = min(n, 2000)
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	debug.FreeOSMemory()
	before, err := read()
	if err != nil {
		return nil, err
	}
	size := len(keys[n-1])
	c, err := client.Open(t.Store, client.Options{
		Capacity: n, KeySize: size, ValueSize: size, Ample: true, TTL: time.Hour,
	})
	if err != nil {
		return nil, err
	}
	fill(c, keys)
	after, err := read()
	if err != nil {
		return nil, err
	}
	f := harness.Metrics{
		heapMB:     mb(int64(after.Alloc) - int64(before.Alloc)),
		residentMB: mb(after.resident - before.resident),
		held:       float64(c.Len()),
	}
	debug.FreeOSMemory()
	live, err := machine.Resident()
	f[liveMB] = mb(live - before.resident)
	runtime.KeepAlive(keys)
	c.Close()
	return f, err
}

// fill pauses now and then, for the caches whose policies work on other goroutines.
func fill(c client.Cache, keys []string) {
	const every = 64
	var buf []byte
	for i, key := range keys {
		c.Set(key, key)
		for range 10 {
			c.Get(&buf, key)
		}
		if i%every == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }
