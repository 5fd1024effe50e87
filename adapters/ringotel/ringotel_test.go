package ringotel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
	"github.com/ringcache/ringcache/adapters/internal/metricstest"
)

const floor = 32 << 20

func TestRegister_ShowsCaches(t *testing.T) {
	reader, pages := sdk.NewManualReader(), newCache(t)
	provider := newProvider(t, reader)
	_, err := Register(provider, "pages", pages)
	require.NoError(t, err)
	_, err = Register(provider, "users", newCache(t))
	require.NoError(t, err)
	require.NoError(t, pages.Set([]byte("key"), []byte("value")))
	require.True(t, pages.Has([]byte("key")))
	require.False(t, pages.Has([]byte("other")))
	require.False(t, pages.Has([]byte("third")))

	got := values(t, reader)
	for key, want := range map[string]int64{
		"ringcache.lookups cache.name=pages lookup.result=hit":  1,
		"ringcache.lookups cache.name=pages lookup.result=miss": 2,
		"ringcache.lookups cache.name=users lookup.result=hit":  0,
		"ringcache.sets cache.name=pages":                       1,
		"ringcache.entry.count cache.name=pages":                1,
		"ringcache.entry.count cache.name=users":                0,
		"ringcache.entry.size cache.name=pages":                 11,
		"ringcache.memory.limit cache.name=users":               floor,
	} {
		require.Contains(t, got, key)
		require.Equal(t, want, got[key], key)
	}
}

// Every field is shown under the right name.
func TestRegister_Values(t *testing.T) {
	s := metricstest.Stats()
	reader := sdk.NewManualReader()
	_, err := add(newProvider(t, reader), "pages", &metrics.Source{Update: fixed(&s)})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{
		"ringcache.lookups cache.name=pages lookup.result=hit":                     96,
		"ringcache.lookups cache.name=pages lookup.result=miss":                    7,
		"ringcache.sets cache.name=pages":                                          2,
		"ringcache.deletes cache.name=pages":                                       3,
		"ringcache.loads cache.name=pages":                                         4,
		"ringcache.load.errors cache.name=pages":                                   5,
		"ringcache.load.drops cache.name=pages":                                    6,
		"ringcache.stale.hits cache.name=pages":                                    33,
		"ringcache.negative.hits cache.name=pages":                                 54,
		"ringcache.evictions cache.name=pages":                                     33,
		"ringcache.cold.hits cache.name=pages":                                     35,
		"ringcache.compressed.values cache.name=pages":                             36,
		"ringcache.compressed.size cache.name=pages compressed.when=before":        37,
		"ringcache.compressed.size cache.name=pages compressed.when=after":         38,
		"ringcache.compressor.errors cache.name=pages":                             42,
		"ringcache.cold.count cache.name=pages":                                    45,
		"ringcache.eviction.size cache.name=pages":                                 10,
		"ringcache.expirations cache.name=pages":                                   14,
		"ringcache.eviction.misses cache.name=pages":                               29,
		"ringcache.hash.collisions cache.name=pages":                               8,
		"ringcache.corruptions cache.name=pages":                                   9,
		"ringcache.restorations cache.name=pages restoration.source=snapshot":      24,
		"ringcache.restorations cache.name=pages restoration.source=file":          26,
		"ringcache.restoration.discards cache.name=pages restoration.source=file":  28,
		"ringcache.restoration.discards cache.name=pages restoration.source=whole": 90,
		"ringcache.entry.count cache.name=pages":                                   19,
		"ringcache.entry.size cache.name=pages":                                    20,
		"ringcache.memory.usage cache.name=pages":                                  22,
		"ringcache.dead.usage cache.name=pages":                                    53,
		"ringcache.index.usage cache.name=pages":                                   23,
		"ringcache.memory.limit cache.name=pages":                                  21,
		"ringcache.memory.effective_limit cache.name=pages":                        51,
		"ringcache.refusals cache.name=pages refusal.cause=too_large":              47,
		"ringcache.refusals cache.name=pages refusal.cause=no_memory":              48,
		"ringcache.refusals cache.name=pages refusal.cause=too_short":              49,
		"ringcache.compressor.time cache.name=pages":                               44_000,
	}, values(t, reader))
}

