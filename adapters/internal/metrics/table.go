package metrics

import "github.com/ringcache/ringcache"

type stats = ringcache.Stats

// sample returns the sample for a value of a metric's attribute.
func sample(attribute string, value func(s *stats) uint64) Sample {
	return Sample{attribute, func(f *Figures) float64 { return float64(value(&f.Stats)) }}
}

// one returns the sample of a metric without an attribute.
func one(value func(s *stats) uint64) []Sample { return []Sample{sample("", value)} }

// All are the metrics of a cache.
var All = []Metric{
	{Counter, "lookups_total", "lookups", "{lookup}",
		"Keys that were looked up, by whether they were found.",
		"lookup.result", []Sample{
			sample("hit", func(s *stats) uint64 { return s.GetCalls - min(s.Misses, s.GetCalls) }),
			sample("miss", func(s *stats) uint64 { return s.Misses }),
		}},
	{Counter, "sets_total", "sets", "{call}",
		"Calls that set a key, refused ones included.",
		"", one(func(s *stats) uint64 { return s.SetCalls })},
	{Counter, "refused_values_total", "refusals", "{value}",
		"Values that were not stored, by cause: too large, no memory from the operating " +
			"system, a time to live below 100 ms, a closed cache.",
		"refusal.cause", []Sample{
			sample("too_large", func(s *stats) uint64 { return s.Refused.TooLarge }),
			sample("no_memory", func(s *stats) uint64 { return s.Refused.NoMemory }),
			sample("too_short", func(s *stats) uint64 { return s.Refused.TTLTooShort }),
			sample("closed", func(s *stats) uint64 { return s.Refused.Closed }),
		}},
	{Counter, "deletes_total", "deletes", "{call}",
		"Calls that delete a key.",
		"", one(func(s *stats) uint64 { return s.DelCalls })},
	{Counter, "loads_total", "loads", "{load}",
		"Loads that were started, for missing values or for values about to expire.",
		"", one(func(s *stats) uint64 { return s.Loads.Started })},
	{Counter, "load_errors_total", "load.errors", "{load}",
		"Loads that ended with an error or a panic.",
		"", one(func(s *stats) uint64 { return s.Loads.Errors })},
	{Counter, "loads_dropped_total", "load.drops", "{load}",
		"Loads whose value was not stored, because the key was written meanwhile, no caller " +
			"waited any longer, or the cache refused the value.",
		"", one(func(s *stats) uint64 { return s.Loads.Dropped })},
	{Counter, "stale_hits_total", "stale.hits", "{key}",
		"Keys for which an expired value was returned because their load had failed.",
		"", one(func(s *stats) uint64 { return s.Loads.StaleHits })},
	{Counter, "negative_hits_total", "negative.hits", "{key}",
		"Keys that were not loaded because an earlier load had found that they have no value.",
		"", one(func(s *stats) uint64 { return s.Loads.NegativeHits })},
	{Counter, "evicted_entries_total", "evictions", "{entry}",
		"Entries that were evicted to make room, by cause: not read often enough in the small " +
			"ring, at the end of the main ring or of the cold part, no place in the index.",
		"eviction.cause", []Sample{
			sample("small", func(s *stats) uint64 { return s.Policy.EvictedSmall }),
			sample("main", func(s *stats) uint64 { return s.Policy.EvictedMain }),
			sample("cold", func(s *stats) uint64 { return s.Policy.EvictedCold }),
			sample("crowd", func(s *stats) uint64 { return s.Policy.EvictedCrowd }),
		}},
	{Counter, "evicted_bytes_total", "eviction.size", "By",
		"Bytes of the entries that were evicted to make room.",
		"", one(func(s *stats) uint64 { return s.EvictedBytes })},
	{Counter, "expired_entries_total", "expirations", "{entry}",
		"Entries that were removed because they had expired.",
		"", one(func(s *stats) uint64 { return s.ExpiredEntries })},
	{Counter, "expired_bytes_total", "expiration.size", "By",
		"Bytes of the entries that were removed because they had expired.",
		"", one(func(s *stats) uint64 { return s.ExpiredBytes })},
	{Counter, "cold_hits_total", "cold.hits", "{lookup}",
		"Lookups that found their key in the cold part. They are counted as hits too.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdHits })},
	{Counter, "compressed_values_total", "compressed.values", "{value}",
		"Values that were compressed.",
		"", one(func(s *stats) uint64 { return s.Compression.Compressed })},
	{Counter, "compressed_bytes_total", "compressed.size", "By",
		"Bytes of the entries whose values were compressed, before and after compression.",
		"compressed.when", []Sample{
			sample("before", func(s *stats) uint64 { return s.Compression.BytesBefore }),
			sample("after", func(s *stats) uint64 { return s.Compression.BytesAfter }),
		}},
	{Counter, "uncompressed_values_total", "uncompressed.values", "{value}",
		"Values that went to the cold part uncompressed, by reason: compression would save too " +
			"little, they are short, or the queue of the compressor was full.",
		"uncompressed.reason", []Sample{
			sample("no_gain", func(s *stats) uint64 { return s.Compression.UncompressedNoGain }),
			sample("short", func(s *stats) uint64 { return s.Compression.UncompressedShort }),
			sample("queue_full", func(s *stats) uint64 { return s.Compression.UncompressedQueueFull }),
		}},
	{Counter, "compressor_errors_total", "compressor.errors", "{call}",
		"Failures of the compressor, by operation.",
		"compressor.operation", []Sample{
			sample("compress", func(s *stats) uint64 { return s.Compression.CompressErrors }),
			sample("decompress", func(s *stats) uint64 { return s.Compression.DecompressErrors }),
		}},
	{Counter, "promotions_total", "promotions", "{entry}",
		"Entries that moved from the small ring to the main ring.",
		"", one(func(s *stats) uint64 { return s.Policy.Promotions })},
	{Counter, "reinsertions_total", "reinsertions", "{entry}",
		"Entries that stayed in the main ring for another round because they were read.",
		"", one(func(s *stats) uint64 { return s.Policy.Reinsertions })},
	{Counter, "moved_bytes_total", "move.size", "By",
		"Bytes of the entries that were copied within the cache to keep them: promoted, " +
			"reinserted or compacted.",
		"", one(func(s *stats) uint64 { return s.Policy.MovedBytes })},
	{Counter, "ghost_hits_total", "ghost.hits", "{entry}",
		"Sets of keys whose entries had been evicted recently. A larger cache would have kept " +
			"some of them.",
		"", one(func(s *stats) uint64 { return s.Policy.GhostHits })},
	{Counter, "near_misses_total", "near_misses", "{lookup}",
		"Lookups of keys whose entries had been evicted recently. A larger cache would have " +
			"found most of them.",
		"", one(func(s *stats) uint64 { return s.Policy.NearMisses })},
	{Counter, "hash_collisions_total", "hash.collisions", "{entry}",
		"Entries that a call examined because of their hash, and that had another key.",
		"", one(func(s *stats) uint64 { return s.Collisions })},
	{Counter, "corruptions_total", "corruptions", "{entry}",
		"Damaged entries. More than 0 means that the memory or the file of the cache is " +
			"damaged, most often by other code in the process, or that a compressor fails.",
		"", one(func(s *stats) uint64 { return s.Corruptions })},
	{Counter, "restored_entries_total", "restorations", "{entry}",
		"Entries that were restored, by source: a snapshot, or the file of the cache.",
		"restoration.source", []Sample{
			sample("snapshot", func(s *stats) uint64 { return s.Snapshots.RestoredEntries }),
			sample("file", func(s *stats) uint64 { return s.File.RecoveredEntries }),
		}},
	{Counter, "restored_bytes_total", "restoration.size", "By",
		"Bytes of the entries that were restored from the file of the cache. Those from " +
			"snapshots are not counted.",
		"restoration.source", []Sample{
			sample("file", func(s *stats) uint64 { return s.File.RecoveredBytes }),
		}},
	{Counter, "restore_discards_total", "restoration.discards", "{part}",
		"Parts that could not be restored: damaged or missing blocks of snapshots, damaged or " +
			"unfinished records of the file, and the whole file, counted as one.",
		"restoration.source", []Sample{
			sample("snapshot", func(s *stats) uint64 { return s.Snapshots.DiscardedBlocks }),
			sample("file", func(s *stats) uint64 { return s.File.DiscardedRecords }),
			sample("whole", func(s *stats) uint64 { return s.File.DiscardedFiles }),
		}},
	{Amount, "entries", "entry.count", "{entry}",
		"Entries in the cache, including expired ones that have not been removed yet.",
		"", one(func(s *stats) uint64 { return s.EntriesCount })},
	{Amount, "cold_entries", "cold.count", "{entry}",
		"Entries in the cold part.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdEntries })},
	{Amount, "cold_bytes", "cold.size", "By",
		"Bytes of the entries in the cold part, as they are stored there.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdBytes })},
	{Amount, "ghosts", "ghost.count", "{entry}",
		"Evicted entries that are still remembered. A cache with room for so many more " +
			"entries would find most of the near misses.",
		"", one(func(s *stats) uint64 { return s.Policy.Ghosts })},
	{Amount, "entries_bytes", "entry.size", "By",
		"Bytes of the entries: keys, values and headers.",
		"", one(func(s *stats) uint64 { return s.BytesSize })},
	{Amount, "memory_bytes", "memory.usage", "By",
		"Memory outside the Go heap that the cache holds, including its index.",
		"", one(func(s *stats) uint64 { return s.ReservedBytes })},
	{Amount, "dead_bytes", "dead.usage", "By",
		"The part of the memory that replaced, deleted, invalidated and expired entries still " +
			"occupy.",
		"", one(func(s *stats) uint64 { return s.DeadBytes })},
	{Amount, "index_bytes", "index.usage", "By",
		"The part of the memory that the index occupies.",
		"", one(func(s *stats) uint64 { return s.IndexBytes })},
	{Amount, "memory_limit_bytes", "memory.limit", "By",
		"The limit on the memory that was set.",
		"", one(func(s *stats) uint64 { return s.MaxBytesSize })},
	{Amount, "memory_effective_limit_bytes", "memory.effective_limit", "By",
		"The limit in force, which is lower while the operating system refuses memory.",
		"", one(func(s *stats) uint64 { return s.EffectiveMaxBytes })},
	{Gauge, "eviction_age_seconds", "eviction.age", "s",
		"How long entries that are not read stay in a ring before they are evicted. 0 means " +
			"not known yet.",
		"eviction.ring", []Sample{
			{"small", func(f *Figures) float64 { return f.Sizing.SmallAge.Seconds() }},
			{"main", func(f *Figures) float64 { return f.Sizing.MainAge.Seconds() }},
		}},
	{Gauge, "eviction_age_sets", "eviction.distance", "{value}",
		"How many values a cache stores while an entry that is not read stays in a ring, before " +
			"it is evicted. 0 means not known yet.",
		"eviction.ring", []Sample{
			{"small", func(f *Figures) float64 { return float64(f.Sizing.SmallAgeSets) }},
			{"main", func(f *Figures) float64 { return float64(f.Sizing.MainAgeSets) }},
		}},
	{Counter, "compressor_seconds_total", "compressor.time", "s",
		"Time that the cache has spent compressing values.",
		"", []Sample{
			{"", func(f *Figures) float64 { return f.Compression.CompressTime.Seconds() }},
		}},
}
