package ringstatsviz

import (
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

const floor = 32 << 20

func newCache(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(floor)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// clock goes on when it is told.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// fixed returns a sampler of a cache whose statistics are always s.
func fixed(s *ringcache.Stats) (*sampler, *clock) {
	sampler := newSampler(func(to *ringcache.Stats) bool {
		*to = *s
		return true
	})
	c := &clock{sampler.at}
	sampler.now = c.now
	return sampler, c
}

// values asks for all series of all plots, as statsviz does it.
func values(t testing.TB, s *sampler) func() map[string]float64 {
	asked := map[string]func() float64{}
	var names []string
	for _, p := range plots {
		for _, line := range p.config("pages", s).Series {
			name := p.name + " " + line.Name
			require.NotContains(t, asked, name)
			asked[name], names = line.GetValue, append(names, name)
		}
	}
	return func() map[string]float64 {
		all := map[string]float64{}
		for _, name := range names {
			all[name] = asked[name]()
			require.False(t, math.IsNaN(all[name]) || math.IsInf(all[name], 0), name)
		}
		return all
	}
}

func TestSampler_RatesAndLevels(t *testing.T) {
	s := ringcache.Stats{GetCalls: 100, Misses: 50, SetCalls: 1000, EntriesCount: 7}
	sampler, clock := fixed(&s)
	next := values(t, sampler)

	s.GetCalls, s.Misses, s.SetCalls, s.EntriesCount = 140, 60, 1500, 9
	clock.at = clock.at.Add(2 * time.Second)
	got := next()
	require.InDelta(t, 75, got["ratio hit ratio"], 1e-9)
	require.InDelta(t, 15, got["operations hits"], 1e-9)
	require.InDelta(t, 5, got["operations misses"], 1e-9)
	require.InDelta(t, 250, got["operations sets"], 1e-9)
	require.InDelta(t, 9, got["entries entries"], 0)

	clock.at = clock.at.Add(time.Second)
	got = next()
	require.InDelta(t, 75, got["ratio hit ratio"], 1e-9, "the last one while there are no lookups")
	require.Zero(t, got["operations hits"])
	require.Zero(t, got["operations sets"])
}

// A lookup turns out to be a miss.
func TestSampler_HitsThatFall(t *testing.T) {
	s := ringcache.Stats{GetCalls: 10, Misses: 4}
	sampler, clock := fixed(&s)
	next := values(t, sampler)
	s.GetCalls, s.Misses = 10, 5
	clock.at = clock.at.Add(time.Second)
	got := next()
	require.Zero(t, got["operations hits"])
	require.InDelta(t, 1, got["operations misses"], 1e-9)
	s.GetCalls, s.Misses = 11, 12 // not of the same instant
	clock.at = clock.at.Add(time.Second)
	require.Zero(t, next()["operations hits"])
}

// What is no number would end the page's updates.
func TestSampler_NoTimeHasPassed(t *testing.T) {
	s := ringcache.Stats{GetCalls: 10}
	sampler, _ := fixed(&s)
	next := values(t, sampler)
	s.GetCalls, s.SetCalls = 20, 5
	require.Zero(t, next()["operations sets"])
}

func TestSampler_OneUpdateForEachRound(t *testing.T) {
	calls := 0
	s := newSampler(func(*ringcache.Stats) bool {
		calls++
		return true
	})
	next := values(t, s)
	for n := range 3 {
		require.Equal(t, n+1, calls)
		next()
	}
}

// A plot must not keep a cache, and stays where it is when the cache has gone.
func TestSampler_LetsTheCacheGo(t *testing.T) {
	var next func() map[string]float64
	gone := make(chan struct{})
	func() {
		c := ringcache.New(floor)
		require.NoError(t, c.Set([]byte("key"), nil))
		runtime.AddCleanup(c, func(struct{}) { close(gone) }, struct{}{})
		next = values(t, newSampler(metrics.Updater(c)))
		runtime.KeepAlive(c)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		require.InDelta(t, 1, next()["entries entries"], 0)
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, 10*time.Second, 10*time.Millisecond)
	require.InDelta(t, 1, next()["entries entries"], 0)
}

// leftOut are the fields of Stats that no plot shows, each with the reason.
var leftOut = map[string]string{
	"Loads.Dropped":            "rare; the other adapters count them",
	"Loads.StaleHits":          "grow while loads fail, which is shown",
	"Loads.NegativeHits":       "part of the misses; the other adapters count them",
	"Collisions":               "rare and harmless",
	"Corruptions":              "for an alert, not for a plot",
	"RestoredEntries":          "grows when a snapshot is read, before the page is there",
	"File.RecoveredEntries":    "grows in NewWithOptions alone, before the page is there",
	"File.DiscardedRecords":    "grows in NewWithOptions alone, before the page is there",
	"File.DiscardedFiles":      "grows in NewWithOptions alone, before the page is there",
	"Compression.Compressed":   "the other adapters have it",
	"Compression.BytesBefore":  "the other adapters have it",
	"Compression.BytesAfter":   "the other adapters have it",
	"Compression.Errors":       "for an alert, not for a plot",
	"Compression.CompressTime": "the other adapters have it",
}

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

// A new field is shown or has a reason not to be.
func TestPlots_CoverStats(t *testing.T) {
	there := map[string]bool{}
	numbers(reflect.ValueOf(new(ringcache.Stats)).Elem(), "", func(name string, _ reflect.Value) {
		there[name] = true
		s := ringcache.Stats{GetCalls: 5000, Misses: 2000}
		sampler, clock := fixed(&s)
		next := values(t, sampler)
		s.GetCalls, s.Misses = 5002, 2001
		clock.at = clock.at.Add(time.Second)
		before := next()
		s.GetCalls, s.Misses = 5004, 2002
		numbers(reflect.ValueOf(&s).Elem(), "", func(of string, field reflect.Value) {
			if of == name {
				field.Set(reflect.ValueOf(asUint(field) + 1).Convert(field.Type()))
			}
		})
		clock.at = clock.at.Add(time.Second)
		if leftOut[name] != "" {
			require.Equal(t, before, next(), "%s is said to be left out", name)
		} else {
			require.NotEqual(t, before, next(),
				"no plot shows Stats.%s: add it, or a reason to leftOut", name)
		}
	})
	require.True(t, there["Loads.Started"], "nested structs were left out")
	for name := range leftOut {
		require.True(t, there[name], "there is no field %s", name)
	}
}

// asUint returns a counter, a gauge or a duration.
func asUint(field reflect.Value) uint64 {
	if field.CanInt() {
		return uint64(field.Int())
	}
	return field.Uint()
}
