package ringotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ringcache/ringcache"
)

// instrument is what readers see of every cache: one value, or one for each value of an
// attribute. Names and units follow the semantic conventions for metrics.
type instrument struct {
	kind              kind
	name, unit, about string
	values            []value
}

type value struct {
	attributes []attribute.KeyValue
	of         func(s *ringcache.Stats) uint64
}

// kind is the kind of an instrument. The conventions have no gauge for amounts that can
// be added up over caches and processes, such as bytes.
type kind int

const (
	counter kind = iota
	upDownCounter
)

// make returns the instrument of a meter, the same one each time.
func (i instrument) make(meter metric.Meter) (metric.Int64Observable, error) {
	if i.kind == counter {
		return meter.Int64ObservableCounter(i.name,
			metric.WithUnit(i.unit), metric.WithDescription(i.about))
	}
	return meter.Int64ObservableUpDownCounter(i.name,
		metric.WithUnit(i.unit), metric.WithDescription(i.about))
}

// one is for instruments without an extra attribute.
func one(of func(s *ringcache.Stats) uint64) []value { return []value{{of: of}} }

// with is the value of an instrument for a value of its attribute.
func with(key attribute.Key, name string, of func(s *ringcache.Stats) uint64) value {
	return value{[]attribute.KeyValue{key.String(name)}, of}
}

