package ringcache

// Stats are counters and gauges of a cache, in the units that each field
// names. [Cache.UpdateStats] adds to them, so the sum over several caches is
// one Stats. A snapshot is exact for each bucket, but taken bucket by bucket:
// calls that run meanwhile may be counted in one field and not yet in another.
type Stats struct {
	// Counters. They only grow; Reset and Close of the cache leave them.

	// GetCalls counts keys looked up: one for each Get, HasGet, Has and View,
	// one for each key of GetBatch.
	GetCalls uint64

	// SetCalls counts calls of Set, SetWithTTL, SetIfAbsent, SetIfChanged,
	// CompareAndSwap, Append, and Update where it keeps the key, once each, and
	// each key of SetBatch; refused ones and those that stored nothing among them.
	SetCalls uint64

	// DelCalls counts calls of Del and GetAndDel, and of Update where it does
	// not keep the key.
	DelCalls uint64

	// Loads counts the loads that GetOrLoad has begun, LoadErrors those that
	// ended with an error, a panic or by exiting their goroutine, and
	// LoadsDropped those whose result was not stored: a write had overtaken
	// them, nobody waited any more, or the cache refused it.
	Loads        uint64
	LoadErrors   uint64
	LoadsDropped uint64

	// Misses counts those of GetCalls that found nothing.
	Misses uint64

	// Collisions counts alive records that a call looked at because their hash
	// was right (40 bits of it), and that turned out to be of another key.
	Collisions uint64

	// Corruptions counts records whose header made no sense. It stays 0 unless
	// something else in the process writes to the cache's memory.
	Corruptions uint64

	// EvictedEntries and EvictedBytes count entries, and the bytes of their
	// records, that were dropped to make room. Entries replaced by a Set,
	// removed by Del or dropped by Reset are not evicted, nor are expired ones.
	EvictedEntries uint64
	EvictedBytes   uint64

	// EvictedEntries is the sum of three causes. EvictedSmall counts entries
	// that left the small ring because they had not been read while they were
	// in it; EvictedMain, those that left the main ring (with PolicyFIFO, all);
	// EvictedCrowd, those that the index had no place for.
	EvictedSmall uint64
	EvictedMain  uint64
	EvictedCrowd uint64

	// ExpiredEntries and ExpiredBytes count entries, and the bytes of their
	// records, that were reclaimed after their time to live: by a Set that came
	// across them, by DeleteExpired, or at the end of a ring. They are not among
	// EvictedEntries.
	ExpiredEntries uint64
	ExpiredBytes   uint64

	// Promotions counts entries that moved from the small ring to the main
	// one; Reinsertions, those that were read in the main ring and began
	// another round in it; GhostHits, Sets of new entries whose hash was still
	// remembered from an eviction, which go straight to the main ring.
	Promotions   uint64
	Reinsertions uint64
	GhostHits    uint64

	// Gauges: the state at the time of the call.

	// EntriesCount is the number of entries: those that a Get can find, those
	// that have expired but have not yet been reclaimed, and GetOrLoad's marks
	// of keys that are absent.
	EntriesCount uint64

	// BytesSize is the bytes of their records: keys, values, and headers of 3
	// or 7 bytes, and 4 bytes more of those with an expiry; a mark is a header
	// of 11 bytes and its key.
	BytesSize uint64

	// MaxBytesSize is the bound on the off-heap memory, as Resize last set it.
	MaxBytesSize uint64

	// ReservedBytes is the off-heap memory that rings and indexes hold now, to
	// whole chunks; at most MaxBytesSize, but while Resize makes the cache
	// smaller. Memory that was once used and is now free for reuse, after Reset
	// for example, is not in it.
	ReservedBytes uint64

	// IndexBytes is the part of ReservedBytes that indexes hold.
	IndexBytes uint64
}

// Reset sets all fields of s to 0, for the next UpdateStats.
func (s *Stats) Reset() { *s = Stats{} }

// HitRatio returns the part of the lookups that found their key, from 0 to 1;
// 0 if there was none. Counters begin with the cache: for the ratio of a span
// of time, take GetCalls and Misses of its end less those of its beginning.
func (s Stats) HitRatio() float64 {
	// In a span of time misses can be ahead: a View is counted when it begins.
	if s.Misses >= s.GetCalls {
		return 0
	}
	return float64(s.GetCalls-s.Misses) / float64(s.GetCalls)
}

// updateStats adds the bucket's share to s.
func (b *bucket) updateStats(s *Stats) {
	b.hold()
	defer b.mu.release()
	if !b.large { // where every lookup begins
		gets, misses := b.mu.lookups()
		s.GetCalls += gets
		s.Misses += misses
	}
	s.Collisions += b.collisions.Load()
	s.Corruptions += b.corruptions.Load()
	s.SetCalls += b.mu.sets
	s.DelCalls += b.dels
	s.Loads += b.loads
	s.LoadErrors += b.loadErrors
	s.LoadsDropped += b.loadsDropped
	s.EvictedEntries += b.evictedSmall + b.evictedMain + b.evictedCrowd
	s.EvictedSmall += b.evictedSmall
	s.EvictedMain += b.evictedMain
	s.EvictedCrowd += b.evictedCrowd
	s.Promotions += b.promotions
	s.Reinsertions += b.reinsertions
	s.GhostHits += b.ghostHits
	s.EvictedBytes += b.evictedBytes
	s.ExpiredEntries += b.expired
	s.ExpiredBytes += b.expiredBytes
	s.EntriesCount += uint64(b.liveLocked())
	s.BytesSize += uint64(b.liveBytesLocked())
	s.IndexBytes += uint64(len(b.index.pages) * b.shared.pool.pageSize)
}
