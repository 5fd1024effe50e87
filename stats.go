package ringcache

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/store"
)

// Stats are the counters and gauges of a cache. [Cache.UpdateStats] adds to them, so one Stats can
// be the sum of several caches. Buckets are read one by one, so a concurrent call may be counted in
// one field and not yet in another. Counters never decrease, not even by Reset, Resize or Close;
// [Stats.Sub] returns their growth.
type Stats struct {
	// GetCalls counts looked-up keys: by Get and its variants, Has and GetOrLoad, and each key of
	// their batches. Peek, TTL and GetAndDel don't count.
	GetCalls uint64

	// SetCalls counts calls of Set and its variants, whether or not they store something, Updates that
	// set a value, and each key of a SetBatch. Atomic writes that return ErrEncode don't count.
	SetCalls uint64

	Misses     uint64 // GetCalls that found no value, or a stale one
	Collisions uint64 // records met in a search, with another key, but matching bits of its hash

	// Corruptions counts damaged records. It stays 0 unless memory or a file is damaged, or a
	// Compressor fails.
	Corruptions uint64

	// EntriesCount is a gauge: the number of entries. It includes negative entries of GetOrLoad,
	// expired ones that have not been removed yet and, for the whole cache, those of namespaces, reset
	// or not.
	EntriesCount uint64

	BytesSize    uint64 // a gauge: the bytes of these entries' records: keys, values and headers
	MaxBytesSize uint64 // a gauge: Options.MaxBytes, or the limit last set by Resize
	DelCalls     uint64 // calls of Del and GetAndDel, and Updates that end with Entry.Del

	EvictedEntries uint64 // entries, also negative ones, that were dropped to make room
	EvictedBytes   uint64 // the bytes of their records

	// EvictedMisses counts the Misses of keys whose entries were evicted recently, as far as the cache
	// remembers their hashes. A larger cache would probably have found many of them.
	EvictedMisses uint64

	ExpiredEntries  uint64 // entries removed as expired, except when Options.File was opened
	RestoredEntries uint64 // entries that came from snapshots

	// EffectiveMaxBytes is a gauge: the limit in force. It is below MaxBytesSize only if the
	// operating system has refused memory, or space for Options.File.
	EffectiveMaxBytes uint64

	// ReservedBytes is a gauge: the memory that records and indexes use, in whole chunks or pages, but
	// not what Reset has left for new entries. DeadBytes is the part that holds records found dead,
	// such as those of removed entries; IndexBytes, the part that holds indexes.
	ReservedBytes uint64
	DeadBytes     uint64
	IndexBytes    uint64

	Refused     RefusedStats
	Loads       LoadStats
	Compression CompressionStats
	File        FileStats
}

// RefusedStats count what writes and loads did not store because of these errors.
type RefusedStats struct {
	TooLarge    uint64 // ErrTooLarge
	NoMemory    uint64 // ErrNoMemory
	TTLTooShort uint64 // ErrTTLTooShort
}

// LoadStats count the loads of GetOrLoad and GetOrLoadBatch, one for each key that a batch loads.
type LoadStats struct {
	Started uint64

	// Errors counts loads that failed, except some refreshes that were no longer wanted.
	Errors uint64

	// Dropped counts loads whose result the cache did not accept, as when the key was written
	// meanwhile.
	Dropped uint64

	// StaleHits counts expired values that were returned or could not be decoded
	// (Options.StaleIfError). NegativeHits counts keys that were not loaded because an earlier load
	// found no value (ErrAbsent). Both are included in Stats.Misses.
	StaleHits    uint64
	NegativeHits uint64
}

// CompressionStats describes the cold part of the cache (Options.Compressor).
type CompressionStats struct {
	ColdHits    uint64 // hits in the cold part
	ColdEntries uint64 // a gauge: the entries in the cold part

	Compressed  uint64 // values that were compressed
	BytesBefore uint64 // the bytes of their records before that
	BytesAfter  uint64 // and approximately after it

	// Errors counts calls to the Compressor that failed, panicked or restored wrong bytes, and
	// dictionaries that could not be written to their file.
	Errors uint64

	CompressTime time.Duration // spent compressing
}

