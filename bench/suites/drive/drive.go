// Package drive has the traffic that the suites make.
package drive

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/suites/client"
)

// batch is the number of operations that a worker does before it checks whether its time is over.
const batch = 256

// Traffic describes the goroutines of a timed run. Each starts at a different key, goes through the
// keys in order, and either reads or writes.
type Traffic struct {
	Cache            client.Cache
	Keys, Values     []string // of the same length
	Readers, Writers int
	Seed             uint64 // of the places
}

// Rates are what the goroutines did.
type Rates struct {
	Reads, Writes float64 // a second, all goroutines together
	Hits          float64 // share of the reads
}

// For lets the goroutines run for d.
func (t Traffic) For(d time.Duration) Rates {
	var (
		begin   = make(chan struct{})
		over    atomic.Bool
		done    sync.WaitGroup
		rnd     = load.NewRand(t.Seed)
		workers = make([]*worker, t.Readers+t.Writers)
	)
	for i := range workers {
		w := &worker{Traffic: t, at: int(rnd.Below(uint64(len(t.Keys)))), writes: i >= t.Readers}
		workers[i] = w
		done.Add(1)
		go func() {
			defer done.Done()
			<-begin
			w.run(&over)
		}()
	}
	close(begin)
	time.Sleep(d)
	over.Store(true)
	done.Wait()
	return rates(workers)
}

// worker is one goroutine.
type worker struct {
	Traffic
	writes  bool
	at      int
	buf     []byte
	n, hits int
	took    time.Duration
	_       [128]byte // no other worker in the same cache lines
}

// run works until the time is over, and does one batch at least.
func (w *worker) run(over *atomic.Bool) {
	step := w.read
	if w.writes {
		step = w.write
	}
	from := time.Now()
	for done := false; !done; done = over.Load() {
		step()
		w.n += batch
	}
	w.took = time.Since(from)
}

func (w *worker) read() {
	for range batch {
		if _, ok := w.Cache.Get(&w.buf, w.Keys[w.next()]); ok {
			w.hits++
		}
	}
}

func (w *worker) write() {
	for range batch {
		i := w.next()
		w.Cache.Set(w.Keys[i], w.Values[i])
	}
}

func (w *worker) next() int {
	i := w.at
	if w.at++; w.at == len(w.Keys) {
		w.at = 0
	}
	return i
}

func rates(workers []*worker) (r Rates) {
	reads, hits := 0, 0
	for _, w := range workers {
		rate := float64(w.n) / w.took.Seconds()
		if w.writes {
			r.Writes += rate
			continue
		}
		r.Reads += rate
		reads += w.n
		hits += w.hits
	}
	if reads > 0 {
		r.Hits = float64(hits) / float64(reads)
	}
	return r
}
