package measure

import (
	"runtime"
	"time"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/store"
)

// collections is how often the collector is run for its median.
const collections = 7

// live fills a store and asks what its entries cost while nothing is done with
// them: memory, and the collector's time.
func live(b *bench) (Metrics, error) {
	before := machine.Live()
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.fill(); err != nil {
		return nil, err
	}
	store.Settle(b.store)
	after := machine.Live()

	m := Metrics{GCTime: Collection(collections)}
	if err := b.finish(m); err != nil {
		return nil, err
	}
	n := float64(b.entries)
	if after > 0 && m[HeldEntries] > 0 { // the null store has nothing to be beside
		m[Overhead] = float64(after-before)/n - float64(b.load.Format.Bytes())
	}
	return m, nil
}

// Collection returns the median wall time of some forced collections, in milliseconds.
func Collection(times int) float64 {
	walls := make([]float64, times)
	for i := range walls {
		start := time.Now()
		runtime.GC()
		walls[i] = float64(time.Since(start).Nanoseconds()) / 1e6
	}
	return Summarize(walls).Median
}
