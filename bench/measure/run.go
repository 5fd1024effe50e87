package measure

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/ringcache/ringcache/bench/store"
)

// Run performs a load on a store in this process, which should do nothing else and end
// afterwards. Any value that is not what was set is an error.
func Run(name, storeName string, scale Scale) (Metrics, error) {
	l, err := Find(name)
	if err != nil {
		return nil, err
	}
	info, err := store.Find(storeName)
	if err != nil {
		return nil, err
	}
	b := &bench{load: l, info: info, scale: scale, entries: l.entries(scale)}
	b.start(runtime.GOMAXPROCS(0))
	m, err := b.load.run(b)
	if err != nil {
		return nil, fmt.Errorf("measure: run %s on %s: %w", name, storeName, err)
	}
	return m, nil
}

// bench is a run in progress.
type bench struct {
	load    *Load
	info    store.Info
	scale   Scale
	entries int
	store   store.Store
	workers []*worker
}

// start makes the workers. Those of zipf loads draw their ids here.
func (b *bench) start(workers int) {
	for i := range workers {
		b.workers = append(b.workers, newWorker(b, i))
	}
	if start := b.load.order.start; start != nil {
		_ = b.each(func(w *worker) error { start(w); return nil })
	}
}

func (b *bench) open() error {
	s, err := b.info.New(store.Config{
		MaxBytes:   b.maxBytes(),
		Entries:    b.entries,
		EntryBytes: b.load.Format.Bytes(),
		Grow:       b.load.grow,
		TTL:        b.load.ttl,
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	b.store = s
	for _, w := range b.workers {
		w.store = s
	}
	return nil
}

// maxBytes is the same for every store. Where nothing is to be evicted, there is
// room for twice the entries and 32 bytes each for whatever is kept beside them,
// so that a store which appends on overwriting has room too; and at least the 32
// MB that fastcache needs for its 512 buckets, and 1,200 entries, as freecache
// refuses one of more than 1/1024.
func (b *bench) maxBytes() int {
	if b.load.Full {
		return b.scale.FullMB << 20
	}
	return max(32<<20, 1200*b.load.Format.Bytes(), 2*b.entries*(b.load.Format.Bytes()+32))
}

// each runs fn on every worker at once and waits.
func (b *bench) each(fn func(*worker) error) error {
	errs := make([]error, len(b.workers))
	var wg sync.WaitGroup
	for i, w := range b.workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = fn(w)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fill stores the first version of every entry, each worker its share of the ids. It waits for
// the store now and then.
func (b *bench) fill() error {
	return b.each(func(w *worker) error {
		from, to := b.share(w)
		for id := from; id < to; id++ {
			if err := w.set(id, 0); err != nil {
				return err
			}
			if (id-from)%settleEvery == settleEvery-1 {
				store.Settle(b.store)
			}
		}
		return nil
	})
}

func (b *bench) share(w *worker) (from, to uint64) {
	n, workers, i := uint64(b.entries), uint64(len(b.workers)), uint64(w.index)
	return n * i / workers, n * (i + 1) / workers
}

// sum adds up a counter over the workers.
func (b *bench) sum(counter func(*worker) uint64) float64 {
	var n uint64
	for _, w := range b.workers {
		n += counter(w)
	}
	return float64(n)
}

// finish verifies every byte of every entry that is still there, notes how many
// that are, and closes the store.
func (b *bench) finish(m Metrics) error {
	store.Settle(b.store)
	err := b.each(func(w *worker) error {
		from, to := b.share(w)
		if b.load.Full {
			// All new keys of this worker that may still be held.
			to = w.next
			from = max(w.firstFresh(), to-uint64(b.entries))
		}
		return w.verify(from, to)
	})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	held := b.sum(func(w *worker) uint64 { return w.hits })
	m[HeldEntries] = held
	if c, ok := b.store.(store.Counter); ok && b.load.Full {
		m[HeldEntries] = float64(c.Len()) // a store that resists scans holds older keys too
	}
	if !b.load.Full {
		m[Held] = held / b.sum(func(w *worker) uint64 { return w.gets })
	}
	if err := b.store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
