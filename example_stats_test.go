package ringcache_test

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/ringcache/ringcache"
)

// exampleStats are the statistics of a cache of 32 MB that has been in use for a while.
var exampleStats = ringcache.Stats{
	GetCalls:       1_204_512,
	SetCalls:       90_311,
	Misses:         83_112,
	EntriesCount:   58_248,
	BytesSize:      28_075_536,
	MaxBytesSize:   32 << 20,
	DelCalls:       12,
	EvictedEntries: 32_051,
	EvictedBytes:   15_448_582,
	EvictedMisses:  18_205,
	ReservedBytes:  33_400_832,
	DeadBytes:      3_145_728,
	IndexBytes:     1_048_576,

	EffectiveMaxBytes: 32 << 20,
}

func ExampleStats_String() {
	fmt.Println(exampleStats)
	// Output: 1204512 gets, 93.1 % hits, 83112 misses, 18205 of evicted keys, 90311 sets, 12 dels; refused 0 too large, 0 without memory, 0 too short; 58248 entries, 26.8 MB of 32.0 MB, 32.0 MB in force, 31.9 MB reserved, of it 3.0 MB dead, 1.0 MB index; 32051 evicted, 14.7 MB; 0 expired; 0 restored; 0 collisions, 0 corruptions; 0 loads, 0 of them failed, 0 dropped, 0 stale hits, 0 negative hits; 0 cold, 0 cold hits, 0 compressed, 0 B to 0 B in 0s, 0 errors; 0 recovered, 0 records discarded, 0 files discarded
}

func ExampleStats_HitRatio() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("there"), nil)

	for _, k := range []string{"there", "not there", "there", "there"} {
		cache.Has([]byte(k))
	}
	var s ringcache.Stats
	cache.UpdateStats(&s)
	fmt.Printf("%.0f %%\n", 100*s.HitRatio())
	// Output: 75 %
}

// Counters start with the cache. The counters of an interval, such as the last minute, are the
// difference between two calls of Stats.
func ExampleStats_Sub() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	cache.Has([]byte("k")) // while the cache was cold
	before := cache.Stats()

	_ = cache.Set([]byte("k"), []byte("v"))
	cache.Has([]byte("k"))
	now := cache.Stats()

	fmt.Println(now.HitRatio(), now.Sub(before).HitRatio())
	// Output: 0.5 1
}

// A cache is too small if many of its misses are of entries that it had to evict.
func ExampleCache_Stats() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	key := []byte("")
	for i := range 200_000 { // in a loop over more keys than fit
		key = fmt.Append(key[:0], i%60_000)
		if !cache.Has(key) {
			_ = cache.Set(key, make([]byte, 600))
		}
	}
	s := cache.Stats()
	fmt.Println("too small:", float64(s.EvictedMisses) > 0.1*float64(s.GetCalls))
	// Output: too small: true
}

func ExampleStats_LogValue() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))

	logger.Info("an hour later", "cache", exampleStats)
	// Output: level=INFO msg="an hour later" cache.get_calls=1204512 cache.set_calls=90311 cache.misses=83112 cache.collisions=0 cache.corruptions=0 cache.entries_count=58248 cache.bytes_size=28075536 cache.max_bytes_size=33554432 cache.del_calls=12 cache.evicted_entries=32051 cache.evicted_bytes=15448582 cache.evicted_misses=18205 cache.expired_entries=0 cache.restored_entries=0 cache.effective_max_bytes=33554432 cache.reserved_bytes=33400832 cache.dead_bytes=3145728 cache.index_bytes=1048576 cache.refused.too_large=0 cache.refused.no_memory=0 cache.refused.ttl_too_short=0 cache.loads.started=0 cache.loads.errors=0 cache.loads.dropped=0 cache.loads.stale_hits=0 cache.loads.negative_hits=0 cache.compression.cold_hits=0 cache.compression.cold_entries=0 cache.compression.compressed=0 cache.compression.bytes_before=0 cache.compression.bytes_after=0 cache.compression.errors=0 cache.compression.compress_time=0s cache.file.recovered_entries=0 cache.file.discarded_records=0 cache.file.discarded_files=0
}
