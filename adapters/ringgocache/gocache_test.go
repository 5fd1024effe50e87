package ringgocache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eko/gocache/lib/v4/cache"
	"github.com/eko/gocache/lib/v4/marshaler"
	"github.com/eko/gocache/lib/v4/metrics"
	"github.com/eko/gocache/lib/v4/store"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// What gocache builds on stores works with this one.

// Keys of any type, and values of both.
func TestCache(t *testing.T) {
	bytes, text := cache.New[[]byte](newStore(t)), cache.New[string](newStore(t))
	for _, key := range []any{"k", 1, struct{ A, B string }{"a", "b"}} {
		_, err := bytes.Get(ctx, key)
		requireNotFound(t, err)
		require.NoError(t, bytes.Set(ctx, key, []byte("v"), withTags("tag")))
		require.NoError(t, text.Set(ctx, key, "text", expireAfter(time.Hour)))
		b, err := bytes.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, "v", string(b))
		s, ttl, err := text.GetWithTTL(ctx, key)
		require.NoError(t, err)
		require.Equal(t, "text", s)
		require.Greater(t, ttl, 59*time.Minute)
	}
	require.NoError(t, bytes.Invalidate(ctx, store.WithInvalidateTags([]string{"tag"})))
	_, err := bytes.Get(ctx, 1)
	requireNotFound(t, err)
	require.NoError(t, text.Delete(ctx, "k"))
	require.NoError(t, text.Clear(ctx))
	_, err = text.Get(ctx, 1)
	requireNotFound(t, err)
	stats := bytes.GetCodec().GetStats()
	require.Equal(t, []int{3, 4, 3, 1}, []int{stats.Hits, stats.Miss, stats.SetSuccess,
		stats.InvalidateSuccess})
}

func TestMarshaler(t *testing.T) {
	type product struct {
		Name  string
		Price int
	}
	m := marshaler.New(cache.New[any](newStore(t)))
	want := product{"globe", 4900}
	require.NoError(t, m.Set(ctx, "k", want, withTags("products")))
	got, err := m.Get(ctx, "k", new(product))
	require.NoError(t, err)
	require.Equal(t, &want, got)
	require.NoError(t, m.Invalidate(ctx, store.WithInvalidateTags([]string{"products"})))
	_, err = m.Get(ctx, "k", new(product))
	requireNotFound(t, err)
}

// The first cache of a chain gets what the second one has, with the time that is left.
func TestChain(t *testing.T) {
	near, far := cache.New[[]byte](newStore(t)), cache.New[[]byte](newStore(t))
	chain := cache.NewChain(near, far)
	require.NoError(t, far.Set(ctx, "k", []byte("v"), expireAfter(time.Hour)))
	got, err := chain.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got))
	require.NoError(t, chain.Close()) // it has set the value by then
	got, ttl, err := near.GetWithTTL(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got))
	require.Greater(t, ttl, 59*time.Minute)

	require.NoError(t, chain.Set(ctx, "both", []byte("v"), withTags("tag")))
	require.NoError(t, chain.Invalidate(ctx, store.WithInvalidateTags([]string{"tag"})))
	_, err = chain.Get(ctx, "both")
	requireNotFound(t, err)
}

func TestLoadable(t *testing.T) {
	loads := 0
	inner := cache.New[[]byte](newStore(t))
	load := func(context.Context, any) ([]byte, []store.Option, error) {
		loads++
		if loads > 1 {
			return nil, nil, errors.New("loaded twice")
		}
		return []byte("v"), []store.Option{withTags("tag")}, nil
	}
	loadable := cache.NewLoadable(load, inner)
	for range 3 {
		got, err := loadable.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, "v", string(got))
	}
	require.NoError(t, loadable.Close())
	require.NoError(t, inner.Invalidate(ctx, store.WithInvalidateTags([]string{"tag"})))
	_, err := inner.Get(ctx, "k")
	requireNotFound(t, err)
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.NewPrometheus("service", metrics.WithRegisterer(registry))
	c := cache.NewMetric(m, cache.New[[]byte](newStore(t)))
	require.NoError(t, c.Set(ctx, "k", []byte("v")))
	_, err := c.Get(ctx, "k")
	require.NoError(t, err)
	_, err = c.Get(ctx, "none")
	requireNotFound(t, err)
	require.Eventually(t, func() bool {
		got := gauges(t, registry)
		return got["hit_count"] == 1 && got["miss_count"] == 1 && got["set_success"] == 1
	}, 10*time.Second, time.Millisecond)
}

// gauges returns the metrics of the store of this package.
func gauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["store"] == "ringcache" {
				values[labels["metric"]] = metric.GetGauge().GetValue()
			}
		}
	}
	return values
}
