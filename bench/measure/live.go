package measure

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ringcache/ringcache/bench/machine"
)

// collections is how often the collector is run for its median.
const collections = 7

// live fills a store and asks what its entries cost while nothing is done with
// them: memory, and the collector's time.
func live(b *bench) (Metrics, error) {
	before := readMemory()
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.fillSettling(settleEvery); err != nil {
		return nil, err
	}
	b.settle()
	after := readMemory()

	m := Metrics{}
	m[GCTime], m[GCCPU] = collect()
	if err := b.finish(m); err != nil {
		return nil, err
	}
	n := float64(b.entries)
	m[HeapObjects] = float64(after.objects-before.objects) / n
	if after.resident > 0 && m[HeldEntries] > 0 { // the null store has nothing to be beside
		m[Overhead] = float64(after.resident-before.resident)/n - float64(b.load.Format.Bytes())
	}
	return m, nil
}

// memory is what the process holds once garbage and free pages are gone.
type memory struct {
	resident int64 // 0 where it is not known
	objects  int64
}

func readMemory() memory {
	debug.FreeOSMemory() // collects first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	resident, _ := machine.Resident()
	return memory{resident: resident, objects: int64(stats.HeapObjects)}
}

// collect returns the median cost of a forced collection in milliseconds.
func collect() (wall, cpu float64) {
	walls, cpus := make([]float64, collections), make([]float64, collections)
	for i := range collections {
		spent, start := gcSeconds(), time.Now()
		runtime.GC()
		walls[i] = float64(time.Since(start).Nanoseconds()) / 1e6
		cpus[i] = 1e3 * (gcSeconds() - spent)
	}
	return Summarize(walls).Median, Summarize(cpus).Median
}

// gcSeconds is the CPU time of all collections so far.
func gcSeconds() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return s[0].Value.Float64()
}
