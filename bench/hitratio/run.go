package hitratio

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// Spec is one replay of one store.
type Spec struct {
	Plan    Plan
	Store   string
	Nominal int    // MaxBytes of the store
	Traces  string // directory of the recorded traces
}

// Outcome is what a replay tells.
type Outcome struct {
	Counts
	ByteRatio float64 // share of the bytes asked for that were hits, in percent
	Nominal   int
	Held      int64 // bytes of keys and values in the end
	Memory    int64 // resident memory that the process has for the store in the end
	Seconds   float64
}

// Ratio returns the share of requests that were hits, in percent.
func (c *Counts) Ratio() float64 { return percent(c.Hits, c.Requests) }

// BesideRatio returns the share of hits among what is read through beside late
// reads, in percent.
func (c *Counts) BesideRatio() float64 { return percent(c.BesideHits, c.Beside) }

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Run performs the replay in this process, which should do nothing else and end
// afterwards.
func Run(spec Spec) (*Outcome, error) {
	t, err := openPlanned(spec)
	if err != nil {
		return nil, err
	}
	return run(spec, t)
}

func run(spec Spec, t *trace.Trace) (*Outcome, error) {
	info, err := store.Find(spec.Store)
	if err != nil {
		return nil, err
	}
	p := &spec.Plan
	r := newReplayer(p, nil, t)
	before := machine.Live()
	r.store, err = info.New(store.Config{
		MaxBytes:    spec.Nominal,
		Entries:     spec.Nominal / p.EntryBytes(),
		EntryBytes:  p.EntryBytes(),
		Synchronous: true,
	})
	if err != nil {
		return nil, fmt.Errorf("hitratio: open %s of %d bytes: %w", spec.Store, spec.Nominal, err)
	}
	start := time.Now()
	if err := r.replay(t); err != nil {
		return nil, fmt.Errorf("%w: %s, %v", err, spec.Store, p)
	}
	o := &Outcome{Nominal: spec.Nominal, Seconds: time.Since(start).Seconds(), Counts: r.Counts,
		ByteRatio: percent(r.HitBytes, r.Bytes)}
	o.Memory = machine.Live() - before
	runtime.KeepAlive(t) // it is in before too: collected, its bytes would be taken off
	if o.Held, err = r.held(); err != nil {
		return nil, fmt.Errorf("%w: %s, %v", err, spec.Store, p)
	}
	if err := r.store.Close(); err != nil {
		return nil, fmt.Errorf("hitratio: close %s: %w", spec.Store, err)
	}
	return o, nil
}

func openPlanned(spec Spec) (*trace.Trace, error) {
	all, _ := trace.Sources(spec.Traces) // a trace that is missing is not found
	found, err := trace.Find(all, []string{spec.Plan.Load})
	if err != nil {
		return nil, err
	}
	return found[0].Open(spec.Plan.Scale)
}