// instruments are all that is shown of a cache.
var instruments = []instrument{
	{counter, "ringcache.lookups", "{lookup}",
		"Keys that were looked up, by whether they were found.", []value{
			with(LookupResult, "hit", hits),
			with(LookupResult, "miss", func(s *ringcache.Stats) uint64 { return s.Misses }),
		}},
	{counter, "ringcache.sets", "{call}",
		"Calls that set a key, refused ones included.",
		one(func(s *ringcache.Stats) uint64 { return s.SetCalls })},
	{counter, "ringcache.refusals", "{value}",
		"Values that were not stored, by cause.", []value{
			with(RefusalCause, "too_large", func(s *ringcache.Stats) uint64 { return s.Refused.TooLarge }),
			with(RefusalCause, "no_memory", func(s *ringcache.Stats) uint64 { return s.Refused.NoMemory }),
			with(RefusalCause, "too_short",
				func(s *ringcache.Stats) uint64 { return s.Refused.TTLTooShort }),
			with(RefusalCause, "closed", func(s *ringcache.Stats) uint64 { return s.Refused.Closed }),
		}},
	{counter, "ringcache.deletes", "{call}",
		"Calls that delete a key.",
		one(func(s *ringcache.Stats) uint64 { return s.DelCalls })},

	{counter, "ringcache.loads", "{load}",
		"Loads of missing or soon expired values that were started.",
		one(func(s *ringcache.Stats) uint64 { return s.Loads.Started })},
	{counter, "ringcache.load.errors", "{load}",
		"Loads that ended with an error or a panic.",
		one(func(s *ringcache.Stats) uint64 { return s.Loads.Errors })},
	{counter, "ringcache.load.drops", "{load}",
		"Loads whose value was not stored: the key was written meanwhile, nobody waited any " +
			"more, or the cache refused it.",
		one(func(s *ringcache.Stats) uint64 { return s.Loads.Dropped })},
	{counter, "ringcache.stale.hits", "{key}",
		"Keys that were answered with an expired value, as their load had failed.",
		one(func(s *ringcache.Stats) uint64 { return s.Loads.StaleHits })},
	{counter, "ringcache.negative.hits", "{key}",
		"Keys that were not loaded, as an earlier load had found that they have no value.",
		one(func(s *ringcache.Stats) uint64 { return s.Loads.NegativeHits })},

	{counter, "ringcache.evictions", "{entry}",
		"Entries that were dropped to make room, by cause.", []value{
			with(EvictionCause, "small", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedSmall }),
			with(EvictionCause, "main", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedMain }),
			with(EvictionCause, "cold", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedCold }),
			with(EvictionCause, "crowd", func(s *ringcache.Stats) uint64 { return s.Policy.EvictedCrowd }),
		}},
	{counter, "ringcache.eviction.size", "By",
		"Size of the entries that were dropped to make room.",
		one(func(s *ringcache.Stats) uint64 { return s.EvictedBytes })},
	{counter, "ringcache.expirations", "{entry}",
		"Entries that were removed after their time to live.",
		one(func(s *ringcache.Stats) uint64 { return s.ExpiredEntries })},
	{counter, "ringcache.expiration.size", "By",
		"Size of the entries that were removed after their time to live.",
		one(func(s *ringcache.Stats) uint64 { return s.ExpiredBytes })},

	{counter, "ringcache.cold.hits", "{lookup}",
		"Lookups that found their key in the cold part. They are hits.",
		one(func(s *ringcache.Stats) uint64 { return s.Compression.ColdHits })},
	{counter, "ringcache.compressed.values", "{value}",
		"Values that were compressed.",
		one(func(s *ringcache.Stats) uint64 { return s.Compression.Compressed })},
	{counter, "ringcache.compressed.size", "By",
		"Size of the entries whose values were compressed, before and after.", []value{
			with(CompressedWhen, "before",
				func(s *ringcache.Stats) uint64 { return s.Compression.BytesBefore }),
			with(CompressedWhen, "after",
				func(s *ringcache.Stats) uint64 { return s.Compression.BytesAfter }),
		}},
	{counter, "ringcache.uncompressed.values", "{value}",
		"Values that went to the cold part uncompressed, by reason: compression would save too " +
			"little, they are short, or the queue of the compressor was full.", []value{
			with(UncompressedReason, "no_gain",
				func(s *ringcache.Stats) uint64 { return s.Compression.UncompressedNoGain }),
			with(UncompressedReason, "short",
				func(s *ringcache.Stats) uint64 { return s.Compression.UncompressedShort }),
			with(UncompressedReason, "queue_full",
				func(s *ringcache.Stats) uint64 { return s.Compression.UncompressedQueueFull }),
		}},
	{counter, "ringcache.compressor.errors", "{call}",
		"Failures of the compressor.", []value{
			with(CompressorOperation, "compress",
				func(s *ringcache.Stats) uint64 { return s.Compression.CompressErrors }),
			with(CompressorOperation, "decompress",
				func(s *ringcache.Stats) uint64 { return s.Compression.DecompressErrors }),
		}},

	{counter, "ringcache.promotions", "{entry}",
		"Entries that moved from the small ring to the main ring.",
		one(func(s *ringcache.Stats) uint64 { return s.Policy.Promotions })},
	{counter, "ringcache.reinsertions", "{entry}",
		"Entries that stayed in the main ring for another round because they were read.",
		one(func(s *ringcache.Stats) uint64 { return s.Policy.Reinsertions })},
	{counter, "ringcache.move.size", "By",
		"Size of the entries that were copied within the cache to keep them: promoted, " +
			"reinserted or compacted.",
		one(func(s *ringcache.Stats) uint64 { return s.Policy.MovedBytes })},
	{counter, "ringcache.ghost.hits", "{entry}",
		"Sets of entries that had been dropped not long ago. A larger cache would have kept " +
			"some of them.",
		one(func(s *ringcache.Stats) uint64 { return s.Policy.GhostHits })},
	{counter, "ringcache.near_misses", "{lookup}",
		"Lookups that missed an entry that had been dropped not long ago. A larger cache would " +
			"have found most of them.",
		one(func(s *ringcache.Stats) uint64 { return s.Policy.NearMisses })},
	{counter, "ringcache.hash.collisions", "{entry}",
		"Entries that a call looked at and that turned out to have another key.",
		one(func(s *ringcache.Stats) uint64 { return s.Collisions })},
	{counter, "ringcache.corruptions", "{entry}",
		"Damaged entries. More than 0 means that something else writes to the memory of the " +
			"cache.",
		one(func(s *ringcache.Stats) uint64 { return s.Corruptions })},

	{counter, "ringcache.restorations", "{entry}",
		"Entries that were restored, by where they came from: a snapshot, or the file of the " +
			"cache.", []value{
			with(RestorationSource, "snapshot",
				func(s *ringcache.Stats) uint64 { return s.Snapshots.RestoredEntries }),
			with(RestorationSource, "file",
				func(s *ringcache.Stats) uint64 { return s.File.RecoveredEntries }),
		}},
	{counter, "ringcache.restoration.size", "By",
		"Size of the entries that came from the file of the cache. That of snapshots is not " +
			"counted.", []value{
			with(RestorationSource, "file",
				func(s *ringcache.Stats) uint64 { return s.File.RecoveredBytes }),
		}},
	{counter, "ringcache.restoration.discards", "{part}",
		"What could not be restored: damaged or missing blocks of snapshots, damaged or " +
			"unfinished records of the file, and the whole file, as one.", []value{
			with(RestorationSource, "snapshot",
				func(s *ringcache.Stats) uint64 { return s.Snapshots.DiscardedBlocks }),
			with(RestorationSource, "file",
				func(s *ringcache.Stats) uint64 { return s.File.DiscardedRecords }),
			with(RestorationSource, "whole",
				func(s *ringcache.Stats) uint64 { return s.File.DiscardedFiles }),
		}},

	{upDownCounter, "ringcache.entry.count", "{entry}",
		"Entries in the cache, with expired ones that have not been removed yet.",
		one(func(s *ringcache.Stats) uint64 { return s.EntriesCount })},
	{upDownCounter, "ringcache.cold.count", "{entry}",
		"Entries in the cold part.",
		one(func(s *ringcache.Stats) uint64 { return s.Compression.ColdEntries })},
	{upDownCounter, "ringcache.cold.size", "By",
		"Size of the entries in the cold part, as they are there.",
		one(func(s *ringcache.Stats) uint64 { return s.Compression.ColdBytes })},
	{upDownCounter, "ringcache.ghost.count", "{entry}",
		"Dropped entries that are still remembered. So many entries more would a cache have " +
			"that finds the near misses.",
		one(func(s *ringcache.Stats) uint64 { return s.Policy.Ghosts })},
	{upDownCounter, "ringcache.entry.size", "By",
		"Size of the entries: keys, values and headers.",
		one(func(s *ringcache.Stats) uint64 { return s.BytesSize })},
	{upDownCounter, "ringcache.memory.usage", "By",
		"Memory outside of the Go heap that the cache holds, index included.",
		one(func(s *ringcache.Stats) uint64 { return s.ReservedBytes })},
	{upDownCounter, "ringcache.dead.usage", "By",
		"The part of the memory that replaced, deleted, invalidated and expired entries still " +
			"take.",
		one(func(s *ringcache.Stats) uint64 { return s.DeadBytes })},
	{upDownCounter, "ringcache.index.usage", "By",
		"The part of the memory that is the index.",
		one(func(s *ringcache.Stats) uint64 { return s.IndexBytes })},
	{upDownCounter, "ringcache.memory.limit", "By",
		"The bound on the memory.",
		one(func(s *ringcache.Stats) uint64 { return s.MaxBytesSize })},
	{upDownCounter, "ringcache.memory.effective_limit", "By",
		"The bound in force: less than the bound as long as the system refuses memory.",
		one(func(s *ringcache.Stats) uint64 { return s.EffectiveMaxBytes })},
}

