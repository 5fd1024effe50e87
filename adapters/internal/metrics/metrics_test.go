package metrics_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// leftOut are the fields of Stats without a metric, each with the reason.
var leftOut = map[string]string{}

// numbers calls fn with each number of a struct, and of those nested in it, by the names that
// lead to it: Loads.Started.
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

// values returns the values of all metrics of a source.
func values(t *testing.T, source *metrics.Source) (all []float64) {
	t.Helper()
	stats, ok := source.Read()
	require.True(t, ok)
	for _, m := range metrics.All {
		for _, s := range m.Samples {
			all = append(all, float64(s.Value(&stats)))
		}
	}
	for _, d := range metrics.Durations {
		all = append(all, d.Value(&stats))
	}
	return all
}

// A new field of Stats has a metric, or a reason to have none.
func TestAll_CoverStats(t *testing.T) {
	var s ringcache.Stats
	source := &metrics.Source{
		Update: func(to *ringcache.Stats) bool { *to = s; return true },
	}
	i, there := 0, map[string]bool{}
	check := func(name string, field reflect.Value) {
		before := values(t, source)
		i++
		if field.CanUint() {
			field.SetUint(uint64(1000 + i))
		} else {
			field.SetInt(int64(time.Hour) + int64(i))
		}
		there[name] = true
		if leftOut[name] != "" {
			require.Equal(t, before, values(t, source), "%s is said to be left out", name)
			return
		}
		require.NotEqual(t, before, values(t, source),
			"no metric shows %s: add one, or a reason to leftOut", name)
	}
	numbers(reflect.ValueOf(&s).Elem(), "", check)
	require.True(t, there["Loads.Started"], "nested structs were left out")
	for name := range leftOut {
		require.True(t, there[name], "there is no field %s", name)
	}
}

func TestAll_NamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	add := func(name string) {
		require.False(t, seen[name], name)
		seen[name] = true
	}
	for _, m := range metrics.All {
		add(m.Prometheus)
		add("otel " + m.OTel)
		for _, s := range m.Samples {
			require.Equal(t, m.Attribute == "", s.Attribute == "", m.OTel)
		}
	}
	for _, d := range metrics.Durations {
		add(d.Prometheus)
		add("otel " + d.OTel)
	}
}