// What the semantic conventions say of names, units and attributes:
// https://opentelemetry.io/docs/specs/semconv/general/metrics/
func TestInstruments_FollowTheConventions(t *testing.T) {
	reader := sdk.NewManualReader()
	_, err := Register(newProvider(t, reader), "pages", newCache(t))
	require.NoError(t, err)
	all := collected(t, reader)
	require.Len(t, all, len(metrics.All)+len(metrics.Durations))

	name := regexp.MustCompile(`^ringcache(\.[a-z]+(_[a-z]+)*)+$`)
	unit := regexp.MustCompile(`^(By|s|\{[a-z]+\})$`)
	inName := regexp.MustCompile(`\b(bytes?|seconds?|total)\b`)
	for _, m := range all {
		require.Regexp(t, name, m.Name)
		require.Regexp(t, unit, m.Unit, m.Name)
		require.NotRegexp(t, inName, m.Name, "the unit and the kind tell this")
		require.Regexp(t, `^[A-Z].*\.$`, m.Description, m.Name)
		for other := range all {
			require.False(t, strings.HasPrefix(other, m.Name+"."), "%s is a namespace", m.Name)
		}
		if gauge, ok := m.Data.(metricdata.Gauge[float64]); ok {
			require.Len(t, gauge.DataPoints, 2, "a value for each ring")
			continue
		}
		if times, ok := m.Data.(metricdata.Sum[float64]); ok {
			require.True(t, times.IsMonotonic, m.Name)
			require.Equal(t, "s", m.Unit, m.Name)
			continue
		}
		sum := sumOf(t, m)
		require.Equal(t, metricdata.CumulativeTemporality, sum.Temporality)
		plural := strings.HasSuffix(m.Name, "s")
		if m.Unit != "By" {
			require.Equal(t, sum.IsMonotonic, plural, "%s: counters are plural, others not", m.Name)
		}
		for _, point := range sum.DataPoints {
			cache, ok := point.Attributes.Value(CacheName)
			require.True(t, ok, m.Name)
			require.Equal(t, "pages", cache.AsString())
			for _, a := range point.Attributes.ToSlice() {
				require.Regexp(t, name, string(a.Key))
				require.NotContains(t, all, string(a.Key), "an attribute and an instrument")
			}
		}
	}
}

// The README lists exactly the instruments that there are, with their units.
func TestInstruments_Readme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var want, got []string
	for _, m := range metrics.All {
		want = append(want, prefix+m.OTel+" "+m.Unit)
	}
	for _, d := range metrics.Durations {
		want = append(want, prefix+d.OTel+" "+d.Unit)
	}
	row := regexp.MustCompile(
		"(?m)^\\| `(ringcache\\.[a-z._]+)` \\| `(.+?)` \\| .*(?:counter|gauge) \\|")
	for _, m := range row.FindAllSubmatch(text, -1) {
		got = append(got, string(m[1])+" "+string(m[2]))
	}
	require.Equal(t, want, got)
}

func TestRegister_Errors(t *testing.T) {
	reader, pages := sdk.NewManualReader(), newCache(t)
	provider := newProvider(t, reader)
	for name, want := range map[string]error{"": ErrInvalidName, "\xff": ErrInvalidName} {
		_, err := Register(provider, name, pages)
		require.ErrorIs(t, err, want)
	}
	_, err := Register(provider, "", pages)
	require.EqualError(t, err, `ringotel: register cache "": name must be UTF-8 and not empty`)
	require.Empty(t, values(t, reader))
}

func TestRegister_NilCachePanics(t *testing.T) {
	reader := sdk.NewManualReader()
	provider := newProvider(t, reader)
	require.PanicsWithValue(t, "ringotel: register cache: cache is nil",
		func() { _, _ = Register(provider, "pages", nil) })
	require.Empty(t, values(t, reader))
}

var errRefused = errors.New("refused")

// refusing is a provider whose meter makes no counters.
type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Int64ObservableCounter(
	string, ...metric.Int64ObservableCounterOption,
) (metric.Int64ObservableCounter, error) {
	return nil, errRefused
}

func TestRegister_ErrorOfTheProvider(t *testing.T) {
	_, err := Register(refusing{}, "pages", newCache(t))
	require.ErrorIs(t, err, errRefused)
}

