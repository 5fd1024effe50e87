package ringprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// metric is a metric of every cache, with one sample, or with one for each value of an extra label.
type metric struct {
	name    string
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	samples []sample
}

type sample struct {
	labels []string // the value of the extra label, if there is one
	value  func(s *ringcache.Stats) float64
}

// shown are all metrics of a cache.
var shown = allMetrics()

func allMetrics() (all []metric) {
	for _, m := range metrics.All {
		kind := prometheus.CounterValue
		if m.Gauge {
			kind = prometheus.GaugeValue
		}
		samples := make([]sample, len(m.Samples))
		for i, s := range m.Samples {
			if m.Attribute != "" {
				samples[i].labels = []string{s.Attribute}
			}
			samples[i].value = func(stats *ringcache.Stats) float64 {
				return float64(s.Value(stats))
			}
		}
		all = append(all, newMetric(kind, m.Prometheus, m.About, m.Label(), samples...))
	}
	for _, d := range metrics.Durations {
		all = append(all, newMetric(prometheus.CounterValue, d.Prometheus, d.About, "",
			sample{value: d.Value}))
	}
	return all
}

// newMetric returns a metric; label is empty if it has no extra label.
func newMetric(
	kind prometheus.ValueType, name, help, label string, samples ...sample,
) metric {
	labels := []string{"cache"}
	if label != "" {
		labels = append(labels, label)
	}
	return metric{name, prometheus.NewDesc("ringcache_"+name, help, labels, nil), kind, samples}
}
