package ringstatsviz

import (
	"strings"

	"github.com/arl/statsviz"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// plot is one of the plots of every cache.
type plot struct {
	name    string // one word
	title   string
	suffix  string   // unit of the axis, shown after prefixes such as M
	format  string   // of a value under the mouse
	metrics []string // by their OpenTelemetry names: counters are shown as rates
}

// plots are the plots of a cache. The one without metrics shows the hit ratio.
var plots = []plot{
	{"ratio", "hit ratio", "%", "%{y:.1f} %", nil},
	{"operations", "operations per second", "", "%{y:.4s}/s",
		[]string{"lookups", "sets", "refusals", "deletes", "loads", "load.errors"}},
	{"memory", "memory", "B", "%{y:.4s}B",
		[]string{"memory.limit", "memory.effective_limit", "memory.usage", "entry.size",
			"dead.usage", "index.usage"}},
	{"evictions", "evictions per second", "", "%{y:.4s}/s",
		[]string{"evictions", "eviction.misses", "expirations", "cold.hits"}},
	{"bytes", "bytes evicted per second", "B/s", "%{y:.4s}B/s", []string{"eviction.size"}},
	{"entries", "entries", "", "%{y:.4s}", []string{"entry.count", "cold.count"}},
}

// config returns the plot of a cache.
func (p plot) config(cache string, s *sampler) statsviz.TimeSeriesPlotConfig {
	c := statsviz.TimeSeriesPlotConfig{
		Name:            "ringcache " + cache + " " + p.name, // ringcache.js looks for the first word
		Title:           cache + ": " + p.title,
		YAxisTickSuffix: p.suffix,
	}
	add := func(name string, value func() float64) {
		c.Series = append(c.Series, statsviz.TimeSeries{
			Name: name, Unitfmt: p.format, HoverOn: statsviz.HoverOnPoints, GetValue: s.series(value),
		})
	}
	if p.metrics == nil {
		c.InfoText = "The fraction of the lookups since the last update that found their key."
		add(p.title, func() float64 { return 100 * s.ratio })
	}
	var about []string
	for _, m := range metrics.Named(p.metrics...) {
		about = append(about, m.About)
		for _, sample := range m.Samples {
			add(m.Title(sample), s.valueOf(m, sample))
		}
	}
	if len(about) > 0 {
		c.InfoText = strings.Join(about, " ")
	}
	return c
}
