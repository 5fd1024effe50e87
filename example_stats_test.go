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
	DelCalls:       12,
	Misses:         83_112,
	EvictedEntries: 32_051,
	EvictedBytes:   15_448_582,
	EntriesCount:   58_248,
	BytesSize:      28_075_536,
	MaxBytesSize:   32 << 20,
	ReservedBytes:  33_400_832,
	DeadBytes:      3_145_728,
	IndexBytes:     1_048_576,

	EffectiveMaxBytes: 32 << 20,

	Policy: ringcache.PolicyStats{
		EvictedSmall: 30_007,
		EvictedMain:  2_044,
		Promotions:   41_870,
		Reinsertions: 11_020,
		GhostHits:    4_408,
		NearMisses:   18_205,
		MovedBytes:   25_391_104,
		Ghosts:       29_770,
	},
}

func ExampleStats_String() {
	fmt.Println(exampleStats)
	// Output: 1204512 gets, 93.1 % hits, 83112 misses, 18205 near, 90311 sets, 12 dels; refused 0 too large, 0 without memory, 0 too short, 0 closed; 58248 entries, 26.8 MB of 32.0 MB, 32.0 MB in force, 31.9 MB reserved, of it 3.0 MB dead, 1.0 MB index; 32051 evicted (30007 small, 2044 main, 0 cold, 0 crowd), 14.7 MB; 0 expired, 0 B; 41870 promoted, 11020 reinserted, 24.2 MB moved, 29770 ghosts, 4408 ghost hits, 0 collisions, 0 corruptions; 0 loads, 0 of them failed, 0 dropped, 0 stale hits, 0 negative hits; 0 cold, 0 B, 0 cold hits, 0 compressed, 0 B to 0 B in 0s, uncompressed 0 without gain, 0 short, 0 with a full queue, 0 compress and 0 decompress errors; 0 restored from snapshots, 0 blocks discarded; 0 recovered, 0 B, 0 records discarded, 0 files discarded
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

func ExampleStats_Gain() {
	fmt.Printf("a cache larger by %.0f %% would find %.1f %% more of the lookups, or rather more\n",
		100*exampleStats.LargerBy(), 100*exampleStats.Gain())
	// Output: a cache larger by 51 % would find 1.5 % more of the lookups, or rather more
}

// A cache is too small if entries leave it before they are read.
func ExampleCache_Sizing() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	for i := range 100_000 { // more than fit
		_ = cache.Set(fmt.Append(nil, i), make([]byte, 600))
	}

	const readAfter = 10_000 // in Sets; the application knows this
	if age := cache.Sizing().SmallAgeSets; age > 0 && age < readAfter {
		fmt.Println("too small: entries that nobody reads at once are gone too soon")
	}
	// Output: too small: entries that nobody reads at once are gone too soon
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
	// Output: level=INFO msg="an hour later" cache.get_calls=1204512 cache.set_calls=90311 cache.del_calls=12 cache.misses=83112 cache.collisions=0 cache.corruptions=0 cache.evicted_entries=32051 cache.evicted_bytes=15448582 cache.expired_entries=0 cache.expired_bytes=0 cache.entries_count=58248 cache.bytes_size=28075536 cache.max_bytes_size=33554432 cache.effective_max_bytes=33554432 cache.reserved_bytes=33400832 cache.dead_bytes=3145728 cache.index_bytes=1048576 cache.refused.too_large=0 cache.refused.no_memory=0 cache.refused.ttl_too_short=0 cache.refused.closed=0 cache.policy.evicted_small=30007 cache.policy.evicted_main=2044 cache.policy.evicted_cold=0 cache.policy.evicted_crowd=0 cache.policy.promotions=41870 cache.policy.reinsertions=11020 cache.policy.ghost_hits=4408 cache.policy.near_misses=18205 cache.policy.moved_bytes=25391104 cache.policy.ghosts=29770 cache.loads.started=0 cache.loads.errors=0 cache.loads.dropped=0 cache.loads.stale_hits=0 cache.loads.negative_hits=0 cache.compression.cold_hits=0 cache.compression.compressed=0 cache.compression.bytes_before=0 cache.compression.bytes_after=0 cache.compression.uncompressed_no_gain=0 cache.compression.uncompressed_short=0 cache.compression.uncompressed_queue_full=0 cache.compression.compress_errors=0 cache.compression.decompress_errors=0 cache.compression.compress_time=0s cache.compression.cold_entries=0 cache.compression.cold_bytes=0 cache.snapshots.restored_entries=0 cache.snapshots.discarded_blocks=0 cache.file.recovered_entries=0 cache.file.recovered_bytes=0 cache.file.discarded_records=0 cache.file.discarded_files=0
}
