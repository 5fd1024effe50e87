package metrics

import "github.com/ringcache/ringcache"

// stats is the source of all samples.
type stats = ringcache.Stats

// one is for metrics without an attribute.
func one(value func(s *stats) uint64) []Sample { return []Sample{{Value: value}} }

const (
	counter = false
	gauge   = true
)

// All are the metrics of a cache, except for its Ages and Durations.
var All = []Metric{
	{counter, "lookups_total", "lookups", "{lookup}",
		"Keys that were looked up, by whether they were found.",
		"lookup.result", []Sample{
			{"hit", hits},
			{"miss", func(s *stats) uint64 { return s.Misses }},
		}},
	{counter, "sets_total", "sets", "{call}",
		"Calls that set a key, refused ones included.",
		"", one(func(s *stats) uint64 { return s.SetCalls })},
	{counter, "refused_values_total", "refusals", "{value}",
		"Values that were not stored, by cause: too large, no memory from the operating " +
			"system, a time to live below 100 ms, a closed cache.",
		"refusal.cause", []Sample{
			{"too_large", func(s *stats) uint64 { return s.Refused.TooLarge }},
			{"no_memory", func(s *stats) uint64 { return s.Refused.NoMemory }},
			{"too_short", func(s *stats) uint64 { return s.Refused.TTLTooShort }},
			{"closed", func(s *stats) uint64 { return s.Refused.Closed }},
		}},
	{counter, "deletes_total", "deletes", "{call}",
		"Calls that delete a key.",
		"", one(func(s *stats) uint64 { return s.DelCalls })},
	{counter, "loads_total", "loads", "{load}",
		"Loads that were started, for missing values or for values about to expire.",
		"", one(func(s *stats) uint64 { return s.Loads.Started })},
	{counter, "load_errors_total", "load.errors", "{load}",
		"Loads that ended with an error or a panic.",
		"", one(func(s *stats) uint64 { return s.Loads.Errors })},
	{counter, "loads_dropped_total", "load.drops", "{load}",
		"Loads whose value was not stored, because the key was written meanwhile, no caller " +
			"waited any longer, or the cache refused the value.",
		"", one(func(s *stats) uint64 { return s.Loads.Dropped })},
	{counter, "stale_hits_total", "stale.hits", "{key}",
		"Keys for which an expired value was returned because their load had failed.",
		"", one(func(s *stats) uint64 { return s.Loads.StaleHits })},
	{counter, "negative_hits_total", "negative.hits", "{key}",
		"Keys that were not loaded because an earlier load had found that they have no value.",
		"", one(func(s *stats) uint64 { return s.Loads.NegativeHits })},
	{counter, "evicted_entries_total", "evictions", "{entry}",
		"Entries that were evicted to make room, by cause: not read often enough in the small " +
			"ring, at the end of the main ring or of the cold part, no place in the index.",
		"eviction.cause", []Sample{
			{"small", func(s *stats) uint64 { return s.Policy.EvictedSmall }},
			{"main", func(s *stats) uint64 { return s.Policy.EvictedMain }},
			{"cold", func(s *stats) uint64 { return s.Policy.EvictedCold }},
			{"crowd", func(s *stats) uint64 { return s.Policy.EvictedCrowd }},
		}},
	{counter, "evicted_bytes_total", "eviction.size", "By",
		"Bytes of the entries that were evicted to make room.",
		"", one(func(s *stats) uint64 { return s.EvictedBytes })},
	{counter, "expired_entries_total", "expirations", "{entry}",
		"Entries that were removed because they had expired.",
		"", one(func(s *stats) uint64 { return s.ExpiredEntries })},
	{counter, "expired_bytes_total", "expiration.size", "By",
		"Bytes of the entries that were removed because they had expired.",
		"", one(func(s *stats) uint64 { return s.ExpiredBytes })},
	{counter, "cold_hits_total", "cold.hits", "{lookup}",
		"Lookups that found their key in the cold part. They are counted as hits too.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdHits })},
	{counter, "compressed_values_total", "compressed.values", "{value}",
		"Values that were compressed.",
		"", one(func(s *stats) uint64 { return s.Compression.Compressed })},
	{counter, "compressed_bytes_total", "compressed.size", "By",
		"Bytes of the entries whose values were compressed, before and after compression.",
		"compressed.when", []Sample{
			{"before", func(s *stats) uint64 { return s.Compression.BytesBefore }},
			{"after", func(s *stats) uint64 { return s.Compression.BytesAfter }},
		}},
	{counter, "uncompressed_values_total", "uncompressed.values", "{value}",
		"Values that went to the cold part uncompressed, by reason: compression would save too " +
			"little, they are short, or the queue of the compressor was full.",
		"uncompressed.reason", []Sample{
			{"no_gain", func(s *stats) uint64 { return s.Compression.UncompressedNoGain }},
			{"short", func(s *stats) uint64 { return s.Compression.UncompressedShort }},
			{"queue_full", func(s *stats) uint64 { return s.Compression.UncompressedQueueFull }},
		}},
	{counter, "compressor_errors_total", "compressor.errors", "{call}",
		"Failures of the compressor, by operation.",
		"compressor.operation", []Sample{
			{"compress", func(s *stats) uint64 { return s.Compression.CompressErrors }},
			{"decompress", func(s *stats) uint64 { return s.Compression.DecompressErrors }},
		}},
	{counter, "promotions_total", "promotions", "{entry}",
		"Entries that moved from the small ring to the main ring.",
		"", one(func(s *stats) uint64 { return s.Policy.Promotions })},
	{counter, "reinsertions_total", "reinsertions", "{entry}",
		"Entries that stayed in the main ring for another round because they were read.",
		"", one(func(s *stats) uint64 { return s.Policy.Reinsertions })},
	{counter, "moved_bytes_total", "move.size", "By",
		"Bytes of the entries that were copied within the cache to keep them: promoted, " +
			"reinserted or compacted.",
		"", one(func(s *stats) uint64 { return s.Policy.MovedBytes })},
	{counter, "ghost_hits_total", "ghost.hits", "{entry}",
		"Sets of keys whose entries had been evicted recently. A larger cache would have kept " +
			"some of them.",
		"", one(func(s *stats) uint64 { return s.Policy.GhostHits })},
	{counter, "near_misses_total", "near_misses", "{lookup}",
		"Lookups of keys whose entries had been evicted recently. A larger cache would have " +
			"found most of them.",
		"", one(func(s *stats) uint64 { return s.Policy.NearMisses })},
	{counter, "hash_collisions_total", "hash.collisions", "{entry}",
		"Entries that a call examined because of their hash, and that had another key.",
		"", one(func(s *stats) uint64 { return s.Collisions })},
	{counter, "corruptions_total", "corruptions", "{entry}",
		"Damaged entries. More than 0 means that the memory or the file of the cache is " +
			"damaged, most often by other code in the process, or that a compressor fails.",
		"", one(func(s *stats) uint64 { return s.Corruptions })},
	{counter, "restored_entries_total", "restorations", "{entry}",
		"Entries that were restored, by source: a snapshot, or the file of the cache.",
		"restoration.source", []Sample{
			{"snapshot", func(s *stats) uint64 { return s.Snapshots.RestoredEntries }},
			{"file", func(s *stats) uint64 { return s.File.RecoveredEntries }},
		}},
	{counter, "restored_bytes_total", "restoration.size", "By",
		"Bytes of the entries that were restored from the file of the cache. Those from " +
			"snapshots are not counted.",
		"restoration.source", []Sample{
			{"file", func(s *stats) uint64 { return s.File.RecoveredBytes }},
		}},
	{counter, "restore_discards_total", "restoration.discards", "{part}",
		"Parts that could not be restored: damaged or missing blocks of snapshots, damaged or " +
			"unfinished records of the file, and the whole file, counted as one.",
		"restoration.source", []Sample{
			{"snapshot", func(s *stats) uint64 { return s.Snapshots.DiscardedBlocks }},
			{"file", func(s *stats) uint64 { return s.File.DiscardedRecords }},
			{"whole", func(s *stats) uint64 { return s.File.DiscardedFiles }},
		}},
	{gauge, "entries", "entry.count", "{entry}",
		"Entries in the cache, including expired ones that have not been removed yet.",
		"", one(func(s *stats) uint64 { return s.EntriesCount })},
	{gauge, "cold_entries", "cold.count", "{entry}",
		"Entries in the cold part.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdEntries })},
	{gauge, "cold_bytes", "cold.size", "By",
		"Bytes of the entries in the cold part, as they are stored there.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdBytes })},
	{gauge, "ghosts", "ghost.count", "{entry}",
		"Evicted entries that are still remembered. A cache with room for so many more " +
			"entries would find most of the near misses.",
		"", one(func(s *stats) uint64 { return s.Policy.Ghosts })},
	{gauge, "entries_bytes", "entry.size", "By",
		"Bytes of the entries: keys, values and headers.",
		"", one(func(s *stats) uint64 { return s.BytesSize })},
	{gauge, "memory_bytes", "memory.usage", "By",
		"Memory outside the Go heap that the cache holds, including its index.",
		"", one(func(s *stats) uint64 { return s.ReservedBytes })},
	{gauge, "dead_bytes", "dead.usage", "By",
		"The part of the memory that replaced, deleted, invalidated and expired entries still " +
			"occupy.",
		"", one(func(s *stats) uint64 { return s.DeadBytes })},
	{gauge, "index_bytes", "index.usage", "By",
		"The part of the memory that the index occupies.",
		"", one(func(s *stats) uint64 { return s.IndexBytes })},
	{gauge, "memory_limit_bytes", "memory.limit", "By",
		"The limit on the memory that was set.",
		"", one(func(s *stats) uint64 { return s.MaxBytesSize })},
	{gauge, "memory_effective_limit_bytes", "memory.effective_limit", "By",
		"The limit in force, which is lower while the operating system refuses memory.",
		"", one(func(s *stats) uint64 { return s.EffectiveMaxBytes })},
}

// Ages are gauges of how long entries stay in the rings of a cache.
var Ages = []Age{
	{"eviction_age_seconds", "eviction.age", "s",
		"How long entries that are not read stay in a ring before they are evicted. 0 means " +
			"not known yet.",
		func(z *ringcache.Sizing) float64 { return z.SmallAge.Seconds() },
		func(z *ringcache.Sizing) float64 { return z.MainAge.Seconds() }},
	{"eviction_age_sets", "eviction.distance", "{value}",
		"How many values a cache stores while an entry that is not read stays in a ring, before " +
			"it is evicted. 0 means not known yet.",
		func(z *ringcache.Sizing) float64 { return float64(z.SmallAgeSets) },
		func(z *ringcache.Sizing) float64 { return float64(z.MainAgeSets) }},
}

// Durations are the times that a cache has spent.
var Durations = []Duration{
	{"compressor_seconds_total", "compressor.time", "s",
		"Time that the cache has spent compressing values.",
		func(s *stats) float64 { return s.Compression.CompressTime.Seconds() }},
}

// hits returns the lookups that found their key. The difference of two Stats may have more misses
// than lookups: a lookup may be counted before it is known to be a miss.
func hits(s *stats) uint64 { return s.GetCalls - min(s.Misses, s.GetCalls) }
