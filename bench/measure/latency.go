package measure

import (
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const slow = 100 * time.Microsecond

// latency times single operations, one after the other on one goroutine. The two
// looks at the clock are part of every figure, as the null store shows.
func latency(b *bench) (Metrics, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.prepare(); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	b.workers = b.workers[:1]
	runtime.GC()
	m, err := b.workers[0].timeSets(b.scale.Sets)
	if err != nil {
		return nil, err
	}
	return m, b.finish(m)
}

func (w *worker) timeSets(n int) (Metrics, error) {
	hist := hdrhistogram.New(1, int64(time.Minute), 3)
	f := w.load.Format
	var longest time.Duration
	var over int
	start := time.Now()
	for range n {
		id := w.next
		w.next++
		f.Key(w.key, id)
		f.Value(w.val, id, 1)
		before := time.Since(start) // reads the monotonic clock only
		err := w.store.Set(w.key, w.val)
		took := time.Since(start) - before
		if err != nil {
			return nil, err
		}
		if err := hist.RecordValue(took.Nanoseconds()); err != nil {
			return nil, fmt.Errorf("record %v: %w", took, err)
		}
		longest = max(longest, took)
		if took > slow {
			over++
		}
	}
	return Metrics{
		P50:     float64(hist.ValueAtQuantile(50)),
		P99:     float64(hist.ValueAtQuantile(99)),
		P999:    float64(hist.ValueAtQuantile(99.9)),
		P9999:   float64(hist.ValueAtQuantile(99.99)),
		Max:     float64(longest.Nanoseconds()),
		Over100: float64(over),
	}, nil
}
