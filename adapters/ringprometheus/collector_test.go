package ringprometheus

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestCollector_ShowsCaches(t *testing.T) {
	caches, pages := NewCollector(), newCache(t)
	require.NoError(t, caches.Register("pages", pages))
	require.NoError(t, caches.Register("users", newCache(t)))
	require.NoError(t, pages.Set([]byte("key"), []byte("value")))
	require.True(t, pages.Has([]byte("key")))
	require.False(t, pages.Has([]byte("other")))
	require.False(t, pages.Has([]byte("third")))
	pages.Del([]byte("other"))

	want := `
# HELP ringcache_deletes_total Calls that delete a key.
# TYPE ringcache_deletes_total counter
ringcache_deletes_total{cache="pages"} 1
ringcache_deletes_total{cache="users"} 0
# HELP ringcache_entries Entries in the cache, including expired ones that have not been removed yet.
# TYPE ringcache_entries gauge
ringcache_entries{cache="pages"} 1
ringcache_entries{cache="users"} 0
# HELP ringcache_entries_bytes Bytes of the entries: keys, values and headers.
# TYPE ringcache_entries_bytes gauge
ringcache_entries_bytes{cache="pages"} 11
ringcache_entries_bytes{cache="users"} 0
# HELP ringcache_lookups_total Keys that were looked up, by whether they were found.
# TYPE ringcache_lookups_total counter
ringcache_lookups_total{cache="pages",result="hit"} 1
ringcache_lookups_total{cache="pages",result="miss"} 2
ringcache_lookups_total{cache="users",result="hit"} 0
ringcache_lookups_total{cache="users",result="miss"} 0
# HELP ringcache_memory_limit_bytes The limit on the memory that was set.
# TYPE ringcache_memory_limit_bytes gauge
ringcache_memory_limit_bytes{cache="pages"} 3.3554432e+07
ringcache_memory_limit_bytes{cache="users"} 3.3554432e+07
`
	require.NoError(t, testutil.GatherAndCompare(registryOf(t, caches), strings.NewReader(want),
		"ringcache_deletes_total", "ringcache_entries", "ringcache_entries_bytes",
		"ringcache_lookups_total", "ringcache_memory_limit_bytes"))
}

// Over HTTP, as Prometheus does it.
func TestCollector_Scrape(t *testing.T) {
	caches, pages := NewCollector(), newCache(t)
	require.NoError(t, caches.Register("pages \"a\"\n\\", pages))
	require.NoError(t, pages.Set([]byte("key"), []byte("value")))
	server := httptest.NewServer(promhttp.HandlerFor(registryOf(t, caches), promhttp.HandlerOpts{}))
	defer server.Close()

	body := get(t, server.URL)
	require.Contains(t, body, "# TYPE ringcache_sets_total counter\n")
	require.Contains(t, body, `ringcache_sets_total{cache="pages \"a\"\n\\"} 1`+"\n")
	require.NoError(t, pages.Set([]byte("key"), []byte("value")))
	require.Contains(t, get(t, server.URL), `ringcache_sets_total{cache="pages \"a\"\n\\"} 2`+"\n")
}

func get(t testing.TB, url string) string {
	t.Helper()
	body, err := fetch(url)
	require.NoError(t, err)
	return string(body)
}

func TestRegister_Errors(t *testing.T) {
	caches, pages := NewCollector(), newCache(t)
	require.NoError(t, caches.Register("pages", pages))
	require.ErrorIs(t, caches.Register("pages", newCache(t)), ErrNameTaken)
	require.ErrorIs(t, caches.Register("", pages), ErrInvalidName)
	require.ErrorIs(t, caches.Register("\xff", pages), ErrInvalidName)
	require.EqualError(t, caches.Register("pages", pages),
		`ringprometheus: register cache "pages": name is taken`)
	require.Equal(t, sampleCount, testutil.CollectAndCount(caches), "only the first one counts")
}

func TestRegister_NilCachePanics(t *testing.T) {
	caches := NewCollector()
	require.PanicsWithValue(t, "ringprometheus: register cache: cache is nil",
		func() { _ = caches.Register("users", nil) })
	require.Zero(t, testutil.CollectAndCount(caches))
}

func TestUnregister(t *testing.T) {
	caches := NewCollector()
	require.False(t, caches.Unregister("pages"))
	require.NoError(t, caches.Register("pages", newCache(t)))
	require.Equal(t, sampleCount, testutil.CollectAndCount(caches))
	require.True(t, caches.Unregister("pages"))
	require.Zero(t, testutil.CollectAndCount(caches))
	require.False(t, caches.Unregister("pages"))
	require.NoError(t, caches.Register("pages", newCache(t)), "the name is free again")
}

