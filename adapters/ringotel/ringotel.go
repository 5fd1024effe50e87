// Package ringotel shows the statistics of caches of package
// [github.com/ringcache/ringcache] to OpenTelemetry.
//
//	pages := ringcache.New(256 << 20)
//	shown, err := ringotel.Register(otel.GetMeterProvider(), "pages", pages)
//	...
//	err = shown.Unregister()
//
// Each measurement has the attribute [CacheName]. The README lists all instruments.
package ringotel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ringcache/ringcache"
)

// Scope is the name of the instrumentation scope that all instruments belong to.
const Scope = "github.com/ringcache/ringcache/adapters/ringotel"

// Keys of attributes.
const (
	// CacheName is of every measurement: the name that the cache was registered under.
	CacheName = attribute.Key("ringcache.cache.name")

	// LookupResult is of lookups: "hit" or "miss".
	LookupResult = attribute.Key("ringcache.lookup.result")

	// EvictionCause is of evictions: "small", an entry left the small ring because it
	// had not been read in it; "main", it left the main ring; "cold", the cold part;
	// "crowd", the index had no place for it.
	EvictionCause = attribute.Key("ringcache.eviction.cause")

	// RefusalCause is of refusals: "too_large", "no_memory" where the operating system gave
	// none, "too_short" for a time to live, "closed" for a cache that is.
	RefusalCause = attribute.Key("ringcache.refusal.cause")

	// CompressedWhen is of compressed.size: "before" and "after" compression.
	CompressedWhen = attribute.Key("ringcache.compressed.when")

	// UncompressedReason is of uncompressed.values: "no_gain", compression would save too
	// little; "short", below 48 bytes; "queue_full", the compressor had no time.
	UncompressedReason = attribute.Key("ringcache.uncompressed.reason")

	// CompressorOperation is of compressor.errors: "compress" or "decompress".
	CompressorOperation = attribute.Key("ringcache.compressor.operation")

	// RingName is of what is told of each ring: "small" or "main".
	RingName = attribute.Key("ringcache.ring.name")

	// RestorationSource is of what was restored, and of what could not be: "snapshot",
	// or "file", that of [ringcache.Options].
	RestorationSource = attribute.Key("ringcache.restoration.source")
)

// ErrInvalidName is returned by [Register] when the name is empty or not UTF-8, and so cannot be
// the value of an attribute. Test for it with [errors.Is].
var ErrInvalidName = errors.New("name must be UTF-8 and not empty")

// Register shows a cache to the readers of a provider, until Unregister of the result is
// called. It returns an error that is [ErrInvalidName], or the provider's own, and panics if cache
// is nil.
//
// Each collection calls [ringcache.Cache.UpdateStats] and [ringcache.Cache.Sizing] once.
// Each takes each bucket's lock for a moment, and holds up no lookup. A closed cache is
// still shown, with the counters that it had and gauges of 0 but for its limit.
//
// Any number of caches may be registered, at any time. Their names must differ, since
// readers cannot tell apart what they get under one name. The registration does not keep
// the cache alive: when the last other reference is gone, the garbage collector takes
// it, and it is no longer shown.
func Register(
	provider metric.MeterProvider, name string, cache *ringcache.Cache,
) (metric.Registration, error) {
	if cache == nil {
		panic("ringotel: register cache: cache is nil")
	}
	r, err := add(provider, name, &source{update: updaterOf(cache), sizing: sizingOf(cache)})
	if err != nil {
		return nil, fmt.Errorf("ringotel: register cache %q: %w", name, err)
	}
	return r, nil
}

func add(provider metric.MeterProvider, name string, s *source) (metric.Registration, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, ErrInvalidName
	}
	meter := provider.Meter(Scope)
	var all []metric.Observable
	for _, i := range instruments {
		made, err := i.make(meter)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
		for _, v := range i.values {
			attributes := append([]attribute.KeyValue{CacheName.String(name)}, v.attributes...)
			s.samples = append(s.samples, sample{
				instrument: made,
				value:      v.of,
				attributes: []metric.ObserveOption{
					metric.WithAttributeSet(attribute.NewSet(attributes...)),
				},
			})
		}
	}
	for _, a := range ages {
		made, err := a.make(meter)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
		s.addAge(made, name, "small", a.small)
		s.addAge(made, name, "main", a.main)
	}
	return meter.RegisterCallback(s.observe, all...)
}

// addAge adds what is shown of a ring.
func (s *source) addAge(
	made metric.Float64ObservableGauge, name, ring string, value func(z *ringcache.Sizing) float64,
) {
	set := attribute.NewSet(CacheName.String(name), RingName.String(ring))
	s.ages = append(s.ages, ageSample{
		instrument: made,
		value:      value,
		attributes: []metric.ObserveOption{metric.WithAttributeSet(set)},
	})
}

// updater adds the statistics of a cache to s, and returns false when the cache is gone.
type updater func(s *ringcache.Stats) bool

func updaterOf(cache *ringcache.Cache) updater {
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

// sizingOf returns a function that tells whether the cache is too small; nothing when it
// is gone.
func sizingOf(cache *ringcache.Cache) func() ringcache.Sizing {
	ref := weak.Make(cache)
	return func() (z ringcache.Sizing) {
		if cache := ref.Value(); cache != nil {
			z = cache.Sizing()
		}
		return z
	}
}

// source is a cache, and what is shown of it.
type source struct {
	update updater
	sizing func() ringcache.Sizing
	ages   []ageSample

	samples []sample

	mu   sync.Mutex // of two readers
	hits uint64     // as last shown
}

type ageSample struct {
	instrument metric.Float64Observable
	attributes []metric.ObserveOption
	value      func(z *ringcache.Sizing) float64
}

type sample struct {
	instrument metric.Int64Observable
	attributes []metric.ObserveOption
	value      func(s *ringcache.Stats) uint64
}

// observe shows the cache to a reader.
//
// Hits, which are the lookups less the misses, are kept from falling: a lookup may be counted
// before it is known to be a miss.
func (s *source) observe(_ context.Context, to metric.Observer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stats ringcache.Stats
	if !s.update(&stats) {
		return nil
	}
	s.hits = max(s.hits, hits(&stats))
	stats.GetCalls = s.hits + stats.Misses
	for _, sm := range s.samples {
		to.ObserveInt64(sm.instrument, int64(sm.value(&stats)), sm.attributes...)
	}
	sizing := s.sizing()
	for _, a := range s.ages {
		to.ObserveFloat64(a.instrument, a.value(&sizing), a.attributes...)
	}
	return nil
}
