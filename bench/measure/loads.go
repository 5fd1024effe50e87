// Package measure runs one load on one store in this process and returns what it
// cost.
package measure

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/load"
)

// Names of the metrics that a load reports.
const (
	NsPerOp     = "ns/op" // wall time x goroutines / operations
	Hits        = "hits"  // share of the timed Gets that hit
	Held        = "held"  // share of what was set that was there afterwards
	HeldEntries = "entries held"

	Overhead = "overhead B/entry" // resident memory less key and value
	GCTime   = "gc ms"            // wall time of one runtime.GC
)

// Metrics are the results of one run by name.
type Metrics = map[string]float64

// Scale holds the sizes of the loads.
type Scale struct {
	Entries  int           // entries of 16+100 bytes in the main loads
	FullMB   int           // size of the caches that are full
	Sets     int           // Sets, and Gets, that are timed one by one
	Duration time.Duration // timed part of a throughput load
}

// IsSmall reports whether s is that of a smoke test.
func (s Scale) IsSmall() bool { return s.Entries < Default.Entries }

// Default is the scale of the published figures.
var Default = Scale{Entries: 4_000_000, FullMB: 256, Sets: 5_000_000, Duration: time.Second}

// Quick shows within two minutes that everything works, and roughly the ratios.
var Quick = Scale{Entries: 100_000, FullMB: 32, Sets: 100_000, Duration: 100 * time.Millisecond}

// The groups of loads, which have the same metrics.
const (
	Reference = "reference"
	Small     = "16+100"
	Full      = "full"
	TTL       = "ttl"
	Large     = "16+1000"
	Larger    = "large"
	Hot       = "16+8"
	Latency   = "latency"
	Live      = "live"
)

// MetricsOf returns the metrics that a group is about.
func MetricsOf(group string) []string {
	switch group {
	case Full:
		return []string{NsPerOp, HeldEntries}
	case Latency:
		return slices.Concat(Latencies(Sets), Latencies(Gets), []string{Hits, HeldEntries})
	case Live:
		return []string{Overhead, GCTime}
	}
	return []string{NsPerOp}
}

// referenceItems is the size of fastcache's own benchmark, and of the hot cache.
const referenceItems = 1 << 16

var (
	tiny  = load.Format{KeySize: 4, ValueSize: 4}
	brief = load.Format{KeySize: 16, ValueSize: 8}
	small = load.Format{KeySize: 16, ValueSize: 100}
	large = load.Format{KeySize: 16, ValueSize: 1000}
	page  = load.Format{KeySize: 16, ValueSize: 10_000}
	image = load.Format{KeySize: 16, ValueSize: 100_000}
)

// Load is one thing to measure.
type Load struct {
	Name   string
	Group  string
	Format load.Format
	// Full loads keep a cache of Scale.FullMB full of new keys.
	Full bool

	entries func(Scale) int
	run     func(*bench) (Metrics, error)
	order   order               // which ids
	op      func(*worker) error // what to do with them
	warm    bool                // do it twice per entry before timing
	grow    bool                // the store begins small
	garbage bool                // another goroutine allocates meanwhile
	ttl     time.Duration       // of all entries, in stores that have such a thing
}

// Loads lists all loads in the order in which they run.
var Loads = []*Load{
	timed("ref-set", Reference, tiny, reference, sequential, set),
	timed("ref-get", Reference, tiny, reference, sequential, get),
	timed("ref-setget", Reference, tiny, reference, twice, setThenGet),

	timed("dep-uniform", Small, small, entries, uniform, getDependent),
	timed("dep-zipf", Small, small, entries, zipf(0.99), getDependent),
	timed("get-nil", Small, small, entries, uniform, getNil),
	timed("get-uniform", Small, small, entries, uniform, get),
	timed("get-zipf", Small, small, entries, zipf(0.99), get),
	timed("get-absent", Small, small, entries, absent, getAbsent),
	timed("get-batch", Small, small, entries, uniform, getBatch),
	warmed(timed("overwrite", Small, small, entries, uniform, set)),
	timed("mix-zipf", Small, small, entries, zipf(0.99), mix),
	timed("del-set", Small, small, entries, uniform, delThenSet),
	{Name: "cold-start", Group: Small, Format: small, entries: entries, run: coldStart,
		order: zipf(0.99), op: readThrough},
	full(timed("set-new", Full, small, fullEntries, fresh, set)),

	expiring(timed("ttl-dep-uniform", TTL, small, entries, uniform, getDependent)),
	expiring(timed("ttl-get-uniform", TTL, small, entries, uniform, get)),
	expiring(warmed(timed("ttl-set", TTL, small, entries, uniform, set))),

	timed("get-1000", Large, large, quarter, uniform, get),
	warmed(timed("set-1000", Large, large, quarter, uniform, set)),

	timed("get-10k", Larger, page, hundredth, uniform, get),
	warmed(timed("set-10k", Larger, page, hundredth, uniform, set)),
	timed("get-100k", Larger, image, thousandth, uniform, get),
	warmed(timed("set-100k", Larger, image, thousandth, uniform, set)),

	timed("dep-small-zipf", Hot, brief, reference, zipf(0.99), getDependent),
	timed("dep-small-uniform", Hot, brief, reference, uniform, getDependent),
	timed("hot-key", Hot, brief, reference, one, get),
	timed("get-small-zipf", Hot, brief, reference, zipf(0.99), get),
	warmed(timed("set-small", Hot, brief, reference, uniform, set)),
	timed("mix-small", Hot, brief, reference, zipf(0.99), mix),

	full(&Load{Name: "latency-evict", Group: Latency, Format: small, entries: fullEntries,
		run: latencyEvict, order: fresh, op: set}),
	full(&Load{Name: "latency-alloc", Group: Latency, Format: small, entries: fullEntries,
		run: latencyEvict, order: fresh, op: set, garbage: true}),
	{Name: "latency-grow", Group: Latency, Format: small, entries: entries, run: latencyGrow,
		grow: true},

	{Name: "live-1", Group: Live, Format: small, entries: quarter, run: live},
	{Name: "live-4", Group: Live, Format: small, entries: entries, run: live},
	{Name: "live-10", Group: Live, Format: small, entries: tenQuarters, run: live},
}

func timed(
	name, group string, f load.Format, entries func(Scale) int, o order, op func(*worker) error,
) *Load {
	return &Load{Name: name, Group: group, Format: f, entries: entries, run: throughput,
		order: o, op: op}
}

// warmed loads run for a while before they are timed.
func warmed(l *Load) *Load {
	l.warm = true
	return l
}

// expiring loads have entries with a time to live, which all outlive the run: what is
// timed is what it costs to write an expiry, and to look at it.
func expiring(l *Load) *Load {
	l.ttl = time.Hour
	return l
}

func full(l *Load) *Load {
	l.Full = true
	return l
}

func reference(Scale) int     { return referenceItems }
func entries(s Scale) int     { return s.Entries }
func quarter(s Scale) int     { return max(1, s.Entries/4) }
func hundredth(s Scale) int   { return max(8, s.Entries/100) }
func thousandth(s Scale) int  { return max(8, s.Entries/1000) }
func tenQuarters(s Scale) int { return s.Entries * 10 / 4 }

// fullEntries is the most entries that a full cache can hold.
func fullEntries(s Scale) int { return s.FullMB << 20 / small.Bytes() }

// Find returns the load of that name.
func Find(name string) (*Load, error) {
	i := slices.IndexFunc(Loads, func(l *Load) bool { return l.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("measure: find load %q: not among the %d loads", name, len(Loads))
	}
	return Loads[i], nil
}
