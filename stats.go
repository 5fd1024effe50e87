package ringcache

import (
	"time"

	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/store"
)

// Stats are the counters and gauges of a cache, in the units that each field names.
// [Cache.UpdateStats] adds to them, so one Stats can be the sum of several caches. Counts are
// exact, but they are collected bucket by bucket: a concurrent call may be counted in one field and
// not yet in another.
//
// Counters never decrease during the life of the cache; Reset, Resize and Close leave them
// unchanged. (The difference of two counters may decrease: a lookup can be among GetCalls before it
// is known to be a miss.) [Stats.Sub] returns their growth. Fields documented as gauges are the
// state at the time of the call.
type Stats struct {
	// GetCalls counts looked-up keys: one for each Get, HasGet, GetWithTTL, Has, View and GetOrLoad,
	// and one for each key of GetBatch and GetOrLoadBatch. Peek, HasGetUncounted and TTL do not count.
	GetCalls uint64

	// SetCalls counts calls to Set, SetWithTTL, SetIfAbsent, SetIfChanged, CompareAndSwap, Append, and
	// Update if it keeps the key, once each, and each key of SetBatch. Calls that were refused or
	// stored nothing count too; Touch and the results of loads do not.
	SetCalls uint64

	// DelCalls counts calls to Del and GetAndDel, and to Update if it does not keep the key.
	DelCalls uint64

	// Misses counts the GetCalls that found no value.
	Misses uint64

	// Collisions counts live records that a call examined because their hash matched (39 bits of it),
	// and that turned out to have another key.
	Collisions uint64

	// Corruptions counts records with an invalid header, or whose value could not be decompressed. It
	// stays 0 unless the memory or the file of the cache is damaged, most often by other code in the
	// process that writes to it, or a Compressor fails.
	Corruptions uint64

	// EvictedEntries and EvictedBytes count entries, and the bytes of their records, that were dropped
	// to make room. Entries that were replaced by a Set, removed by Del or Namespace.Invalidate,
	// dropped by Reset, or expired do not count. Policy breaks them down by cause.
	EvictedEntries uint64
	EvictedBytes   uint64

	// ExpiredEntries and ExpiredBytes count entries, and the bytes of their records, that were removed
	// after they had expired: by a Set, by DeleteExpired, or when their memory was needed. They are
	// not among EvictedEntries.
	ExpiredEntries uint64
	ExpiredBytes   uint64

	// EntriesCount is a gauge: the number of entries. It includes expired and invalidated entries that
	// have not been removed yet, and the negative entries of GetOrLoad.
	EntriesCount uint64

	// BytesSize is a gauge: the bytes of the records of these entries. They are keys, values as they
	// are stored, and headers of 3 or 7 bytes, plus 4 for an expiry, 8 with Options.ExpireAfterAccess,
	// and 4 in Options.File. A negative entry is a header of 11 bytes, or 15 in Options.File, and its
	// key.
	BytesSize uint64

	// MaxBytesSize is a gauge: the bound on off-heap memory, as last set by Resize.
	MaxBytesSize uint64

	// EffectiveMaxBytes is a gauge: the bound in force. It is MaxBytesSize, or less as long as the
	// operating system refuses memory or the file system of Options.File is full. The cache then works
	// at that size, and asks for more from time to time.
	EffectiveMaxBytes uint64

	// ReservedBytes is a gauge: the off-heap memory that records and indexes currently hold, in whole
	// chunks. It is at most MaxBytesSize, except while Resize makes the cache smaller, and with
	// Options.File where the index comes on top of the bound. It does not include memory that is free
	// for reuse, after Reset for example.
	ReservedBytes uint64

	// DeadBytes is a gauge: the part of ReservedBytes that holds records which were replaced, deleted,
	// expired or invalidated, and whose memory has not been reused yet.
	DeadBytes uint64

	// IndexBytes is a gauge: the part of ReservedBytes that holds indexes.
	IndexBytes uint64

	Refused     RefusedStats     // writes that stored nothing
	Policy      PolicyStats      // of the eviction policy
	Loads       LoadStats        // of GetOrLoad and GetOrLoadBatch
	Compression CompressionStats // with Options.Compressor
	Snapshots   SnapshotStats    // of loaded snapshots
	File        FileStats        // of Options.File when the cache was made
}