// age is a gauge of what is no amount, with a value for each ring.
type age struct {
	name, unit, about string
	small, main       func(z *ringcache.Sizing) float64
}

// make returns the instrument of a meter, the same one each time.
func (a age) make(meter metric.Meter) (metric.Float64ObservableGauge, error) {
	return meter.Float64ObservableGauge(a.name,
		metric.WithUnit(a.unit), metric.WithDescription(a.about))
}

// ages are shown of a cache beside its instruments.
var ages = []age{
	{"ringcache.eviction.age", "s",
		"How long entries are in a ring before they are dropped, unless they are read. 0 is " +
			"not known yet.",
		func(z *ringcache.Sizing) float64 { return z.SmallAge.Seconds() },
		func(z *ringcache.Sizing) float64 { return z.MainAge.Seconds() }},
	{"ringcache.eviction.distance", "{value}",
		"The same, in values that the cache has stored meanwhile.",
		func(z *ringcache.Sizing) float64 { return float64(z.SmallAgeSets) },
		func(z *ringcache.Sizing) float64 { return float64(z.MainAgeSets) }},
}

// hits returns the lookups that found their key. The two counts are not of the same
// instant, so there may seem to be more misses than lookups.
func hits(s *ringcache.Stats) uint64 {
	return s.GetCalls - min(s.Misses, s.GetCalls)
}
