package measure

import (
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// quantiles are those that a latency load reports.
var quantiles = []struct {
	name    string
	percent float64
}{{"p50", 50}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}, {"max", 100}}

// The operations that a latency load times.
const (
	Sets = "set"
	Gets = "get"
)

// Latencies returns the names of the metrics that say how long an operation took,
// the most ordinary one first.
func Latencies(op string) []string {
	names := make([]string, len(quantiles))
	for i, q := range quantiles {
		names[i] = Quantile(op, q.name)
	}
	return names
}

// Quantile is the name of one of them, such as p99.
func Quantile(op, quantile string) string { return fmt.Sprintf("%s %s ns", op, quantile) }

// times is how long each of many operations took.
type times struct{ hist *hdrhistogram.Histogram }

func newTimes() times { return times{hdrhistogram.New(1, int64(time.Minute), 3)} }

func (t times) record(took time.Duration) error {
	if err := t.hist.RecordValue(took.Nanoseconds()); err != nil {
		return fmt.Errorf("record %v: %w", took, err)
	}
	return nil
}

func (t times) addTo(m Metrics, op string) {
	if t.hist.TotalCount() == 0 {
		return
	}
	for _, q := range quantiles {
		m[Quantile(op, q.name)] = float64(t.hist.ValueAtQuantile(q.percent))
	}
}

// latencyEvict times operations on a full cache: Sets of new keys, and Gets of keys
// that are recent enough for a cache that drops the oldest first to have them.
func latencyEvict(b *bench) (Metrics, error) {
	return b.latency(b.scale.Sets, uint64(b.entries)*3/4)
}

// latencyGrow times operations on a cache that grows from nothing to all entries:
// Sets of new keys, and Gets of any set so far.
func latencyGrow(b *bench) (Metrics, error) {
	return b.latency(b.entries, uint64(b.entries))
}

// latency times pairs of a Set and a Get, one after the other on one goroutine. The
// two looks at the clock are part of every figure, as the null store shows.
func (b *bench) latency(pairs int, window uint64) (Metrics, error) {
	b.workers = b.workers[:1]
	if err := b.open(); err != nil {
		return nil, err
	}
	if b.load.Full {
		if err := b.prepare(); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	runtime.GC()
	if b.load.garbage {
		defer allocate()()
	}
	m := Metrics{}
	if err := b.workers[0].timePairs(m, pairs, window); err != nil {
		return nil, err
	}
	return m, b.finish(m)
}

// allocate allocates 200 MB a second, as objects of 1,000 bytes of which 10,000 are alive, until
// the function that it returns is called.
func allocate() (stop func()) {
	tick, stopped := time.NewTicker(time.Millisecond), make(chan struct{})
	alive := make([][]byte, 10_000)
	go func() {
		begin := time.Now()
		for next := 0; ; {
			select {
			case <-tick.C:
			case <-stopped:
				return
			}
			for due := 200 * int(time.Since(begin)/time.Millisecond); next < due; {
				alive[next%len(alive)] = make([]byte, 1000)
				next++
			}
		}
	}()
	return func() {
		tick.Stop()
		close(stopped)
	}
}

// timePairs sets the next ids, and after each Set gets one of the last window ids.
// Gets that miss are not timed: they cost less, and how many there are is a matter
// of the policy.
func (w *worker) timePairs(m Metrics, pairs int, window uint64) error {
	sets, gets := newTimes(), newTimes()
	first := uint64(0)
	if w.load.Full {
		first = w.firstFresh()
	}
	w.gets, w.hits = 0, 0
	clock := time.Now()
	for range pairs {
		w.load.Format.Key(w.key, w.next)
		w.load.Format.Value(w.val, w.next, 1)
		w.next++
		from := time.Since(clock) // reads the monotonic clock only
		err := w.store.Set(w.key, w.val)
		took := time.Since(clock) - from
		if err != nil {
			return err
		}
		if err := sets.record(took); err != nil {
			return err
		}

		id := w.next - 1 - w.rnd.Below(min(window, w.next-first))
		w.load.Format.Key(w.key, id)
		from = time.Since(clock)
		v, ok := w.store.Get(w.dst, w.key)
		took = time.Since(clock) - from
		w.gets++
		if !ok {
			continue
		}
		w.hits++
		if err := w.plausible(v, id); err != nil {
			return err
		}
		if err := gets.record(took); err != nil {
			return err
		}
	}
	sets.addTo(m, Sets)
	gets.addTo(m, Gets)
	m[Hits] = float64(w.hits) / float64(w.gets)
	return nil
}