// RefusedStats count the values that Sets and loads did not store, by error.
type RefusedStats struct {
	TooLarge    uint64 // ErrTooLarge
	NoMemory    uint64 // ErrNoMemory
	TTLTooShort uint64 // ErrTTLTooShort
	Closed      uint64 // ErrClosed
}

// PolicyStats count the actions of the eviction policy, and show whether a larger cache would help.
// The small ring and the main ring are those of [PolicyS3FIFO].
type PolicyStats struct {
	// Stats.EvictedEntries is the sum of the next four counters, one for each cause. EvictedSmall
	// counts entries that left the small ring because they had not been read in it, or not often
	// enough; EvictedMain, those that left the main ring (with PolicyFIFO, all entries); EvictedCold,
	// those that left the cold part; and EvictedCrowd, those for which the index had no place, which
	// happens, as long as there is free memory, only to keys with equal hashes.
	EvictedSmall uint64
	EvictedMain  uint64
	EvictedCold  uint64
	EvictedCrowd uint64

	// Promotions counts entries that moved from the small ring to the main one; Reinsertions,
	// those that were read in the main ring and started another round in it.
	Promotions   uint64
	Reinsertions uint64

	// GhostHits counts Sets of new entries whose hash was still remembered from an eviction. These go
	// straight to the main ring where that has proved beneficial.
	GhostHits uint64

	// NearMisses counts misses on keys that are still remembered from an eviction: the cache keeps the
	// hashes of some of the entries that it has dropped recently. A larger cache would have found most
	// of them: see [Stats.Gain].
	NearMisses uint64

	// MovedBytes counts the bytes of records that the cache itself has copied, by promotions,
	// reinsertions and compaction. It does not include the bytes that Sets write.
	MovedBytes uint64

	// Ghosts is a gauge: the number of evicted entries whose hashes are remembered.
	Ghosts uint64
}

// LoadStats count the loads of GetOrLoad and GetOrLoadBatch, one for each key of a batch.
type LoadStats struct {
	// Started counts the loads that were started; Errors, those that ended with an error or a panic,
	// or by exiting their goroutine; Dropped, those whose result was not stored because the key was
	// written during the load, no caller waited any more, or the cache refused it (a negative TTL does
	// not count).
	Started uint64
	Errors  uint64
	Dropped uint64

	// StaleHits counts the keys for which an expired value was returned because their load had failed
	// (Options.StaleIfError). They are among Stats.Misses.
	StaleHits uint64

	// NegativeHits counts the keys that were not loaded because an earlier load had found that they
	// have no value (ErrAbsent). They are among Stats.Misses, and not among Started.
	NegativeHits uint64
}

// CompressionStats describe the cold part of the cache, and are 0 without Options.Compressor.
type CompressionStats struct {
	// ColdHits counts lookups that found their key in the cold part. They are hits.
	ColdHits uint64

	// Compressed counts values that were compressed; BytesBefore and BytesAfter, the bytes of their
	// records before and after compression: see [Stats.ColdRatio].
	Compressed  uint64
	BytesBefore uint64
	BytesAfter  uint64

	// These fields count values that went to the cold part uncompressed: UncompressedNoGain, those
	// that seemed incompressible, those that compression shortened too little, and those that were
	// skipped because others of their size had gained too little; UncompressedShort, those below 48
	// bytes; UncompressedQueueFull, those that the compressing goroutine had no time for.
	UncompressedNoGain    uint64
	UncompressedShort     uint64
	UncompressedQueueFull uint64

	// CompressErrors counts calls to the Compressor that failed or panicked while compressing or
	// building a dictionary, and dictionaries that could not be written to Options.File + ".dict".
	CompressErrors uint64

	// DecompressErrors counts calls that failed while decompressing, or returned bytes that differ
	// from those set. Such an entry is a miss, and counts in Stats.Corruptions.
	DecompressErrors uint64

	// CompressTime is the time that the goroutine has spent compressing.
	CompressTime time.Duration

	// ColdEntries and ColdBytes are gauges: the number of entries in the cold part, which are among
	// Stats.EntriesCount, and the bytes of their records there.
	ColdEntries uint64
	ColdBytes   uint64
}

