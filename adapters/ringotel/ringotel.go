// Package ringotel exports the statistics of [github.com/ringcache/ringcache] caches to
// OpenTelemetry.
//
//	pages := ringcache.New(256 << 20)
//	registration, err := ringotel.Register(otel.GetMeterProvider(), "pages", pages)
//	...
//	err = registration.Unregister()
//
// Each measurement has the attribute [CacheName]. The README lists all instruments.
package ringotel

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// Scope is the name of the instrumentation scope that all instruments belong to.
const Scope = "github.com/ringcache/ringcache/adapters/ringotel"

// CacheName is the key of the attribute that every measurement has: the name that the cache was
// registered under. The README lists the other attributes.
const CacheName = attribute.Key("ringcache.cache.name")

// ErrInvalidName is returned by [Register] when the name is empty or not valid UTF-8. Test for it
// with [errors.Is].
var ErrInvalidName = errors.New("name must be UTF-8 and not empty")

// Register reports a cache to the readers of a provider until Unregister of the result is called.
// It returns [ErrInvalidName], wrapped, or an error of the provider, and panics if cache is nil.
//
// Each collection calls [ringcache.Cache.UpdateStats] once. A closed cache is still reported.
//
// Any number of caches may be registered, at any time. Their names must differ, since readers
// cannot distinguish measurements with the same name. The registration does not keep the cache
// alive: once the last other reference is gone, the garbage collector frees it, and it is no longer
// reported.
func Register(
	provider metric.MeterProvider, name string, cache *ringcache.Cache,
) (metric.Registration, error) {
	if cache == nil {
		panic("ringotel: register cache: cache is nil")
	}
	r, err := add(provider, name, metrics.NewSource(cache))
	if err != nil {
		return nil, fmt.Errorf("ringotel: register cache %q: %w", name, err)
	}
	return r, nil
}

func add(
	provider metric.MeterProvider, name string, from *metrics.Source,
) (metric.Registration, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, ErrInvalidName
	}
	meter := provider.Meter(Scope)
	var measurements []measurement
	var instruments []metric.Observable
	for _, m := range metrics.All {
		instrument, err := instrumentOf(meter, m)
		if err != nil {
			return nil, err
		}
		instruments = append(instruments, instrument)
		for _, s := range m.Samples {
			measurements = append(measurements,
				measurement{m, instrument, attributesOf(name, m, s), s.Value})
		}
	}
	observe := func(_ context.Context, to metric.Observer) error {
		stats, ok := from.Read()
		if !ok {
			return nil
		}
		for _, m := range measurements {
			if m.of.IsOf(&stats) {
				to.ObserveFloat64(m.instrument, m.value(&stats), m.attributes)
			}
		}
		return nil
	}
	return meter.RegisterCallback(observe, instruments...)
}

// measurement is a sample of a cache with its instrument.
type measurement struct {
	of         metrics.Metric
	instrument metric.Float64Observable
	attributes metric.ObserveOption
	value      func(s *ringcache.Stats) float64
}
