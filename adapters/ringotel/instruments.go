package ringotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// prefix begins the names of instruments and attributes. Names and units follow the semantic
// conventions for metrics.
const prefix = "ringcache."

// instrumentOf returns the instrument of a meter for a metric, the same one each time.
func instrumentOf(meter metric.Meter, m metrics.Metric) (metric.Float64Observable, error) {
	name, unit, about := prefix+m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.About)
	if m.Kind == metrics.Counter {
		return meter.Float64ObservableCounter(name, unit, about)
	}
	// By the conventions, what can be added up over caches and processes is no gauge.
	return meter.Float64ObservableUpDownCounter(name, unit, about)
}

// attributesOf returns the attributes of a sample of a cache.
func attributesOf(cache string, m metrics.Metric, s metrics.Sample) metric.ObserveOption {
	all := []attribute.KeyValue{CacheName.String(cache)}
	if m.Attribute != "" {
		all = append(all, attribute.String(prefix+m.Attribute, s.Attribute))
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}
