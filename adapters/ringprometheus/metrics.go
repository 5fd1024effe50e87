package ringprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// metric is a metric of every cache.
type metric struct {
	metrics.Metric
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// shown are all metrics of a cache.
var shown = allMetrics()

func allMetrics() (all []metric) {
	for _, m := range metrics.All {
		kind, labels := prometheus.GaugeValue, []string{"cache"}
		if m.Kind == metrics.Counter {
			kind = prometheus.CounterValue
		}
		if m.Attribute != "" {
			labels = append(labels, m.Label())
		}
		desc := prometheus.NewDesc("ringcache_"+m.Prometheus, m.About, labels, nil)
		all = append(all, metric{m, desc, kind})
	}
	return all
}