// FileStats count the entries found in Options.File, and the data that had to be discarded.
type FileStats struct {
	RecoveredEntries uint64

	// DiscardedRecords counts unusable records, such as incomplete, damaged or possibly expired ones,
	// or those of another Compressor. Several that were lost together can count as one.
	DiscardedRecords uint64

	// DiscardedFiles is 1 if the file was emptied, as when it had a different Options.Version, or the
	// machine was restarted before Close.
	DiscardedFiles uint64
}

// Sub returns the increase of the counters since earlier, an earlier result of [Cache.Stats] for
// the same cache, and the gauges of s.
func (s Stats) Sub(earlier Stats) Stats {
	s.GetCalls -= earlier.GetCalls
	s.SetCalls -= earlier.SetCalls
	s.Misses -= earlier.Misses
	s.Collisions -= earlier.Collisions
	s.Corruptions -= earlier.Corruptions
	s.DelCalls -= earlier.DelCalls
	s.EvictedEntries -= earlier.EvictedEntries
	s.EvictedBytes -= earlier.EvictedBytes
	s.EvictedMisses -= earlier.EvictedMisses
	s.ExpiredEntries -= earlier.ExpiredEntries
	s.RestoredEntries -= earlier.RestoredEntries
	s.Refused.TooLarge -= earlier.Refused.TooLarge
	s.Refused.NoMemory -= earlier.Refused.NoMemory
	s.Refused.TTLTooShort -= earlier.Refused.TTLTooShort
	s.Loads.Started -= earlier.Loads.Started
	s.Loads.Errors -= earlier.Loads.Errors
	s.Loads.Dropped -= earlier.Loads.Dropped
	s.Loads.StaleHits -= earlier.Loads.StaleHits
	s.Loads.NegativeHits -= earlier.Loads.NegativeHits
	s.Compression.ColdHits -= earlier.Compression.ColdHits
	s.Compression.Compressed -= earlier.Compression.Compressed
	s.Compression.BytesBefore -= earlier.Compression.BytesBefore
	s.Compression.BytesAfter -= earlier.Compression.BytesAfter
	s.Compression.Errors -= earlier.Compression.Errors
	s.Compression.CompressTime -= earlier.Compression.CompressTime
	s.File.RecoveredEntries -= earlier.File.RecoveredEntries
	s.File.DiscardedRecords -= earlier.File.DiscardedRecords
	s.File.DiscardedFiles -= earlier.File.DiscardedFiles
	return s
}

// HitRatio returns the fraction of lookups that found their key, from 0 to 1; 0 if there were none.
// Use [Stats.Sub] for the ratio of an interval.
func (s Stats) HitRatio() float64 {
	// An interval can have more misses than lookups: some of the lookups began before it.
	if s.Misses >= s.GetCalls {
		return 0
	}
	return float64(s.GetCalls-s.Misses) / float64(s.GetCalls)
}

// Stats returns the counters and gauges that [Cache.UpdateStats] adds.
func (c *Cache) Stats() Stats {
	var s Stats
	c.UpdateStats(&s)
	return s
}

// UpdateStats adds the counters and gauges of the cache to s. It locks every bucket briefly, one
// after another. For a namespace it adds only GetCalls, Misses, SetCalls, DelCalls, EntriesCount
// and BytesSize, and locks none.
func (c *Cache) UpdateStats(s *Stats) {
	counters := &c.counters
	if c.space != nil {
		counters = c.space.counts()
	}
	n := counters.Sum()
	s.GetCalls += n.Lookups
	s.Misses += n.Misses
	if c.space != nil {
		entries, bytes := c.space.size(c.engine)
		s.SetCalls += n.Sets
		s.DelCalls += n.Dels
		s.EntriesCount += uint64(entries)
		s.BytesSize += uint64(bytes)
		return
	}
	s.Loads.NegativeHits += n.Negative
	s.Loads.Started += c.loads.started.Load()
	s.Loads.Errors += c.loads.failed.Load()
	s.Loads.Dropped += c.loads.dropped.Load()
	s.Loads.StaleHits += n.Stale
	s.RestoredEntries += c.restored.Load()
	c.each(func(b *bucket) { b.look(s.addBucket) })
	if z := c.shared.Compression; z != nil {
		s.Compression.Compressed += z.Counts.Packed.Load()
		s.Compression.BytesBefore += z.Counts.From.Load()
		s.Compression.BytesAfter += z.Counts.To.Load()
		s.Compression.Errors += z.Counts.Failed.Load() + z.Counts.Wrong.Load()
		s.Compression.CompressTime += time.Duration(z.Nanos.Load())
	}
	s.MaxBytesSize += uint64(c.shared.Bound())
	s.EffectiveMaxBytes += uint64(c.shared.EffectiveBound())
	s.ReservedBytes += uint64(c.shared.Pool.Used())
	s.Refused.TooLarge += c.refusals.tooLarge.Load()
	s.Refused.NoMemory += c.refusals.noMemory.Load()
	s.Refused.TTLTooShort += c.refusals.ttlTooShort.Load()
	r := &c.shared.Recovered
	s.File.RecoveredEntries += r.Entries.Load()
	s.File.DiscardedRecords += r.Discarded.Load()
	s.File.DiscardedFiles += r.Files.Load()
}

