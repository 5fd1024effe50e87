// Package ringprometheus exports the statistics of caches of package
// [github.com/ringcache/ringcache] to Prometheus.
//
//	caches := ringprometheus.NewCollector()
//	prometheus.MustRegister(caches)
//
//	pages := ringcache.New(256 << 20)
//	err := caches.Register("pages", pages)
//
// Each metric has the label cache, the name under which the cache was registered. The README lists
// all metrics, and describes a Grafana dashboard and alerting rules.
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
	// ErrNameTaken is returned when a cache already has that name.
	ErrNameTaken = errors.New("name is taken")

	// ErrInvalidName is returned when the name is empty or not valid UTF-8.
	ErrInvalidName = errors.New("name must be UTF-8 and not empty")
)

// Collector is a [prometheus.Collector] of the statistics of any number of caches, which may be
// registered and unregistered while it is scraped. It is safe for concurrent use.
//
// A scrape calls [ringcache.Cache.UpdateStats] once for each cache.
//
// A Collector does not keep its caches alive: once the last other reference to a cache is gone, the
// garbage collector frees it, and its name can be registered again.
type Collector struct {
	mu     sync.Mutex
	caches map[string]*metrics.Source
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector without caches.
func NewCollector() *Collector {
	return &Collector{caches: make(map[string]*metrics.Source)}
}

// Register exports a cache under a name from the next scrape on. If it returns an error,
// [ErrNameTaken] or [ErrInvalidName], it has changed nothing. It panics if cache is nil.
//
// A closed cache is still exported. To replace it with a new cache, call [Collector.Unregister]
// first.
func (c *Collector) Register(name string, cache *ringcache.Cache) error {
	if cache == nil {
		panic("ringprometheus: register cache: cache is nil")
	}
	if err := c.add(name, metrics.NewSource(cache)); err != nil {
		return fmt.Errorf("ringprometheus: register cache %q: %w", name, err)
	}
	return nil
}

// Unregister stops exporting the cache with that name, and reports whether there was one. A scrape
// in progress may still include it.
func (c *Collector) Unregister(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.caches[name]
	delete(c.caches, name)
	return ok
}

// Describe implements [prometheus.Collector]: it sends the descriptions of all metrics.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range shown {
		descs <- m.desc
	}
}

// Collect implements [prometheus.Collector]: it sends the metrics of all caches.
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
	stats, ok := from.Read()
	if !ok {
		return false
	}
	for _, m := range shown {
		if !m.IsOf(&stats) {
			continue
		}
		for _, s := range m.Samples {
			labels := []string{name}
			if m.Attribute != "" {
				labels = append(labels, s.Attribute)
			}
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, s.Value(&stats), labels...)
		}
	}
	return true
}