// SnapshotStats count the entries and blocks of the snapshots that were loaded.
type SnapshotStats struct {
	// RestoredEntries counts entries stored by [Load], [LoadFromFile] and [Cache.ReadSnapshot].
	RestoredEntries uint64

	// DiscardedBlocks counts blocks that [Load] had to leave out: [LoadReport.DiscardedBlocks].
	DiscardedBlocks uint64
}

// FileStats count the entries that the cache found in Options.File when it was made, and the data
// that it could not use.
type FileStats struct {
	// RecoveredEntries and RecoveredBytes count the entries that came back, and their bytes.
	RecoveredEntries uint64
	RecoveredBytes   uint64

	// DiscardedRecords counts unusable records: those that were being written when the process died,
	// damaged ones, and those that may have expired. A damaged ring of records counts as one.
	DiscardedRecords uint64

	// DiscardedFiles is 1 if the file was emptied because it had a different Options.Version, its
	// header was damaged, or the machine had crashed.
	DiscardedFiles uint64
}

// Sub returns the change since earlier, the statistics of the same cache at an earlier time: the
// differences of the counters, with the gauges of s. [Stats.HitRatio], [Stats.Gain] and
// [Stats.ColdRatio] of the result are those of the time in between.
func (s Stats) Sub(earlier Stats) Stats {
	s.GetCalls -= earlier.GetCalls
	s.SetCalls -= earlier.SetCalls
	s.DelCalls -= earlier.DelCalls
	s.Misses -= earlier.Misses
	s.Collisions -= earlier.Collisions
	s.Corruptions -= earlier.Corruptions
	s.EvictedEntries -= earlier.EvictedEntries
	s.EvictedBytes -= earlier.EvictedBytes
	s.ExpiredEntries -= earlier.ExpiredEntries
	s.ExpiredBytes -= earlier.ExpiredBytes
	s.Refused.sub(&earlier.Refused)
	s.Policy.sub(&earlier.Policy)
	s.Loads.sub(&earlier.Loads)
	s.Compression.sub(&earlier.Compression)
	s.Snapshots.sub(&earlier.Snapshots)
	s.File.sub(&earlier.File)
	return s
}

func (s *RefusedStats) sub(earlier *RefusedStats) {
	s.TooLarge -= earlier.TooLarge
	s.NoMemory -= earlier.NoMemory
	s.TTLTooShort -= earlier.TTLTooShort
	s.Closed -= earlier.Closed
}

func (s *PolicyStats) sub(earlier *PolicyStats) {
	s.EvictedSmall -= earlier.EvictedSmall
	s.EvictedMain -= earlier.EvictedMain
	s.EvictedCold -= earlier.EvictedCold
	s.EvictedCrowd -= earlier.EvictedCrowd
	s.Promotions -= earlier.Promotions
	s.Reinsertions -= earlier.Reinsertions
	s.GhostHits -= earlier.GhostHits
	s.NearMisses -= earlier.NearMisses
	s.MovedBytes -= earlier.MovedBytes
}

func (s *LoadStats) sub(earlier *LoadStats) {
	s.Started -= earlier.Started
	s.Errors -= earlier.Errors
	s.Dropped -= earlier.Dropped
	s.StaleHits -= earlier.StaleHits
	s.NegativeHits -= earlier.NegativeHits
}

func (s *CompressionStats) sub(earlier *CompressionStats) {
	s.ColdHits -= earlier.ColdHits
	s.Compressed -= earlier.Compressed
	s.BytesBefore -= earlier.BytesBefore
	s.BytesAfter -= earlier.BytesAfter
	s.UncompressedNoGain -= earlier.UncompressedNoGain
	s.UncompressedShort -= earlier.UncompressedShort
	s.UncompressedQueueFull -= earlier.UncompressedQueueFull
	s.CompressErrors -= earlier.CompressErrors
	s.DecompressErrors -= earlier.DecompressErrors
	s.CompressTime -= earlier.CompressTime
}

func (s *SnapshotStats) sub(earlier *SnapshotStats) {
	s.RestoredEntries -= earlier.RestoredEntries
	s.DiscardedBlocks -= earlier.DiscardedBlocks
}

