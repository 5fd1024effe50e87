// Package churn measures what caches lose while their entries are overwritten, deleted, grown
// and invalidated. The live entries of almost every load fit into the cache, so a store that
// uses its memory for live entries alone finds all of them.
package churn

import (
	"fmt"
	"slices"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/store"
)

// KeyBytes is the length of every key.
const KeyBytes = 16

// Size is that of a run.
type Size struct {
	MB    int     // the bound of the store
	Mean  int     // bytes of a value on average
	Live  float64 // bytes of the keys and values of all live entries, as a share of the bound
	Turns int     // how many times the bound is written after the cache is filled
}

func (c Size) bound() int { return c.MB << 20 }

// entries returns how many entries are live.
func (c Size) entries() int { return int(c.Live * float64(c.bound()) / float64(KeyBytes+c.Mean)) }

// Metrics are the figures of a run by their names.
type Metrics = map[string]float64

// The names of metrics.
const (
	Found     = "share found"
	Untouched = "share found of the namespace that nobody touched"
	FoundOld  = "share found of the old entries"
	FoundNew  = "share found of the new entries"
	Parts     = "share found with a part missing"
	Hits      = "hit ratio of the reads, %"
	Evicted   = "entries evicted"
	NsWrite   = "ns per write"
	NsRead    = "ns per read"
	Moved     = "bytes moved for each byte set"
	Dead      = "dead bytes at the end, share of the bound"
	Resident  = "resident memory, MB"
	Live      = "live bytes at the end, share of the bound"
	Refused   = "writes refused"
)

// Rows are the metrics of all loads that are worth a table, in their order.
var Rows = []string{Found, Untouched, FoundOld, FoundNew, Parts, Hits, NsWrite, NsRead,
	Moved, Dead, Evicted, Resident, Refused}

// Run performs a load on a store in this process, which should do nothing else and end
// afterwards. A value that is not the last one set is an error. If small, it is a smoke test.
func Run(name, storeName string, small bool) (Metrics, error) {
	i := slices.IndexFunc(Loads, func(l *Load) bool { return l.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("churn: no load %q", name)
	}
	info, err := store.Find(storeName)
	if err != nil {
		return nil, err
	}
	m, err := Loads[i].measure(Loads[i].size(small), info)
	if err != nil {
		return nil, fmt.Errorf("churn: run %s on %s: %w", name, storeName, err)
	}
	return m, nil
}

// measure performs a run of l on a new store.
func (l *Load) measure(size Size, info store.Info) (Metrics, error) {
	r, err := newRun(size, l.payload, l.keys(size))
	if err != nil {
		return nil, err
	}
	before := machine.Live()
	err = r.open(info, store.Config{
		MaxBytes: size.bound(), Entries: size.entries(), EntryBytes: KeyBytes + size.Mean,
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := l.do(r); err != nil {
		return nil, err
	}
	r.flush()
	store.Settle(r.store)
	r.metrics[Resident] = float64(machine.Live()-before) / (1 << 20)
	r.report()
	if err := l.check(r); err != nil {
		return nil, err
	}
	if err := r.store.Close(); err != nil {
		return nil, fmt.Errorf("close: %w", err)
	}
	return r.metrics, nil
}
