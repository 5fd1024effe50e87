// Package metrics defines the metrics that the adapters for monitoring export: their names, units
// and descriptions, and a Source that reads them from a cache.
//
// An adapter of one version may be built with a later version of this package, since a user
// may update one module alone. Exported identifiers therefore never change; new ones may be
// added, and so may metrics.
package metrics

import (
	"strings"
	"sync"
	"weak"

	"github.com/ringcache/ringcache"
)

// Metric is a counter or a gauge that every cache has, with one sample, or with one for each value
// of an attribute.
type Metric struct {
	Gauge      bool
	Prometheus string // the name, without the prefix ringcache_
	OTel       string // the same for OpenTelemetry, without the prefix ringcache.
	Unit       string // of OpenTelemetry
	About      string
	Attribute  string // of OpenTelemetry, without the prefix ringcache.; empty: none
	Samples    []Sample
}

// IsOf reports whether statistics have the metric with that name of Prometheus. Those of a
// namespace have only what is its own; it has no bound, and a cache has one.
func IsOf(s *ringcache.Stats, name string) bool {
	switch name {
	case "lookups_total", "sets_total", "deletes_total", "entries", "entries_bytes":
		return true
	}
	return s.MaxBytesSize > 0
}

// Sample is a figure of a metric.
type Sample struct {
	Attribute string // the value of the metric's attribute
	Value     func(s *ringcache.Stats) uint64
}

// Label returns the name of the attribute as a label of Prometheus.
func (m Metric) Label() string { return m.Attribute[strings.LastIndexByte(m.Attribute, '.')+1:] }

// Duration is a counter of time that a cache has spent, in seconds.
type Duration struct {
	Prometheus, OTel, Unit, About string
	Value                         func(s *ringcache.Stats) float64
}

// Updater returns a function that adds the statistics of a cache to s. It does not keep the cache
// alive, and returns false when the cache is gone.
func Updater(cache *ringcache.Cache) func(s *ringcache.Stats) bool {
	ref := weak.Make(cache)
	return func(s *ringcache.Stats) bool {
		cache := ref.Value()
		if cache == nil {
			return false
		}
		cache.UpdateStats(s)
		return true
	}
}

// Source reads the figures of a cache. Update is as of Updater.
type Source struct {
	Update func(s *ringcache.Stats) bool

	mu   sync.Mutex // of two readers
	hits uint64     // as last read
}

// NewSource returns a Source of a cache, which it does not keep alive.
func NewSource(cache *ringcache.Cache) *Source {
	return &Source{Update: Updater(cache)}
}

// Read returns the figures of the cache, and false when it is gone.
//
// Hits, which are the lookups less the misses, are kept from falling: a lookup may be counted
// before it is known to be a miss.
func (s *Source) Read() (stats ringcache.Stats, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Update(&stats) {
		return stats, false
	}
	s.hits = max(s.hits, hits(&stats))
	stats.GetCalls = s.hits + stats.Misses
	return stats, true
}
