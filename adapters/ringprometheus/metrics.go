package ringprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcache/ringcache"
)

// metric is shown for every cache, with one sample, or with one for each value of an extra
// label.
type metric struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	label   string
	samples []sample
	ages    []age // instead of the samples' values
}

type sample struct {
	label string // the value of the metric's label
	value func(s *ringcache.Stats) float64
}

// age is what is shown of a ring.
type age func(z *ringcache.Sizing) float64

// value returns what to show of a sample.
func (m metric) value(i int, stats *ringcache.Stats, sizing *ringcache.Sizing) float64 {
	if m.ages != nil {
		return m.ages[i](sizing)
	}
	return m.samples[i].value(stats)
}

// labels returns the values of the labels that the description names.
func (m metric) labels(cache string, s sample) []string {
	if m.label == "" {
		return []string{cache}
	}
	return []string{cache, s.label}
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// one returns a metric without an extra label.
func one(
	kind prometheus.ValueType, name, help string, value func(s *ringcache.Stats) float64,
) metric {
	return by("", kind, name, help, sample{value: value})
}

// by returns a metric with an extra label.
func by(label string, kind prometheus.ValueType, name, help string, samples ...sample) metric {
	labels := []string{"cache"}
	if label != "" {
		labels = append(labels, label)
	}
	return metric{
		desc:    prometheus.NewDesc("ringcache_"+name, help, labels, nil),
		kind:    kind,
		label:   label,
		samples: samples,
	}
}

type compressed = ringcache.CompressionStats

// compression returns a sample of a field of Stats.Compression.
func compression(label string, value func(z *compressed) uint64) sample {
	return sample{label, func(s *ringcache.Stats) float64 { return float64(value(&s.Compression)) }}
}

// byRing returns a metric of the small ring and of the main ring.
func byRing(name, help string, small, main age) metric {
	m := by("ring", gauge, name, help, sample{label: "small"}, sample{label: "main"})
	m.ages = []age{small, main}
	return m
}

// metrics are all that is shown of a cache.
var metrics = []metric{
	by("result", counter, "lookups_total",
		"Keys that were looked up, by whether they were found.",
		sample{"hit", func(s *ringcache.Stats) float64 { return float64(hits(s)) }},
		sample{"miss", func(s *ringcache.Stats) float64 { return float64(s.Misses) }}),
	one(counter, "sets_total",
		"Calls that set a key, refused ones included.",
		func(s *ringcache.Stats) float64 { return float64(s.SetCalls) }),
	by("cause", counter, "refused_values_total",
		"Values that were not stored, by cause: too large, no memory from the operating "+
			"system, a time to live that is too short, a closed cache.",
		sample{"too_large", func(s *ringcache.Stats) float64 { return float64(s.Refused.TooLarge) }},
		sample{"no_memory", func(s *ringcache.Stats) float64 { return float64(s.Refused.NoMemory) }},
		sample{"too_short", func(s *ringcache.Stats) float64 { return float64(s.Refused.TTLTooShort) }},
		sample{"closed", func(s *ringcache.Stats) float64 { return float64(s.Refused.Closed) }}),
	one(counter, "deletes_total",
		"Calls that delete a key.",
		func(s *ringcache.Stats) float64 { return float64(s.DelCalls) }),

	one(counter, "loads_total",
		"Loads of missing or soon expired values that were started.",
		func(s *ringcache.Stats) float64 { return float64(s.Loads.Started) }),
	one(counter, "load_errors_total",
		"Loads that ended with an error or a panic.",
		func(s *ringcache.Stats) float64 { return float64(s.Loads.Errors) }),
	one(counter, "loads_dropped_total",
		"Loads whose value was not stored: the key was written meanwhile, nobody waited "+
			"any more, or the cache refused it.",
		func(s *ringcache.Stats) float64 { return float64(s.Loads.Dropped) }),
	one(counter, "stale_hits_total",
		"Keys that were answered with an expired value, as their load had failed.",
		func(s *ringcache.Stats) float64 { return float64(s.Loads.StaleHits) }),
	one(counter, "negative_hits_total",
		"Keys that were not loaded, as an earlier load had found that they have no value.",
		func(s *ringcache.Stats) float64 { return float64(s.Loads.NegativeHits) }),

	by("cause", counter, "evicted_entries_total",
		"Entries that were dropped to make room, by cause: not read in the small ring, at "+
			"the end of the main ring or of the cold part, or crowded out of the index.",
		sample{"small", func(s *ringcache.Stats) float64 { return float64(s.Policy.EvictedSmall) }},
		sample{"main", func(s *ringcache.Stats) float64 { return float64(s.Policy.EvictedMain) }},
		sample{"cold", func(s *ringcache.Stats) float64 { return float64(s.Policy.EvictedCold) }},
		sample{"crowd", func(s *ringcache.Stats) float64 { return float64(s.Policy.EvictedCrowd) }}),
	one(counter, "evicted_bytes_total",
		"Bytes of the entries that were dropped to make room.",
		func(s *ringcache.Stats) float64 { return float64(s.EvictedBytes) }),
	one(counter, "expired_entries_total",
		"Entries that were removed after their time to live.",
		func(s *ringcache.Stats) float64 { return float64(s.ExpiredEntries) }),
	one(counter, "expired_bytes_total",
		"Bytes of the entries that were removed after their time to live.",
		func(s *ringcache.Stats) float64 { return float64(s.ExpiredBytes) }),

	one(counter, "cold_hits_total",
		"Lookups that found their key in the cold part. They are hits.",
		func(s *ringcache.Stats) float64 { return float64(s.Compression.ColdHits) }),
	one(counter, "compressed_values_total",
		"Values that were compressed.",
		func(s *ringcache.Stats) float64 { return float64(s.Compression.Compressed) }),
	by("when", counter, "compressed_bytes_total",
		"Bytes of the entries whose values were compressed, before and after.",
		compression("before", func(z *compressed) uint64 { return z.BytesBefore }),
		compression("after", func(z *compressed) uint64 { return z.BytesAfter })),
	by("reason", counter, "uncompressed_values_total",
		"Values that went to the cold part uncompressed, by reason: compression would save too "+
			"little, they are short, or the queue of the compressor was full.",
		compression("no_gain", func(z *compressed) uint64 { return z.UncompressedNoGain }),
		compression("short", func(z *compressed) uint64 { return z.UncompressedShort }),
		compression("queue_full", func(z *compressed) uint64 { return z.UncompressedQueueFull })),
	by("operation", counter, "compressor_errors_total",
		"Failures of the compressor.",
		compression("compress", func(z *compressed) uint64 { return z.CompressErrors }),
		compression("decompress", func(z *compressed) uint64 { return z.DecompressErrors })),
	one(counter, "compressor_seconds_total",
		"Time that was spent compressing.",
		func(s *ringcache.Stats) float64 { return s.Compression.CompressTime.Seconds() }),

	one(counter, "promotions_total",
		"Entries that moved from the small ring to the main ring.",
		func(s *ringcache.Stats) float64 { return float64(s.Policy.Promotions) }),
	one(counter, "reinsertions_total",
		"Entries that stayed in the main ring for another round because they were read.",
		func(s *ringcache.Stats) float64 { return float64(s.Policy.Reinsertions) }),
	one(counter, "moved_bytes_total",
		"Bytes of the entries that were copied within the cache to keep them: promoted, "+
			"reinserted or compacted.",
		func(s *ringcache.Stats) float64 { return float64(s.Policy.MovedBytes) }),
	one(counter, "ghost_hits_total",
		"Sets of entries that had been dropped not long ago. A larger cache would have "+
			"kept some of them.",
		func(s *ringcache.Stats) float64 { return float64(s.Policy.GhostHits) }),
	one(counter, "near_misses_total",
		"Lookups that missed an entry that had been dropped not long ago. A larger cache "+
			"would have found most of them.",
		func(s *ringcache.Stats) float64 { return float64(s.Policy.NearMisses) }),
	one(counter, "hash_collisions_total",
		"Entries that a call looked at and that turned out to have another key.",
		func(s *ringcache.Stats) float64 { return float64(s.Collisions) }),
	one(counter, "corruptions_total",
		"Damaged entries. More than 0 means that something else writes to the memory of "+
			"the cache.",
		func(s *ringcache.Stats) float64 { return float64(s.Corruptions) }),

	by("source", counter, "restored_entries_total",
		"Entries that were restored, by where they came from: a snapshot, or the file of "+
			"the cache.",
		sample{"snapshot", func(s *ringcache.Stats) float64 {
			return float64(s.Snapshots.RestoredEntries)
		}},
		sample{"file", func(s *ringcache.Stats) float64 { return float64(s.File.RecoveredEntries) }}),
	by("source", counter, "restored_bytes_total",
		"Bytes of the entries that came from the file of the cache. Those of snapshots are "+
			"not counted.",
		sample{"file", func(s *ringcache.Stats) float64 { return float64(s.File.RecoveredBytes) }}),
	by("source", counter, "restore_discards_total",
		"What could not be restored: damaged or missing blocks of snapshots, damaged or "+
			"unfinished records of the file, and the whole file, as one.",
		sample{"snapshot", func(s *ringcache.Stats) float64 {
			return float64(s.Snapshots.DiscardedBlocks)
		}},
		sample{"file", func(s *ringcache.Stats) float64 { return float64(s.File.DiscardedRecords) }},
		sample{"whole", func(s *ringcache.Stats) float64 { return float64(s.File.DiscardedFiles) }}),

	one(gauge, "entries",
		"Entries in the cache, with expired ones that have not been removed yet.",
		func(s *ringcache.Stats) float64 { return float64(s.EntriesCount) }),
	one(gauge, "cold_entries",
		"Entries in the cold part.",
		func(s *ringcache.Stats) float64 { return float64(s.Compression.ColdEntries) }),
	one(gauge, "cold_bytes",
		"Bytes of the entries in the cold part, as they are there.",
		func(s *ringcache.Stats) float64 { return float64(s.Compression.ColdBytes) }),
	one(gauge, "ghosts",
		"Dropped entries that are still remembered. So many entries more would a cache have "+
			"that finds the near misses.",
		func(s *ringcache.Stats) float64 { return float64(s.Policy.Ghosts) }),
	byRing("eviction_age_seconds",
		"How long entries are in a ring before they are dropped, unless they are read. 0 is "+
			"not known yet.",
		func(z *ringcache.Sizing) float64 { return z.SmallAge.Seconds() },
		func(z *ringcache.Sizing) float64 { return z.MainAge.Seconds() }),
	byRing("eviction_age_sets",
		"The same, in values that the cache has stored meanwhile.",
		func(z *ringcache.Sizing) float64 { return float64(z.SmallAgeSets) },
		func(z *ringcache.Sizing) float64 { return float64(z.MainAgeSets) }),
	one(gauge, "entries_bytes",
		"Bytes of the entries: keys, values and headers.",
		func(s *ringcache.Stats) float64 { return float64(s.BytesSize) }),
	one(gauge, "memory_bytes",
		"Memory outside of the Go heap that the cache holds, index included.",
		func(s *ringcache.Stats) float64 { return float64(s.ReservedBytes) }),
	one(gauge, "dead_bytes",
		"The part of the memory that replaced, deleted, invalidated and expired entries still "+
			"take.",
		func(s *ringcache.Stats) float64 { return float64(s.DeadBytes) }),
	one(gauge, "index_bytes",
		"The part of the memory that is the index.",
		func(s *ringcache.Stats) float64 { return float64(s.IndexBytes) }),
	one(gauge, "memory_limit_bytes",
		"The bound on the memory.",
		func(s *ringcache.Stats) float64 { return float64(s.MaxBytesSize) }),
	one(gauge, "memory_effective_limit_bytes",
		"The bound in force: less than the bound as long as the system refuses memory.",
		func(s *ringcache.Stats) float64 { return float64(s.EffectiveMaxBytes) }),
}

// hits returns the lookups that found their key. The two counts are not of the same
// instant, so there may seem to be more misses than lookups.
func hits(s *ringcache.Stats) uint64 {
	return s.GetCalls - min(s.Misses, s.GetCalls)
}