func (s *FileStats) sub(earlier *FileStats) {
	s.RecoveredEntries -= earlier.RecoveredEntries
	s.RecoveredBytes -= earlier.RecoveredBytes
	s.DiscardedRecords -= earlier.DiscardedRecords
	s.DiscardedFiles -= earlier.DiscardedFiles
}

// HitRatio returns the fraction of lookups that found their key, from 0 to 1; 0 if there were none.
// Counters start with the cache: use [Stats.Sub] for the ratio of an interval.
func (s Stats) HitRatio() float64 {
	// An interval can have more misses than lookups: some of the lookups began before it.
	if s.Misses >= s.GetCalls {
		return 0
	}
	return float64(s.GetCalls-s.Misses) / float64(s.GetCalls)
}

// ColdRatio returns the factor by which compression has made records smaller, counting those that
// it was useful for: BytesBefore over BytesAfter; 0 if there were none.
func (s Stats) ColdRatio() float64 {
	if s.Compression.BytesAfter == 0 {
		return 0
	}
	return float64(s.Compression.BytesBefore) / float64(s.Compression.BytesAfter)
}

// LargerBy returns how much larger than this cache the one assumed by [Stats.Gain] is: 0.5 for a
// cache with room for 50 % more entries. It is Policy.Ghosts over EntriesCount, so it is meaningful
// only for a full cache, not after Reset or after most of the entries were removed.
func (s Stats) LargerBy() float64 {
	return float64(s.Policy.Ghosts) / float64(max(s.EntriesCount, 1))
}

// Gain returns the fraction of lookups, from 0 to 1, that missed and would have hit in a cache
// larger by LargerBy: if LargerBy is 0.5 and Gain 0.02, a cache of 1.5 times the size would have a
// hit ratio 2 percentage points higher. It is Policy.NearMisses over GetCalls. Use [Stats.Sub] for
// the gain of an interval.
//
// It is an estimate, and with the default policy a conservative one: for 20 workloads, 9 of them
// recorded traces, it was 0.34 to 0.95 of the actual gain of a cache of that size, and 0.2 where
// half of the lookups were scans. It was one percentage point too high for keys that are read once
// and late. With PolicyFIFO it was mostly right to within a quarter, except for loops. It is far
// too low for a cache full of large entries, each more than 1/4096 of it, if there are fewer than a
// few hundred.
func (s Stats) Gain() float64 {
	return float64(min(s.Policy.NearMisses, s.GetCalls)) / float64(max(s.GetCalls, 1))
}

// Stats returns the counters and gauges of the cache: it is [Cache.UpdateStats] of a new Stats.
func (c *Cache) Stats() Stats {
	var s Stats
	c.UpdateStats(&s)
	return s
}

// UpdateStats adds the counters and gauges of the cache to s. It locks every bucket briefly, one
// after another, and does not allocate.
func (c *Cache) UpdateStats(s *Stats) {
	gets, misses := c.counters.Sum()
	s.GetCalls += gets
	s.Misses += misses
	s.Loads.NegativeHits += c.counters.Negatives()
	s.Loads.Started += c.loads.started.Load()
	s.Loads.Errors += c.loads.failed.Load()
	s.Loads.Dropped += c.loads.dropped.Load()
	s.Loads.StaleHits += c.loads.stale.Load()
	s.Snapshots.RestoredEntries += c.snapshots.loaded.Load()
	s.Snapshots.DiscardedBlocks += c.snapshots.discarded.Load()
	c.each(func(b *bucket) { b.updateStats(s) })
	if z := c.shared.Compression; z != nil {
		s.addCompression(z)
	}
	s.MaxBytesSize += uint64(c.shared.Bound())
	s.EffectiveMaxBytes += uint64(c.shared.InForce())
	s.ReservedBytes += uint64(c.shared.Pool.Used())
	no := &c.refusals
	s.Refused.TooLarge += no.tooLarge.Load()
	s.Refused.NoMemory += no.noMemory.Load()
	s.Refused.TTLTooShort += no.ttlTooShort.Load()
	s.Refused.Closed += no.closed.Load()
	r := &c.shared.Recovered
	s.File.RecoveredEntries += r.Entries.Load()
	s.File.RecoveredBytes += r.Bytes.Load()
	s.File.DiscardedRecords += r.Discarded.Load()
	s.File.DiscardedFiles += r.Files.Load()
}

