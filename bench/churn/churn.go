// Package churn measures what caches lose while their entries are overwritten, deleted, grown
// and invalidated. The live entries of almost every load fit into the cache, so a store that
// uses its memory for live entries alone finds all of them.
package churn

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/store"
)

// KeyBytes is the length of every key.
const KeyBytes = 16

// Case is a load at one size.
type Case struct {
	Load string
	MB   int     // the bound of the store
	Mean int     // bytes of a value on average
	Live float64 // bytes of the keys and values of all live entries, as a share of the bound
}

func (c Case) String() string {
	return fmt.Sprintf("%d MB, values of %d bytes, live %.2f", c.MB, c.Mean, c.Live)
}

func (c Case) bound() int { return c.MB << 20 }

// entries returns how many entries are live.
func (c Case) entries() int { return int(c.Live * float64(c.bound()) / float64(KeyBytes+c.Mean)) }

// Spec is one run.
type Spec struct {
	Case
	Store   string
	Turns   int    // how many times the bound is written after the cache is filled
	Payload string // kind of the values' content (package payload); "": incompressible bytes
}

// Metrics are the figures of a run by their names.
type Metrics map[string]float64

// The names of metrics.
const (
	Found     = "share found"
	Untouched = "share found of the namespace that nobody touched"
	Least     = "least share found of a namespace"
	FoundOld  = "share found of the old entries"
	FoundNew  = "share found of the new entries"
	Parts     = "share found with a part missing"
	Lost      = "requests of 1,000 that find their session lost"
	LostKeys  = "keys lost"
	Hits      = "hit ratio of the reads, %"
	Evicted   = "entries evicted"
	NsWrite   = "ns per write"
	NsRead    = "ns per read"
	Moved     = "bytes moved for each byte set"
	Dead      = "dead bytes at the end, share of the bound"
	Resident  = "resident memory, MB"
	Peak      = "resident memory with garbage at its peak, MB"
	Live      = "live bytes at the end, share of the bound"
	Refused   = "writes refused"
)

// IsShare reports whether a metric is a part of a whole, from 0 to 1.
func IsShare(metric string) bool {
	return slices.Contains([]string{Found, Untouched, Least, FoundOld, FoundNew, Parts}, metric)
}

// Run performs the run in this process, which should do nothing else and end afterwards. A
// value that is not the last one set is an error.
func Run(spec Spec) (Metrics, error) {
	l, err := find(spec.Load)
	if err != nil {
		return nil, err
	}
	info, err := store.Find(spec.Store)
	if err != nil {
		return nil, err
	}
	if !l.Fits(info) {
		return nil, fmt.Errorf("churn: run %s on %s: the store cannot do that", spec.Load, spec.Store)
	}
	m, err := l.measure(spec, info)
	if err != nil {
		return nil, fmt.Errorf("churn: run %s, %v, on %s: %w", spec.Load, spec.Case, spec.Store, err)
	}
	return m, nil
}

// measure performs a run of l on a new store.
func (l *Load) measure(spec Spec, info store.Info) (Metrics, error) {
	r, err := newRun(spec, l.keys(spec.Case), l.largest(spec.Case))
	if err != nil {
		return nil, err
	}
	before := resident()
	_ = machine.ResetPeak() // where that fails, Peak is that of the process
	err = r.open(info, store.Config{
		MaxBytes: spec.bound(), Entries: spec.entries(), EntryBytes: KeyBytes + spec.Mean, TTL: l.ttl,
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := l.do(r); err != nil {
		return nil, err
	}
	r.flush()
	r.settle()
	if peak, err := machine.Peak(); err == nil {
		after := resident()
		r.metrics[Resident] = megabytes(after - before)
		r.metrics[Peak] = megabytes(max(peak, after) - before)
	}
	r.report()
	if err := l.check(r); err != nil {
		return nil, err
	}
	if err := r.store.Close(); err != nil {
		return nil, fmt.Errorf("close: %w", err)
	}
	return r.metrics, nil
}

// resident returns the memory of the process without garbage; 0 where the system does not tell.
func resident() int64 {
	debug.FreeOSMemory() // collects first
	n, _ := machine.Resident()
	return n
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }
