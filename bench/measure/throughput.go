package measure

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ringcache/ringcache/bench/store"
)

// throughput times an operation for Scale.Duration on a prepared store.
func throughput(b *bench) (Metrics, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.prepare(); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	runtime.GC() // what was left over by preparing is not timed
	wall, err := b.timed()
	if err != nil {
		return nil, err
	}
	m := Metrics{NsPerOp: b.perOp(wall, b.sum(func(w *worker) uint64 { return w.ops }))}
	if gets := b.sum(func(w *worker) uint64 { return w.gets }); gets > 0 {
		m[Hits] = b.sum(func(w *worker) uint64 { return w.hits }) / gets
	}
	return m, b.finish(m)
}

// coldStart times as many operations on an empty store as it is to have entries.
func coldStart(b *bench) (Metrics, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	runtime.GC()
	start := time.Now()
	err := b.each(func(w *worker) error { return w.steps(b.entries / len(b.workers)) })
	if err != nil {
		return nil, err
	}
	m := Metrics{NsPerOp: b.perOp(time.Since(start), b.sum(func(w *worker) uint64 { return w.ops }))}
	gets := b.sum(func(w *worker) uint64 { return w.gets })
	m[Hits] = b.sum(func(w *worker) uint64 { return w.hits }) / gets
	err = b.finish(m)
	delete(m, Held) // what was not drawn was not set
	return m, err
}

// prepare brings the store to the state in which it stays during the load.
func (b *bench) prepare() error {
	defer store.Settle(b.store) // of the last ones
	share := b.entries / len(b.workers)
	if !b.load.Full {
		if err := b.fill(); err != nil || !b.load.warm {
			return err
		}
	}
	// Twice what is held, so that stores which append have gone round once and
	// write to memory that they have touched before.
	return b.each(func(w *worker) error {
		for done := 0; done < 2*share; done += settleEvery {
			if err := w.steps(settleEvery); err != nil {
				return err
			}
			store.Settle(b.store)
		}
		return nil
	})
}

// timed runs the operation on all workers at once.
func (b *bench) timed() (time.Duration, error) {
	start := time.Now()
	err := b.each(func(w *worker) error {
		w.ops, w.gets, w.hits = 0, 0, 0
		for { // at least once, however late the goroutine starts
			if err := w.step(); err != nil {
				return err
			}
			if time.Since(start) >= b.scale.Duration { // one look at the clock per batch
				return nil
			}
		}
	})
	return time.Since(start), err
}

// perOp is the time of one operation as a goroutine sees it.
func (b *bench) perOp(wall time.Duration, ops float64) float64 {
	return float64(wall.Nanoseconds()) * float64(len(b.workers)) / ops
}
