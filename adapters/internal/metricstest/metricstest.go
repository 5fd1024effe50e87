// Package metricstest provides figures for the tests of adapters that export package metrics.
package metricstest

import (
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// Source returns a source of figures that all differ.
func Source() *metrics.Source {
	return &metrics.Source{Update: func(f *metrics.Figures) bool {
		*f = metrics.Figures{Stats: stats(), Sizing: ringcache.Sizing{
			SmallAge: 1500 * time.Millisecond, MainAge: time.Minute, SmallAgeSets: 31, MainAgeSets: 32,
		}}
		return true
	}}
}

func stats() ringcache.Stats {
	return ringcache.Stats{
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
}
