// Package ringotel exports the statistics of caches of package
// [github.com/ringcache/ringcache] to OpenTelemetry.
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

// Keys of attributes.
const (
	// CacheName is on every measurement: the name that the cache was registered under.
	CacheName = attribute.Key("ringcache.cache.name")

	// LookupResult is on lookups: "hit" or "miss".
	LookupResult = attribute.Key("ringcache.lookup.result")

	// RefusalCause is on refusals: "too_large"; "no_memory", the operating system refused memory;
	// "too_short", the time to live was below 100 ms.
	RefusalCause = attribute.Key("ringcache.refusal.cause")

	// CompressedWhen is on compressed.size: "before" or "after" compression.
	CompressedWhen = attribute.Key("ringcache.compressed.when")

	// RestorationSource is on restorations and their discards: "snapshot", or "file", that of
	// [ringcache.Options]; discards of a whole file have "whole".
	RestorationSource = attribute.Key("ringcache.restoration.source")
)

// ErrInvalidName is returned by [Register] when the name is empty or not valid UTF-8 and
// therefore cannot be the value of an attribute. Test for it with [errors.Is].
var ErrInvalidName = errors.New("name must be UTF-8 and not empty")

// Register reports a cache to the readers of a provider until Unregister of the result is called.
// It returns [ErrInvalidName], wrapped, or an error of the provider, and panics if cache is nil.
//
// Each collection calls [ringcache.Cache.UpdateStats] once, which briefly locks every bucket, and
// delays no lookup. A closed cache is still reported, with its
// last counters and with gauges of 0 except for its limit.
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
	meter, s := provider.Meter(Scope), &shown{from: from}
	var all []metric.Observable
	for _, m := range metrics.All {
		made, err := instrumentOf(meter, m)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
		for _, v := range m.Samples {
			attributes := attributesOf(name, keyOf(m), v.Attribute)
			s.counts = append(s.counts, count{m.Prometheus, made, attributes, v.Value})
		}
	}
	for _, d := range metrics.Durations {
		made, err := counterOf(meter, d)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
		s.durations = append(s.durations, duration{made, attributesOf(name, "", ""), d.Value})
	}
	return meter.RegisterCallback(s.observe, all...)
}

// shown is a cache with its measurements.
type shown struct {
	from      *metrics.Source
	counts    []count
	durations []duration
}

type count struct {
	name       string // of Prometheus
	instrument metric.Int64Observable
	attributes []metric.ObserveOption
	value      func(s *ringcache.Stats) uint64
}

type duration struct {
	instrument metric.Float64Observable
	attributes []metric.ObserveOption
	value      func(s *ringcache.Stats) float64
}

// observe reports the measurements of the cache to a reader.
func (s *shown) observe(_ context.Context, to metric.Observer) error {
	stats, ok := s.from.Read()
	if !ok {
		return nil
	}
	for _, c := range s.counts {
		if !metrics.IsOf(&stats, c.name) {
			continue
		}
		to.ObserveInt64(c.instrument, int64(c.value(&stats)), c.attributes...)
	}
	for _, d := range s.durations {
		if stats.MaxBytesSize == 0 {
			break // a namespace has none
		}
		to.ObserveFloat64(d.instrument, d.value(&stats), d.attributes...)
	}
	return nil
}
