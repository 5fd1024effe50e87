package ringstatsviz

import (
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
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

// newTestSampler returns a sampler of statistics without ages.
func newTestSampler(update updater) *sampler {
	return newSampler(update, func(*ringcache.Sizing) {})
}

// fixed returns a sampler of a cache whose statistics are always s.
func fixed(s *ringcache.Stats) (*sampler, *clock) {
	sampler := newTestSampler(func(to *ringcache.Stats) bool {
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

// Ages are shown in seconds, once for each round.
func TestSampler_Ages(t *testing.T) {
	z, calls := ringcache.Sizing{SmallAge: 1500 * time.Millisecond}, 0
	s := newSampler(func(*ringcache.Stats) bool { return true }, func(to *ringcache.Sizing) {
		*to = z
		calls++
	})
	next := values(t, s)
	got := next()
	require.InDelta(t, 1.5, got["ages small"], 1e-9)
	require.Zero(t, got["ages main"])
	z.MainAge = time.Minute
	require.InDelta(t, 60, next()["ages main"], 1e-9)
	require.Equal(t, 3, calls)
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
	s := newTestSampler(func(*ringcache.Stats) bool {
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
		next = values(t, newSampler(updaterOf(c), sizingOf(c)))
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
	"EvictedEntries":   "the sum of the causes that are shown",
	"LoadsDropped":     "rare; the other adapters count them",
	"StaleHits":        "grow while loads fail, which is shown",
	"NegativeHits":     "part of the misses; the other adapters count them",
	"Collisions":       "rare and harmless",
	"Corruptions":      "for an alert, not for a plot",
	"LoadedEntries":    "grows where a snapshot is read, mostly before the page is there",
	"DiscardedBlocks":  "grows in Load alone, before the page is there",
	"RecoveredEntries": "grows in NewWithOptions alone, before the page is there",
	"RecoveredBytes":   "grows in NewWithOptions alone, before the page is there",
	"Packed":           "the other adapters have it",
	"LeftBehind":       "the other adapters have it",
	"PackedFrom":       "the other adapters have it",
	"PackedTo":         "the other adapters have it",
	"LeftOpaque":       "the other adapters have it",
	"LeftShort":        "the other adapters have it",
	"PackErrors":       "for an alert, not for a plot",
	"UnpackErrors":     "for an alert, not for a plot",
	"PackNanos":        "the other adapters have it",
	"ColdBytes":        "entries tell how full it is",
	"DiscardedRecords": "grows in NewWithOptions alone, before the page is there",
	"DiscardedFiles":   "grows in NewWithOptions alone, before the page is there",
}

// A new field is shown or has a reason not to be.
func TestPlots_CoverStats(t *testing.T) {
	for i := range reflect.TypeFor[ringcache.Stats]().NumField() {
		s := ringcache.Stats{GetCalls: 5000, Misses: 2000}
		sampler, clock := fixed(&s)
		next := values(t, sampler)
		s.GetCalls, s.Misses = 5002, 2001
		clock.at = clock.at.Add(time.Second)
		before := next()
		s.GetCalls, s.Misses = 5004, 2002
		field := reflect.ValueOf(&s).Elem().Field(i)
		require.True(t, field.CanUint(), "another kind of number: %v", field.Type())
		field.SetUint(field.Uint() + 1)
		clock.at = clock.at.Add(time.Second)
		name := reflect.TypeFor[ringcache.Stats]().Field(i).Name
		if leftOut[name] != "" {
			require.Equal(t, before, next(), "%s is said to be left out", name)
		} else {
			require.NotEqual(t, before, next(),
				"no plot shows Stats.%s: add it, or a reason to leftOut", name)
		}
	}
	for name := range leftOut {
		_, ok := reflect.TypeFor[ringcache.Stats]().FieldByName(name)
		require.True(t, ok, "there is no field %s", name)
	}
}
