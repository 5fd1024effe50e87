// Package ringprometheus shows the statistics of caches of package
// [github.com/ringcache/ringcache] to Prometheus.
//
//	caches := ringprometheus.NewCollector()
//	prometheus.MustRegister(caches)
//
//	pages := ringcache.New(256 << 20)
//	err := caches.Register("pages", pages)
//
// Each metric has the label cache, which is the name that the cache was registered
// under. The README lists all metrics, and comes with a dashboard for Grafana and with
// alerts.
package ringprometheus

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// Errors of [Collector.Register]. Test for them with [errors.Is].
var (
	// ErrNameTaken is returned when another cache has the name.
	ErrNameTaken = errors.New("name is taken")

	// ErrInvalidName is returned when the name is empty or not UTF-8, and so cannot
	// be the value of a label.
	ErrInvalidName = errors.New("name must be UTF-8 and not empty")
)

// Collector is a [prometheus.Collector] of the statistics of any number of caches,
// which may come and go while it is scraped. It is safe for concurrent use.
//
// A scrape calls [ringcache.Cache.UpdateStats] and [ringcache.Cache.Sizing] once for each
// cache. Each takes each bucket's lock for a moment, and holds up no lookup.
//
// A Collector does not keep its caches alive: when the last other reference to one is
// gone, the garbage collector takes it, and its name is free again.
type Collector struct {
	mu     sync.Mutex
	caches map[string]*metrics.Source
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector without caches.
func NewCollector() *Collector {
	return &Collector{caches: make(map[string]*metrics.Source)}
}

// Register shows a cache under a name from the next scrape on. It returns an error that
// is [ErrNameTaken] or [ErrInvalidName], and changes nothing then. It panics if cache is nil.
//
// A closed cache is still shown, with the counters that it had and gauges of 0 but for
// its limit. Where a new cache follows, call [Collector.Unregister] first: to
// Prometheus, the counters start again.
func (c *Collector) Register(name string, cache *ringcache.Cache) error {
	if cache == nil {
		panic("ringprometheus: register cache: cache is nil")
	}
	if err := c.add(name, metrics.NewSource(cache)); err != nil {
		return fmt.Errorf("ringprometheus: register cache %q: %w", name, err)
	}
	return nil
}

// Unregister stops showing the cache of that name, and tells whether there was one. A
// scrape that is under way may show it once more.
func (c *Collector) Unregister(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.caches[name]
	delete(c.caches, name)
	return ok
}

// Describe sends the descriptions of all metrics, as [prometheus.Collector] asks for.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range shown {
		descs <- m.desc
	}
}

// Collect sends the metrics of all caches, as [prometheus.Collector] asks for.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for name, s := range c.sources() {
		if !collect(name, s, out) {
			c.forget(name, s)
		}
	}
}

func (c *Collector) add(name string, s *metrics.Source) error {
	if name == "" || !utf8.ValidString(name) {
		return ErrInvalidName
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.caches[name]; old != nil && old.Update(new(ringcache.Stats)) {
		return ErrNameTaken
	}
	c.caches[name] = s
	return nil
}

// sources returns a copy, so that no scrape keeps others waiting.
func (c *Collector) sources() map[string]*metrics.Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]*metrics.Source, len(c.caches))
	for name, s := range c.caches {
		all[name] = s
	}
	return all
}

// forget removes a cache that has been collected, unless another one has its name now.
func (c *Collector) forget(name string, s *metrics.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caches[name] == s {
		delete(c.caches, name)
	}
}

// collect sends the metrics of a cache, and returns false when it is gone.
func collect(name string, from *metrics.Source, out chan<- prometheus.Metric) bool {
	stats, sizing, ok := from.Read()
	if !ok {
		return false
	}
	for _, m := range shown {
		for _, s := range m.samples {
			value, labels := s.value(&stats, &sizing), append([]string{name}, s.labels...)
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		}
	}
	return true
}
