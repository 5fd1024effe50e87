package ringotel

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/ringcache/ringcache"
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

// fixed is an updater of a cache whose statistics are always s.
func fixed(s *ringcache.Stats) updater {
	return func(to *ringcache.Stats) bool {
		*to = *s
		return true
	}
}

// register shows what update says, and no ages.
func register(
	provider metric.MeterProvider, name string, update updater,
) (metric.Registration, error) {
	none := func() (z ringcache.Sizing) { return z }
	return add(provider, name, &source{update: update, sizing: none})
}

// metrics returns what a reader collects, by name.
func metrics(t testing.TB, r sdk.Reader) map[string]metricdata.Metrics {
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
// common beginning. Ages are in thousandths.
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
	for name, m := range metrics(t, r) {
		if gauge, ok := m.Data.(metricdata.Gauge[float64]); ok {
			for _, point := range gauge.DataPoints {
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

// numbers calls fn with each number of a struct, and of those nested in it, by the names that
// lead to it: Policy.GhostHits.
func numbers(v reflect.Value, path string, fn func(name string, field reflect.Value)) {
	for i := range v.NumField() {
		name := path + v.Type().Field(i).Name
		if v.Field(i).Kind() == reflect.Struct {
			numbers(v.Field(i), name+".", fn)
		} else {
			fn(name, v.Field(i))
		}
	}
}

// setNumber gives a field of Stats a value, whatever kind of number it is.
func setNumber(t testing.TB, field reflect.Value, n int) {
	t.Helper()
	switch {
	case field.CanUint():
		field.SetUint(uint64(n))
	case field.CanInt():
		field.SetInt(int64(n))
	case field.CanFloat():
		field.SetFloat(float64(n))
	default:
		require.Fail(t, "no number", "%v", field.Type())
	}
}
