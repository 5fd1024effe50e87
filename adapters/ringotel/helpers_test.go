package ringotel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func newCache(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(floor)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func newProvider(t testing.TB, readers ...sdk.Reader) *sdk.MeterProvider {
	t.Helper()
	var options []sdk.Option
	for _, r := range readers {
		options = append(options, sdk.WithReader(r))
	}
	p := sdk.NewMeterProvider(options...)
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return p
}

// fixed returns a function that reads statistics which are always s.
func fixed(s *ringcache.Stats) func(to *ringcache.Stats) bool {
	return func(to *ringcache.Stats) bool {
		*to = *s
		return true
	}
}

// register shows what update says.
func register(
	provider metric.MeterProvider, name string, update func(s *ringcache.Stats) bool,
) (metric.Registration, error) {
	return add(provider, name, &metrics.Source{Update: update})
}

// collected returns what a reader collects, by name.
func collected(t testing.TB, r sdk.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, r.Collect(context.Background(), &data))
	all := map[string]metricdata.Metrics{}
	for _, scope := range data.ScopeMetrics {
		require.Equal(t, Scope, scope.Scope.Name)
		for _, m := range scope.Metrics {
			require.NotContains(t, all, m.Name, "two streams of one name")
			all[m.Name] = m
		}
	}
	return all
}

// values returns what a reader collects, by name and attributes: all but the keys'
// common beginning. Ages and durations are in thousandths.
func values(t testing.TB, r sdk.Reader) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	keyOf := func(name string, attributes attribute.Set) string {
		for _, a := range attributes.ToSlice() {
			name += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(a.Key), "ringcache."),
				a.Value.AsString())
		}
		return name
	}
	for name, m := range collected(t, r) {
		if gauge, ok := m.Data.(metricdata.Gauge[float64]); ok {
			for _, point := range gauge.DataPoints {
				all[keyOf(name, point.Attributes)] = int64(point.Value * 1000)
			}
			continue
		}
		if times, ok := m.Data.(metricdata.Sum[float64]); ok {
			for _, point := range times.DataPoints {
				all[keyOf(name, point.Attributes)] = int64(point.Value * 1000)
			}
			continue
		}
		for _, point := range sumOf(t, m).DataPoints {
			all[keyOf(name, point.Attributes)] = point.Value
		}
	}
	return all
}

func sumOf(t testing.TB, m metricdata.Metrics) metricdata.Sum[int64] {
	t.Helper()
	sum, ok := m.Data.(metricdata.Sum[int64])
	require.True(t, ok, "%s is %T", m.Name, m.Data)
	return sum
}