func TestUnregister(t *testing.T) {
	reader, pages := sdk.NewManualReader(), newCache(t)
	provider := newProvider(t, reader)
	first, err := Register(provider, "pages", pages)
	require.NoError(t, err)
	_, err = Register(provider, "users", newCache(t))
	require.NoError(t, err)
	require.Len(t, values(t, reader), 2*sampleCount())
	require.NoError(t, first.Unregister())
	left := values(t, reader)
	require.Len(t, left, sampleCount())
	for key := range left {
		require.Contains(t, key, "cache.name=users")
	}
	require.NoError(t, first.Unregister(), "twice does no harm")
	_, err = Register(provider, "pages", pages)
	require.NoError(t, err)
	require.Len(t, values(t, reader), 2*sampleCount())
}

// sampleCount is how many measurements there are of a cache.
func sampleCount() (n int) {
	for _, m := range metrics.All {
		n += len(m.Samples)
	}
	return n + len(metrics.Durations)
}

func TestRegister_OneUpdateForEachCollection(t *testing.T) {
	reader, calls := sdk.NewManualReader(), 0
	_, err := register(newProvider(t, reader), "pages", func(*ringcache.Stats) bool {
		calls++
		return true
	})
	require.NoError(t, err)
	require.Zero(t, calls)
	for n := range 3 {
		collected(t, reader)
		require.Equal(t, n+1, calls)
	}
}

// Amounts fall, and counters do not, even where those of the cache do: to a reader of
// totals and to one of differences.
func TestRegister_CountersNeverFall(t *testing.T) {
	var s ringcache.Stats
	totals := sdk.NewManualReader()
	changes := sdk.NewManualReader(sdk.WithTemporalitySelector(
		func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }))
	_, err := register(newProvider(t, totals, changes), "pages", fixed(&s))
	require.NoError(t, err)
	const (
		hit   = "ringcache.lookups cache.name=pages lookup.result=hit"
		miss  = "ringcache.lookups cache.name=pages lookup.result=miss"
		count = "ringcache.entry.count cache.name=pages"
	)
	for _, step := range []struct{ gets, misses, entries, hits, newHits uint64 }{
		{gets: 10, misses: 4, entries: 7, hits: 6, newHits: 6},
		{gets: 10, misses: 5, entries: 6, hits: 6},  // a lookup has turned out to be a miss
		{gets: 11, misses: 12, entries: 0, hits: 6}, // not of one instant
		{gets: 30, misses: 20, entries: 9, hits: 10, newHits: 4},
	} {
		s.GetCalls, s.Misses, s.EntriesCount = step.gets, step.misses, step.entries
		got := values(t, totals)
		require.EqualValues(t, step.hits, got[hit])
		require.EqualValues(t, step.misses, got[miss])
		require.EqualValues(t, step.entries, got[count])
		require.EqualValues(t, step.newHits, values(t, changes)[hit])
	}
}

// What is dropped without Close and Unregister must not stay because it is shown.
func TestRegister_LetsTheCacheGo(t *testing.T) {
	reader := sdk.NewManualReader()
	provider := newProvider(t, reader)
	func() {
		pages := ringcache.New(floor)
		_, err := Register(provider, "pages", pages)
		require.NoError(t, err)
		runtime.GC()
		require.NotEmpty(t, values(t, reader), "collected while it was in use")
		runtime.KeepAlive(pages)
	}()
	for range 100 {
		if runtime.GC(); len(values(t, reader)) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(t, "the cache is still there after 100 collections")
}

// Caches come, go and work while two readers collect.
func TestRegister_Concurrent(t *testing.T) {
	readers := []sdk.Reader{sdk.NewManualReader(), sdk.NewManualReader()}
	provider, pages := newProvider(t, readers...), newCache(t)
	_, err := Register(provider, "always", pages)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i, reader := range readers {
		wg.Go(func() {
			for n := range 50 {
				r, err := Register(provider, fmt.Sprint("pages ", i), pages)
				if assert.NoError(t, err) {
					assert.NoError(t, pages.Set([]byte{byte(n)}, []byte("value")))
					assert.NoError(t, r.Unregister())
				}
			}
		})
		wg.Go(func() {
			for range 50 {
				var data metricdata.ResourceMetrics
				assert.NoError(t, reader.Collect(context.Background(), &data))
			}
		})
	}
	wg.Wait()
	require.Len(t, values(t, readers[0]), sampleCount())
}
