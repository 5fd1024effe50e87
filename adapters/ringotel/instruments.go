package ringotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// prefix begins the names of instruments and attributes. Names and units follow the semantic
// conventions for metrics.
const prefix = "ringcache."

// instrumentOf returns the instrument of a meter for a metric, the same one each time. By the
// conventions, an amount that can be added up over caches and processes, such as bytes, is an
// up-down counter and not a gauge.
func instrumentOf(meter metric.Meter, m metrics.Metric) (metric.Int64Observable, error) {
	unit, about := metric.WithUnit(m.Unit), metric.WithDescription(m.About)
	if m.Gauge {
		return meter.Int64ObservableUpDownCounter(prefix+m.OTel, unit, about)
	}
	return meter.Int64ObservableCounter(prefix+m.OTel, unit, about)
}

// counterOf is instrumentOf for a duration.
func counterOf(meter metric.Meter, d metrics.Duration) (metric.Float64ObservableCounter, error) {
	return meter.Float64ObservableCounter(prefix+d.OTel,
		metric.WithUnit(d.Unit), metric.WithDescription(d.About))
}

// attributesOf returns the attributes of a measurement: the name of the cache, and, unless key is
// empty, another one.
func attributesOf(cache string, key attribute.Key, value string) []metric.ObserveOption {
	all := []attribute.KeyValue{CacheName.String(cache)}
	if key != "" {
		all = append(all, key.String(value))
	}
	return []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(all...))}
}

// keyOf returns the key of a metric's attribute, which is empty if there is none.
func keyOf(m metrics.Metric) attribute.Key {
	if m.Attribute == "" {
		return ""
	}
	return attribute.Key(prefix + m.Attribute)
}
