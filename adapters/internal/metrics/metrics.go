// Package metrics defines the metrics that the adapters for monitoring export: their names, units
// and descriptions, and a Source that reads them from a cache.
//
// Users may update one module alone, so an adapter of one version may be built with a later version
// of this package. Exported identifiers therefore must not change; identifiers and metrics may be
// added.
package metrics

import (
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/ringcache/ringcache"
)

// Kind is the kind of a metric.
type Kind int

const (
	Counter Kind = iota
	Gauge        // can be added up over caches and processes
)

// Metric is a metric of a cache, with one sample, or with one for each value of an attribute.
type Metric struct {
	Kind       Kind
	Prometheus string // the name, without the prefix ringcache_
	OTel       string // the same for OpenTelemetry, without the prefix ringcache.
	Unit       string // of OpenTelemetry
	About      string
	Attribute  string // of OpenTelemetry, without the prefix ringcache.; empty: none
	Samples    []Sample
}

// IsOf reports whether statistics have the metric. Those of a namespace, which has no bound, have
// only a few.
func (m Metric) IsOf(s *ringcache.Stats) bool {
	switch m.Prometheus {
	case "lookups_total", "sets_total", "deletes_total", "entries", "entries_bytes":
		return true
	}
	return s.MaxBytesSize > 0
}

// Sample is a figure of a metric.
type Sample struct {
	Attribute string // the value of the metric's attribute
	Value     func(s *ringcache.Stats) float64
}

// Label returns the name of the attribute as a label of Prometheus.
func (m Metric) Label() string { return m.Attribute[strings.LastIndexByte(m.Attribute, '.')+1:] }

// Title returns the words that label a sample of the metric where its name would be too terse.
func (m Metric) Title(s Sample) string {
	title := strings.TrimSpace(m.OTel + " " + s.Attribute)
	return strings.NewReplacer(".", " ", "_", " ").Replace(title)
}

// Named returns the metrics with those OpenTelemetry names.
func Named(names ...string) (named []Metric) {
	for _, name := range names {
		i := slices.IndexFunc(All, func(m Metric) bool { return m.OTel == name })
		named = append(named, All[i])
	}
	return named
}

// Source reads the statistics of a cache.
type Source struct {
	// Update adds the statistics of the cache to s, and returns false if the cache is gone.
	Update func(s *ringcache.Stats) bool

	mu   sync.Mutex
	hits uint64 // as last read
}

// NewSource returns a Source of a cache, which it does not keep alive.
func NewSource(cache *ringcache.Cache) *Source {
	ref := weak.Make(cache)
	return &Source{Update: func(s *ringcache.Stats) bool {
		cache := ref.Value()
		if cache == nil {
			return false
		}
		cache.UpdateStats(s)
		return true
	}}
}

// Read returns the statistics of the cache, and false if it is gone.
//
// A lookup may be counted before it is known to be a miss, so the hits, which are the lookups less
// the misses, may fall. Read adjusts GetCalls so that they never do.
func (s *Source) Read() (stats ringcache.Stats, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Update(&stats) {
		return stats, false
	}
	s.hits = max(s.hits, stats.GetCalls-min(stats.Misses, stats.GetCalls))
	stats.GetCalls = s.hits + stats.Misses
	return stats, true
}
