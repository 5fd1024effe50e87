package metrics_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// leftOut are the fields of Stats without a metric, each with the reason.
var leftOut = map[string]string{
	"EvictedEntries": "the sum of evicted_entries_total over its causes",
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

// values returns the values of all metrics of a source.
func values(t *testing.T, source *metrics.Source) (all []float64) {
	t.Helper()
	figures, ok := source.Read()
	require.True(t, ok)
	for _, m := range metrics.All {
		for _, s := range m.Samples {
			all = append(all, s.Value(&figures))
		}
	}
	return all
}

// Each field of Stats and Sizing has a metric, or a reason to have none.
func TestAll_CoverStatsAndSizing(t *testing.T) {
	var f metrics.Figures
	source := &metrics.Source{Update: func(to *metrics.Figures) bool { *to = f; return true }}
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
	numbers(reflect.ValueOf(&f.Stats).Elem(), "", check)
	numbers(reflect.ValueOf(&f.Sizing).Elem(), "Sizing.", check)
	require.True(t, there["Policy.GhostHits"], "nested structs were left out")
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
}
