// Package metricstest provides statistics for the tests of adapters that export package metrics.
package metricstest

import (
	"time"

	"github.com/ringcache/ringcache"
)

// Stats returns statistics of which each has another value.
func Stats() ringcache.Stats {
	return ringcache.Stats{
		GetCalls: 103, SetCalls: 2, DelCalls: 3, Misses: 7, Collisions: 8, Corruptions: 9,
		EvictedEntries: 33, EvictedBytes: 10, EvictedMisses: 29, ExpiredEntries: 14,
		EntriesCount: 19, BytesSize: 20, MaxBytesSize: 21, EffectiveMaxBytes: 51, ReservedBytes: 22,
		IndexBytes: 23, DeadBytes: 53, RestoredEntries: 24,
		Refused: ringcache.RefusedStats{TooLarge: 47, NoMemory: 48, TTLTooShort: 49},
		Loads: ringcache.LoadStats{
			Started: 4, Errors: 5, Dropped: 6, StaleHits: 33, NegativeHits: 54,
		},
		Compression: ringcache.CompressionStats{
			ColdHits: 35, Compressed: 36, BytesBefore: 37, BytesAfter: 38, Errors: 42,
			CompressTime: 44 * time.Second, ColdEntries: 45,
		},
		File: ringcache.FileStats{
			RecoveredEntries: 26, DiscardedRecords: 28, DiscardedFiles: 90,
		},
	}
}