func TestCollector_ClosedCache(t *testing.T) {
	caches, pages := NewCollector(), ringcache.New(floor)
	require.NoError(t, caches.Register("pages", pages))
	require.NoError(t, pages.Set([]byte("key"), []byte("value")))
	require.NoError(t, pages.Close())
	want := `
# HELP ringcache_memory_bytes Memory that entries and index use, usually outside the Go heap.
# TYPE ringcache_memory_bytes gauge
ringcache_memory_bytes{cache="pages"} 0
# HELP ringcache_sets_total Calls that set a key, refused ones included.
# TYPE ringcache_sets_total counter
ringcache_sets_total{cache="pages"} 1
`
	require.NoError(t, testutil.CollectAndCompare(caches, strings.NewReader(want),
		"ringcache_memory_bytes", "ringcache_sets_total"))
	runtime.KeepAlive(pages)
}

// What is dropped without Close and Unregister must not stay because it is shown.
func TestCollector_LetsTheCacheGo(t *testing.T) {
	caches := NewCollector()
	func() {
		pages := ringcache.New(floor)
		require.NoError(t, caches.Register("pages", pages))
		runtime.GC()
		require.NotZero(t, testutil.CollectAndCount(caches), "collected while it was in use")
		runtime.KeepAlive(pages)
	}()
	for range 100 {
		if runtime.GC(); testutil.CollectAndCount(caches) == 0 {
			require.Empty(t, caches.caches, "its name is still there")
			require.NoError(t, caches.Register("pages", newCache(t)))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(t, "the cache is still there after 100 collections")
}

func TestRegister_TakesTheNameOfACollectedCache(t *testing.T) {
	caches := NewCollector()
	gone := func(*ringcache.Stats) bool { return false }
	require.NoError(t, caches.register("pages", gone))
	require.NoError(t, caches.Register("pages", newCache(t)))
}

// A scrape that finds a cache collected must not remove the one that has its name now.
func TestCollector_ForgetsOnlyWhatIsGone(t *testing.T) {
	caches := NewCollector()
	require.NoError(t, caches.register("pages", func(*ringcache.Stats) bool {
		if caches.Unregister("pages") {
			assert.NoError(t, caches.register("pages", fixed(&ringcache.Stats{MaxBytesSize: 1})))
		}
		return false
	}))
	require.Zero(t, testutil.CollectAndCount(caches))
	require.Equal(t, sampleCount, testutil.CollectAndCount(caches))
}

func TestCollector_OneUpdateForEachScrape(t *testing.T) {
	caches, calls := NewCollector(), map[string]int{}
	for _, name := range []string{"pages", "users"} {
		require.NoError(t, caches.register(name, func(*ringcache.Stats) bool {
			calls[name]++
			return true
		}))
	}
	registry := registryOf(t, caches) // describes, and does not collect
	require.Empty(t, calls)
	for scrape := range 3 {
		_, err := registry.Gather()
		require.NoError(t, err)
		require.Equal(t, map[string]int{"pages": scrape + 1, "users": scrape + 1}, calls)
	}
}

// Gauges fall, and counters do not, nor do hits where a lookup turns out to be a miss.
func TestCollector_CountersNeverFall(t *testing.T) {
	var s ringcache.Stats
	caches := NewCollector()
	require.NoError(t, caches.register("pages", fixed(&s)))
	registry := registryOf(t, caches)
	for _, step := range []struct{ gets, misses, hits, entries uint64 }{
		{10, 4, 6, 7},
		{10, 5, 6, 6},
		{11, 12, 6, 0}, // the two are not of the same instant
		{30, 20, 10, 9},
	} {
		s.GetCalls, s.Misses, s.EntriesCount = step.gets, step.misses, step.entries
		want := fmt.Sprintf(`
# HELP ringcache_entries Entries in the cache, including expired ones that have not been removed yet.
# TYPE ringcache_entries gauge
ringcache_entries{cache="pages"} %d
# HELP ringcache_lookups_total Keys that were looked up, by whether they were found.
# TYPE ringcache_lookups_total counter
ringcache_lookups_total{cache="pages",result="hit"} %d
ringcache_lookups_total{cache="pages",result="miss"} %d
`, step.entries, step.hits, step.misses)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want),
			"ringcache_entries", "ringcache_lookups_total"))
	}
}

// Caches come, go and work while they are scraped.
func TestCollector_Concurrent(t *testing.T) {
	caches, pages := NewCollector(), newCache(t)
	registry := registryOf(t, caches)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			name := fmt.Sprint("pages ", i)
			for n := range 50 {
				assert.NoError(t, caches.Register(name, pages))
				assert.NoError(t, pages.Set([]byte{byte(n)}, []byte("value")))
				assert.True(t, caches.Unregister(name))
			}
		})
		wg.Go(func() {
			for range 50 {
				_, err := registry.Gather()
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.Zero(t, testutil.CollectAndCount(caches))
}

// For a namespace, only the figures that it has are shown, and no zeros for the others.
func TestCollector_Namespace(t *testing.T) {
	caches := NewCollector()
	require.NoError(t, caches.Register("tenant", newCache(t).Namespace("tenant")))
	require.Equal(t, 6, testutil.CollectAndCount(caches))
}
