// Package objects measures caches of decoded values: views of ringcache, with and without
// codec.Memo, and otter, which holds the objects themselves.
package objects

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/machine"
)

const (
	// HotKeys is how many keys the hot Gets read.
	HotKeys = 1024
	// BudgetPart says what equal memory is: this part of what a view with all entries takes.
	BudgetPart = 4

	memoPart    = 100     // a memo holds this part of the entries, or of what there is room for
	exponent    = 0.99    // of Zipf
	drawn       = 1 << 18 // ids
	replayed    = 1 << 18 // Gets of each half of a replay
	collections = 3
)

// Names of Figures.
const (
	HotNS         = "Get, 1,024 hot keys, ns"
	ZipfNS        = "Get, Zipf, ns"
	UniformNS     = "Get, uniform, ns"
	MemoShare     = "hits of the memo, Zipf, %"
	ResidentBytes = "resident memory, bytes an entry"
	GCms          = "runtime.GC(), ms"
	HitRatio      = "hits within equal memory, Zipf, %"
)

// Rows are the names of all figures, in the order of the tables.
var Rows = []string{HotNS, ZipfNS, UniformNS, MemoShare, ResidentBytes, GCms, HitRatio}

// Figures are what a run has measured, by name.
type Figures map[string]float64

// Task is what a process measures.
type Task struct {
	Values
	Store      string
	Duration   time.Duration // of timed Gets
	Replay     bool          // within the bounds that follow; else there is room for all entries
	MaxBytes   int
	MaxObjects int
}

// Seconds estimates how long t takes.
func (t Task) Seconds() float64 {
	const perByte = 20e-9 // to make, encode and decode a value
	seconds := 1 + float64(t.Entries*t.Bytes)*perByte/2 + 4*t.Duration.Seconds()
	if t.Store == MemoStore {
		seconds += float64(20*t.memoEntries()*t.Bytes) * perByte
	}
	return seconds
}

func (t *Task) memoEntries() int {
	if t.Replay {
		return t.Entries / BudgetPart / memoPart
	}
	return t.Entries / memoPart
}

// Do performs t in this process, which should do nothing else and end afterwards.
func (t Task) Do() (Figures, error) {
	if t.Kind == "proto" {
		return perform(&t, &messages)
	}
	return perform(&t, &orders)
}

// perform measures a cache that holds all entries, or the hit ratio of one that does not.
func perform[V any](t *Task, k *kind[V]) (Figures, error) {
	parts, err := k.partsFor(t.Bytes)
	if err != nil {
		return nil, err
	}
	if !t.Replay {
		t.MaxBytes, t.MaxObjects = 2*t.Entries*(t.Bytes+64), 2*t.Entries // nothing is evicted
	}
	before, err := resident()
	if err != nil {
		return nil, err
	}
	s, err := open(t, k)
	if err != nil {
		return nil, err
	}
	r := &runner[V]{Task: t, kind: k, s: s, parts: parts, f: Figures{}}
	if t.Replay {
		err = r.replay()
	} else {
		err = r.measure(before)
	}
	return r.f, errors.Join(err, s.Close())
}

// resident returns the memory of the process without garbage and free pages.
func resident() (int64, error) {
	debug.FreeOSMemory() // collects first
	return machine.Resident()
}

// runner measures one cache.
type runner[V any] struct {
	*Task
	kind  *kind[V]
	s     objects[V]
	parts int
	f     Figures
}

func (r *runner[V]) measure(before int64) error {
	rnd := load.NewRand(1)
	if err := r.fill(); err != nil {
		return err
	}
	below := func(n int) (ids []uint32) {
		for range drawn {
			ids = append(ids, uint32(rnd.Below(uint64(n))))
		}
		return ids
	}
	uniform, hot := below(r.Entries), below(HotKeys)
	zipf := load.ZipfIDs(&rnd, uint64(r.Entries), exponent, drawn)
	if err := r.get(UniformNS, uniform, 0); err != nil {
		return err
	}
	warm := 0
	if r.Store == MemoStore {
		warm = 20 * r.memoEntries()
	}
	if err := r.get(ZipfNS, zipf, warm); err != nil {
		return err
	}
	after, err := resident()
	if err != nil {
		return err
	}
	drawnBytes := int64(3 * 4 * drawn)
	r.f[ResidentBytes] = float64(after-before-drawnBytes) / float64(r.Entries)
	r.collect()
	runtime.KeepAlive([][]uint32{uniform, zipf, hot})
	return r.get(HotNS, hot, 32*HotKeys)
}

// fill sets all entries in an order that has nothing to do with how often they are read.
func (r *runner[V]) fill() error {
	for id := range uint64(r.Entries) {
		if err := r.s.Set(id, r.kind.make(id, r.parts)); err != nil {
			return err
		}
	}
	return nil
}

// get times Gets of ids, after as many others as warm says.
func (r *runner[V]) get(name string, ids []uint32, warm int) error {
	n := 0
	some := func() error {
		for _, id := range ids[n%len(ids):][:1024] {
			if v, ok := r.s.Get(uint64(id)); !ok || r.kind.id(v) != uint64(id) {
				return fmt.Errorf("value %d of %d is not there, or wrong", id, r.Entries)
			}
		}
		n += 1024
		return nil
	}
	for n < warm {
		if err := some(); err != nil {
			return err
		}
	}
	runtime.GC()
	gets, hits := r.s.MemoHits()
	first, start := n, time.Now()
	for n == first || time.Since(start) < r.Duration {
		if err := some(); err != nil {
			return err
		}
	}
	r.f[name] = float64(time.Since(start).Nanoseconds()) / float64(n-first)
	if g, h := r.s.MemoHits(); name == ZipfNS && g > gets {
		r.f[MemoShare] = 100 * float64(h-hits) / float64(g-gets)
	}
	return nil
}

// collect takes the median of some collections.
func (r *runner[V]) collect() {
	times := make([]float64, collections)
	for i := range times {
		start := time.Now()
		runtime.GC()
		times[i] = float64(time.Since(start).Nanoseconds()) / 1e6
	}
	slices.Sort(times)
	r.f[GCms] = times[collections/2]
}

// replay sets all entries, of which some stay. Then it reads Zipf keys, sets what is missing, and
// counts the hits of the second half.
func (r *runner[V]) replay() error {
	if err := r.fill(); err != nil {
		return err
	}
	rnd, hits := load.NewRand(2), 0
	for range 2 {
		hits = 0
		for _, id := range load.ZipfIDs(&rnd, uint64(r.Entries), exponent, replayed) {
			if _, ok := r.s.Get(uint64(id)); ok {
				hits++
			} else if err := r.s.Set(uint64(id), r.kind.make(uint64(id), r.parts)); err != nil {
				return err
			}
		}
	}
	r.f[HitRatio] = 100 * float64(hits) / replayed
	return nil
}
