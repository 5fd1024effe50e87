// Package objects measures caches of decoded values: views of ringcache, with and without
// codec.Memo, and otter, which holds the objects themselves.
package objects

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/codec"
)

const (
	// HotKeys is how many keys the hot Gets read.
	HotKeys = 1024

	memoPart    = 100     // a memo holds this part of the entries
	exponent    = 0.99    // of Zipf
	drawn       = 1 << 18 // ids
	collections = 3
)

// The names of the metrics.
const (
	HotNS         = "Get, 1,024 hot keys, ns"
	ZipfNS        = "Get, Zipf, ns"
	UniformNS     = "Get, uniform, ns"
	MemoShare     = "hits of the memo, Zipf, %"
	ResidentBytes = "resident memory, bytes an entry"
	GCms          = "runtime.GC(), ms"
)

// Rows are the names of all metrics, in the order of the tables.
var Rows = []string{HotNS, ZipfNS, UniformNS, MemoShare, ResidentBytes, GCms}

// Sizes are the bytes of a value's encoding, about. There is a load for each.
var Sizes = []int{300, 1000, 3000}

// task is what a process measures.
type task struct {
	store    string
	bytes    int // of the encoding of a value, about
	items    int // of a value
	entries  int
	duration time.Duration // of timed Gets
	memo     *codec.Memoized[*order]
	cache    objects
	m        measure.Metrics
}

func newTask(bytes int, store string, s measure.Scale) *task {
	return &task{store: store, bytes: bytes, entries: max(HotKeys, s.Entries/16),
		duration: s.Duration, m: measure.Metrics{}}
}

func (t *task) memoEntries() int { return t.entries / memoPart }

// Run measures a cache that holds all entries in this process, which should do nothing else and
// end afterwards.
func Run(bytes int, store string, s measure.Scale) (measure.Metrics, error) {
	t := newTask(bytes, store, s)
	var err error
	if t.items, err = itemsFor(bytes); err != nil {
		return nil, err
	}
	before := machine.Live()
	if t.cache, err = open(t); err != nil {
		return nil, err
	}
	err = t.measure(before)
	return t.m, errors.Join(err, t.cache.Close())
}

func (t *task) measure(before int64) error {
	rnd := load.NewRand(1)
	for id := range uint64(t.entries) {
		if err := t.cache.Set(id, newOrder(id, t.items)); err != nil {
			return err
		}
	}
	below := func(n int) (ids []uint32) {
		for range drawn {
			ids = append(ids, uint32(rnd.Below(uint64(n))))
		}
		return ids
	}
	uniform, hot := below(t.entries), below(HotKeys)
	zipf := load.ZipfIDs(&rnd, uint64(t.entries), exponent, drawn)
	if err := t.get(UniformNS, uniform, 0); err != nil {
		return err
	}
	warm := 0
	if t.memo != nil {
		warm = 20 * t.memoEntries()
	}
	if err := t.get(ZipfNS, zipf, warm); err != nil {
		return err
	}
	drawnBytes := int64(3 * 4 * drawn)
	t.m[ResidentBytes] = float64(machine.Live()-before-drawnBytes) / float64(t.entries)
	t.m[GCms] = measure.Collection(collections)
	runtime.KeepAlive([][]uint32{uniform, zipf, hot})
	return t.get(HotNS, hot, 32*HotKeys)
}

// get times Gets of ids, after as many others as warm says.
func (t *task) get(name string, ids []uint32, warm int) error {
	n := 0
	some := func() error {
		for _, id := range ids[n%len(ids):][:1024] {
			if v, ok := t.cache.Get(uint64(id)); !ok || v.ID != uint64(id) {
				return fmt.Errorf("value %d of %d is not there, or wrong", id, t.entries)
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
	gets, hits := t.memoHits()
	first, start := n, time.Now()
	for n == first || time.Since(start) < t.duration {
		if err := some(); err != nil {
			return err
		}
	}
	t.m[name] = float64(time.Since(start).Nanoseconds()) / float64(n-first)
	if g, h := t.memoHits(); name == ZipfNS && g > gets {
		t.m[MemoShare] = 100 * float64(h-hits) / float64(g-gets)
	}
	return nil
}

// memoHits returns the Gets of the memo so far, and those that have found the value there.
func (t *task) memoHits() (gets, hits uint64) {
	if t.memo == nil {
		return 0, 0
	}
	stats := t.memo.Stats()
	return stats.Hits + stats.Misses, stats.Hits
}
