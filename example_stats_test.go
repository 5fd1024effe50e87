package ringcache_test

import (
	"fmt"

	"github.com/ringcache/ringcache"
)

// exampleStats could be the statistics of a cache of 32 MB that has been in use for a while.
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

// A cache may be too small if many of its misses are of entries that it had to evict.
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
