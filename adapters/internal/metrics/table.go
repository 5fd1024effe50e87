package metrics

import "github.com/ringcache/ringcache"

type stats = ringcache.Stats

// sample returns the sample for a value of a metric's attribute.
func sample(attribute string, value func(s *stats) uint64) Sample {
	return Sample{attribute, func(s *stats) float64 { return float64(value(s)) }}
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
			"system, a time to live below 100 ms.",
		"refusal.cause", []Sample{
			sample("too_large", func(s *stats) uint64 { return s.Refused.TooLarge }),
			sample("no_memory", func(s *stats) uint64 { return s.Refused.NoMemory }),
			sample("too_short", func(s *stats) uint64 { return s.Refused.TTLTooShort }),
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
		"Keys for which an expired value was returned.",
		"", one(func(s *stats) uint64 { return s.Loads.StaleHits })},
	{Counter, "negative_hits_total", "negative.hits", "{key}",
		"Keys that were not loaded because an earlier load had found that they have no value.",
		"", one(func(s *stats) uint64 { return s.Loads.NegativeHits })},
	{Counter, "evicted_entries_total", "evictions", "{entry}",
		"Entries that were evicted to make room.",
		"", one(func(s *stats) uint64 { return s.EvictedEntries })},
	{Counter, "evicted_bytes_total", "eviction.size", "By",
		"Bytes of the entries that were evicted to make room.",
		"", one(func(s *stats) uint64 { return s.EvictedBytes })},
	{Counter, "expired_entries_total", "expirations", "{entry}",
		"Entries that were removed because they had expired.",
		"", one(func(s *stats) uint64 { return s.ExpiredEntries })},
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
	{Counter, "compressor_errors_total", "compressor.errors", "{call}",
		"Failures of the compressor.",
		"", one(func(s *stats) uint64 { return s.Compression.Errors })},
	{Counter, "evicted_misses_total", "eviction.misses", "{lookup}",
		"Misses of keys whose entries had been evicted lately. A larger cache would " +
			"probably have found many.",
		"", one(func(s *stats) uint64 { return s.EvictedMisses })},
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
			sample("snapshot", func(s *stats) uint64 { return s.RestoredEntries }),
			sample("file", func(s *stats) uint64 { return s.File.RecoveredEntries }),
		}},
	{Counter, "restore_discards_total", "restoration.discards", "{part}",
		"Parts that could not be restored: damaged or unfinished records of the file, " +
			"and the whole file, counted as one.",
		"restoration.source", []Sample{
			sample("file", func(s *stats) uint64 { return s.File.DiscardedRecords }),
			sample("whole", func(s *stats) uint64 { return s.File.DiscardedFiles }),
		}},
	{Gauge, "entries", "entry.count", "{entry}",
		"Entries in the cache, including expired ones that have not been removed yet.",
		"", one(func(s *stats) uint64 { return s.EntriesCount })},
	{Gauge, "cold_entries", "cold.count", "{entry}",
		"Entries in the cold part.",
		"", one(func(s *stats) uint64 { return s.Compression.ColdEntries })},
	{Gauge, "entries_bytes", "entry.size", "By",
		"Bytes of the entries: keys, values and headers.",
		"", one(func(s *stats) uint64 { return s.BytesSize })},
	{Gauge, "memory_bytes", "memory.usage", "By",
		"Memory that entries and index use, usually outside the Go heap.",
		"", one(func(s *stats) uint64 { return s.ReservedBytes })},
	{Gauge, "dead_bytes", "dead.usage", "By",
		"The part of the memory that replaced, deleted, invalidated and expired entries still " +
			"occupy.",
		"", one(func(s *stats) uint64 { return s.DeadBytes })},
	{Gauge, "index_bytes", "index.usage", "By",
		"The part of the memory that the index occupies.",
		"", one(func(s *stats) uint64 { return s.IndexBytes })},
	{Gauge, "memory_limit_bytes", "memory.limit", "By",
		"The limit on the memory that was set.",
		"", one(func(s *stats) uint64 { return s.MaxBytesSize })},
	{Gauge, "memory_effective_limit_bytes", "memory.effective_limit", "By",
		"The limit in force, which is lower while the operating system refuses memory.",
		"", one(func(s *stats) uint64 { return s.EffectiveMaxBytes })},
	{Counter, "compressor_seconds_total", "compressor.time", "s",
		"Time that the cache has spent compressing values.",
		"", []Sample{
			{"", func(s *stats) float64 { return s.Compression.CompressTime.Seconds() }},
		}},
}
