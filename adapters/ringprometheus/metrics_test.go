package ringprometheus

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// leftOut are the fields of Stats without a metric, each with the reason.
var leftOut = map[string]string{
	"EvictedEntries": "the sum of ringcache_evicted_entries_total over its causes",
}

// A new field has a metric or a reason to have none.
func TestMetrics_CoverStats(t *testing.T) {
	var s ringcache.Stats
	caches := NewCollector()
	require.NoError(t, caches.register("pages", fixed(&s)))
	registry := registryOf(t, caches)
	shown := func() string {
		families, err := registry.Gather()
		require.NoError(t, err)
		var text bytes.Buffer
		for _, f := range families {
			text.WriteString(f.String())
		}
		return text.String()
	}
	i, there := 0, map[string]bool{}
	numbers(reflect.ValueOf(&s).Elem(), "", func(name string, field reflect.Value) {
		before := shown()
		setNumber(t, field, 1000+i)
		i, there[name] = i+1, true
		if leftOut[name] != "" {
			require.Equal(t, before, shown(), "%s is said to be left out", name)
			return
		}
		require.NotEqual(t, before, shown(),
			"no metric shows Stats.%s: add one, or a reason to leftOut", name)
	})
	require.True(t, there["Policy.GhostHits"], "nested structs were left out")
	for name := range leftOut {
		require.True(t, there[name], "there is no field %s", name)
	}
}

// So has a new field of Sizing.
func TestMetrics_CoverSizing(t *testing.T) {
	var z ringcache.Sizing
	caches := NewCollector()
	require.NoError(t, caches.add("pages", &source{
		update: fixed(&ringcache.Stats{}), sizing: func() ringcache.Sizing { return z },
	}))
	fields := reflect.ValueOf(&z).Elem()
	for i := range fields.NumField() {
		name, before := fields.Type().Field(i).Name, string(exposition(t, caches))
		setNumber(t, fields.Field(i), 1000+i)
		require.NotEqual(t, before, string(exposition(t, caches)), "no metric shows Sizing.%s", name)
	}
}

// Every field is shown by the right metric: testdata/metrics.txt has been read by a person.
// RINGCACHE_UPDATE=1 writes it anew.
func TestMetrics_Golden(t *testing.T) {
	s := ringcache.Stats{
		GetCalls: 103, SetCalls: 2, DelCalls: 3, Misses: 7, Collisions: 8, Corruptions: 9,
		EvictedEntries: 33, EvictedBytes: 10, ExpiredEntries: 14, ExpiredBytes: 15, EntriesCount: 19,
		BytesSize: 20, MaxBytesSize: 21, EffectiveMaxBytes: 51, ReservedBytes: 22, IndexBytes: 23,
		DeadBytes: 53,
		Refused:   ringcache.RefusedStats{TooLarge: 47, NoMemory: 48, TTLTooShort: 49, Closed: 50},
		Policy: ringcache.PolicyStats{
			EvictedSmall: 11, EvictedMain: 12, EvictedCold: 34, EvictedCrowd: 13, Promotions: 16,
			Reinsertions: 17, GhostHits: 18, NearMisses: 29, MovedBytes: 52, Ghosts: 30,
		},
		Loads: ringcache.LoadStats{
			Started: 4, Errors: 5, Dropped: 6, StaleHits: 33, NegativeHits: 54,
		},
		Compression: ringcache.CompressionStats{
			ColdHits: 35, Compressed: 36, BytesBefore: 37, BytesAfter: 38, UncompressedNoGain: 39,
			UncompressedShort: 40, UncompressedQueueFull: 41, CompressErrors: 42,
			DecompressErrors: 43, CompressTime: 44 * time.Second, ColdEntries: 45, ColdBytes: 46,
		},
		Snapshots: ringcache.SnapshotStats{RestoredEntries: 24, DiscardedBlocks: 25},
		File: ringcache.FileStats{
			RecoveredEntries: 26, RecoveredBytes: 27, DiscardedRecords: 28, DiscardedFiles: 90,
		},
	}
	z := ringcache.Sizing{
		SmallAge: 1500 * time.Millisecond, MainAge: time.Minute, SmallAgeSets: 31, MainAgeSets: 32,
	}
	caches := NewCollector()
	sizing := func() ringcache.Sizing { return z }
	require.NoError(t, caches.add("pages", &source{update: fixed(&s), sizing: sizing}))
	const file = "testdata/metrics.txt"
	if os.Getenv("RINGCACHE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, exposition(t, caches), 0o644))
	}
	want, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, want.Close()) }()
	require.NoError(t, testutil.CollectAndCompare(caches, want))
}

// exposition returns what Prometheus would scrape.
func exposition(t testing.TB, c *Collector) []byte {
	t.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registryOf(t, c), promhttp.HandlerOpts{}).
		ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, rec.Code)
	return rec.Body.Bytes()
}

// The linter of client_golang.
func TestMetrics_Lint(t *testing.T) {
	caches := NewCollector()
	require.NoError(t, caches.Register("pages", newCache(t)))
	problems, err := testutil.CollectAndLint(caches)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// The linter of Prometheus itself.
func TestMetrics_Promtool(t *testing.T) {
	caches := NewCollector()
	require.NoError(t, caches.Register("pages", newCache(t)))
	check := exec.Command(tool(t, "promtool"), "check", "metrics")
	check.Stdin = bytes.NewReader(exposition(t, caches))
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// The README lists exactly the metrics that there are.
func TestMetrics_Readme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var want, got []string
	for _, m := range metrics {
		want = append(want, nameOf(m))
	}
	for _, m := range readmeRow.FindAllSubmatch(text, -1) {
		got = append(got, string(m[1]))
	}
	require.Equal(t, want, got)
}