// updateStats adds the bucket's share to s.
func (b *bucket) updateStats(s *Stats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Collisions += b.Collisions.Load()
	s.Corruptions += b.Corruptions.Load()
	s.SetCalls += b.Sets
	s.DelCalls += b.Dels
	s.EvictedEntries += b.EvictedSmall + b.EvictedMain + b.EvictedCold + b.EvictedCrowd
	s.Policy.EvictedCold += b.EvictedCold
	s.Compression.ColdHits += b.ColdHits.Load()
	s.Compression.UncompressedQueueFull += b.QueueFull
	s.Policy.EvictedSmall += b.EvictedSmall
	s.Policy.EvictedMain += b.EvictedMain
	s.Policy.EvictedCrowd += b.EvictedCrowd
	s.Policy.Promotions += b.Promotions
	s.Policy.Reinsertions += b.Reinsertions
	s.Policy.GhostHits += b.GhostHits
	s.Policy.MovedBytes += b.MovedBytes
	s.EvictedBytes += b.EvictedBytes
	s.ExpiredEntries += b.Expired
	s.ExpiredBytes += b.ExpiredBytes
	s.Policy.NearMisses += b.NearMisses.Load()
	has := b.Sizes()
	s.EntriesCount += uint64(has.Entries)
	s.BytesSize += uint64(has.LiveBytes)
	s.DeadBytes += uint64(has.DeadBytes)
	s.IndexBytes += uint64(has.IndexBytes)
	s.Policy.Ghosts += uint64(has.Ghosts)
	s.Compression.ColdEntries += uint64(has.Cold)
	s.Compression.ColdBytes += uint64(has.ColdBytes)
}

// addCompression adds the counters of compression.
func (s *Stats) addCompression(z *cold.Compression) {
	s.Compression.Compressed += z.Counts.Packed.Load()
	s.Compression.BytesBefore += z.Counts.From.Load()
	s.Compression.BytesAfter += z.Counts.To.Load()
	s.Compression.UncompressedNoGain += z.Counts.Opaque.Load()
	s.Compression.UncompressedShort += z.Counts.Short.Load()
	s.Compression.CompressErrors += z.Counts.Failed.Load()
	s.Compression.DecompressErrors += z.Counts.Wrong.Load()
	s.Compression.CompressTime += time.Duration(z.Nanos.Load())
}

// Two figures show whether the cache is too small: how long entries stay before they are evicted
// (internal/store/lives.go), and how many misses are of recently evicted keys
// (Store.NoteGhostMiss).

// Sizing holds the times for which entries stay in a cache before they are evicted: see
// [Cache.Sizing].
type Sizing struct {
	// SmallAge is the eviction age of new entries: the time from the Set of an entry until it reaches
	// the tail of the small ring ([PolicyS3FIFO]), where it is evicted unless it was read. It is 0
	// with PolicyFIFO.
	SmallAge time.Duration

	// MainAge is the duration of one round in the main ring: an entry that is not read during a round
	// is evicted, and any other starts another round. With PolicyFIFO it is the eviction age of all
	// entries.
	MainAge time.Duration

	// SmallAgeSets and MainAgeSets are the same ages, counted in values that the whole cache has
	// stored in that time, by Sets, loads and snapshots. They do not depend on the rate of Sets.
	SmallAgeSets uint64
	MainAgeSets  uint64
}

// Sizing returns how long entries stay before they are evicted. A cache is too small if that is
// shorter than the time after which they would be read; [Stats.Gain] estimates how much a
// larger cache would help. Ages are means over the buckets that know theirs, weighted by entries,
// and 0 while none does: after New, Reset or the opening of a file, until entries set since then
// are evicted. They follow a change in the workload or the bound within one such age, and are
// accurate to a few percent in a cache of thousands of entries.
//
// Sizing locks every bucket briefly, one after another, and does not allocate.
func (c *Cache) Sizing() Sizing {
	var ages store.Lives
	c.each(func(b *bucket) {
		b.mu.Lock()
		defer b.mu.Unlock()
		ages.Add(&b.Store)
	})
	var z Sizing
	z.SmallAge, z.SmallAgeSets = ages[policy.Small].Mean()
	z.MainAge, z.MainAgeSets = ages[policy.Main].Mean()
	return z
}