// addBucket adds the share of a bucket.
func (s *Stats) addBucket(b *store.Store) {
	s.Collisions += b.Collisions.Load()
	s.Corruptions += b.Corruptions.Load()
	s.SetCalls += b.Sets
	s.DelCalls += b.Dels
	s.EvictedEntries += b.Evicted
	s.EvictedBytes += b.EvictedBytes
	s.EvictedMisses += b.NearMisses.Load()
	s.ExpiredEntries += b.Expired
	s.Compression.ColdHits += b.ColdHits.Load()
	has := b.Sizes()
	s.EntriesCount += uint64(has.Entries)
	s.BytesSize += uint64(has.LiveBytes)
	s.DeadBytes += uint64(has.DeadBytes)
	s.IndexBytes += uint64(has.IndexBytes)
	s.Compression.ColdEntries += uint64(has.Cold)
}

// String returns all fields on one line, for humans. The wording may change: programs should use
// the fields, or package [github.com/ringcache/ringcache/adapters/ringexpvar].
func (s Stats) String() string {
	l, z, f := &s.Loads, &s.Compression, &s.File
	return fmt.Sprintf("%d gets, %.1f %% hits, %d misses, %d of evicted keys, %d sets, %d dels; "+
		"refused %d too large, %d without memory, %d too short; "+
		"%d entries, %v of %v, %v in force, %v reserved, of it %v dead, %v index; "+
		"%d evicted, %v; %d expired; %d restored; %d collisions, %d corruptions; "+
		"%d loads, %d of them failed, %d dropped, %d stale hits, %d negative hits; "+
		"%d cold, %d cold hits, %d compressed, %v to %v in %v, %d errors; "+
		"%d recovered, %d records discarded, %d files discarded",
		s.GetCalls, 100*s.HitRatio(), s.Misses, s.EvictedMisses, s.SetCalls, s.DelCalls,
		s.Refused.TooLarge, s.Refused.NoMemory, s.Refused.TTLTooShort,
		s.EntriesCount, byteCount(s.BytesSize), byteCount(s.MaxBytesSize),
		byteCount(s.EffectiveMaxBytes), byteCount(s.ReservedBytes),
		byteCount(s.DeadBytes), byteCount(s.IndexBytes),
		s.EvictedEntries, byteCount(s.EvictedBytes), s.ExpiredEntries, s.RestoredEntries,
		s.Collisions, s.Corruptions,
		l.Started, l.Errors, l.Dropped, l.StaleHits, l.NegativeHits,
		z.ColdEntries, z.ColdHits, z.Compressed, byteCount(z.BytesBefore), byteCount(z.BytesAfter),
		z.CompressTime, z.Errors,
		f.RecoveredEntries, f.DiscardedRecords, f.DiscardedFiles)
}

// byteCount is a number of bytes that is printed in a unit that suits it.
type byteCount uint64

func (n byteCount) String() string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", uint64(n))
	}
	const units = "KMGTPE"
	x, u := float64(n)/1024, 0
	// Above that, one decimal would print 1024.0.
	for x >= 1023.95 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	return fmt.Sprintf("%.1f %cB", x, units[u])
}
