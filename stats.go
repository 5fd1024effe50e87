package ringcache

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Stats are counters and gauges of a cache, in the units that each field names.
// [Cache.UpdateStats] adds to them, so one Stats can be the sum of several caches. Counts are
// exact, but they are collected bucket by bucket: calls that run meanwhile may be counted in
// one field and not yet in another.
type Stats struct {
	// Counters. They never fall while the cache exists; Reset, Resize and Close leave them. (The
	// difference of two may: a lookup can be among GetCalls before it is known to be a miss.)
	// [Stats.Sub] returns how much they have grown.

	// GetCalls counts keys looked up: one for each Get, HasGet, GetWithTTL, Has, View and
	// GetOrLoad, one for each key of GetBatch and GetOrLoadBatch. Peek,
	// HasGetUncounted and TTL do not count.
	GetCalls uint64

	// SetCalls counts calls of Set, SetWithTTL, SetIfAbsent, SetIfChanged, CompareAndSwap,
	// Append, and Update where it keeps the key, once each, and each key of SetBatch. Calls
	// that were refused or stored nothing count too; Touch, and what loads store, do not.
	SetCalls uint64

	// Refused counts values that were not stored, of Sets and of loads, by their error:
	// [ErrTooLarge], [ErrNoMemory], [ErrTTLTooShort] and [ErrClosed].
	RefusedTooLarge uint64
	RefusedNoMemory uint64
	RefusedTooShort uint64
	RefusedClosed   uint64

	// DelCalls counts calls of Del and GetAndDel, and of Update where it does not keep the key.
	DelCalls uint64

	// Loads counts the loads that GetOrLoad and GetOrLoadBatch have started, of a batch one
	// for each key; LoadErrors those that ended with an error, a panic or by exiting their
	// goroutine; and LoadsDropped those whose result was not stored: a write of the key came
	// meanwhile, nobody waited any more, or the cache refused it (a TTL below 0 does not count).
	// StaleHits counts the keys that were answered with an expired value as their load had
	// failed (Options.StaleIfError); they are among the Misses.
	Loads        uint64
	LoadErrors   uint64
	LoadsDropped uint64
	StaleHits    uint64

	// Misses counts those of GetCalls that found no value.
	Misses uint64

	// NegativeHits counts the keys that GetOrLoad and GetOrLoadBatch did not load because an
	// earlier load had found that they have no value (ErrAbsent). They are among the Misses,
	// as no value was found, and not among the Loads.
	NegativeHits uint64

	// NearMisses counts those of Misses whose key is still remembered from an eviction: the
	// cache keeps the hashes of some of the entries that it has dropped lately. A larger
	// cache would have found most of them: see [Stats.Gain].
	NearMisses uint64

	// Collisions counts live records that a call looked at because their hash was right (39
	// bits of it), and that turned out to have another key.
	Collisions uint64

	// Corruptions counts records whose header made no sense, or whose value could not be
	// decompressed. It stays 0 unless something else in the process writes to the cache's
	// memory, or a Compressor fails.
	Corruptions uint64

	// EvictedEntries and EvictedBytes count entries, and the bytes of their records, that were
	// dropped to make room. Entries replaced by a Set, removed by Del or dropped by Reset are
	// not evicted, nor are expired ones and those that Namespace.Invalidate removed. Those that
	// left for the quota of their namespace are.
	EvictedEntries uint64
	EvictedBytes   uint64

	// EvictedEntries is the sum of four causes. EvictedSmall counts entries that
	// left the small ring because they had not been read in it; EvictedMain, those
	// that left the main ring (with PolicyFIFO, all); EvictedCold, those that left the
	// cold part; EvictedCrowd, those that the index had no place for: while memory is
	// left, only keys of equal hashes.
	EvictedSmall uint64
	EvictedMain  uint64
	EvictedCold  uint64
	EvictedCrowd uint64

	// ColdHits counts lookups that found their key in the cold part (Options.Compressor);
	// they are hits. Packed counts values that were compressed, PackedFrom the bytes of
	// their records before, PackedTo after: see [Stats.ColdRatio].
	ColdHits   uint64
	Packed     uint64
	PackedFrom uint64
	PackedTo   uint64

	// Values that went to the cold part as they are: LeftOpaque counts those that look
	// incompressible, or where compressing them, or others of their size, saved too little;
	// LeftShort, those below 48 bytes; LeftBehind, those that found no room in the queue.
	LeftOpaque uint64
	LeftShort  uint64
	LeftBehind uint64

	// PackErrors counts calls of the Compressor that failed or panicked while it compressed or
	// made a dictionary, and dictionaries that could not be written beside Options.File;
	// UnpackErrors, calls that failed while it decompressed, or returned other bytes than had
	// been set: such an entry is a miss, and counts in Corruptions. PackNanos is the time that
	// the goroutine has spent compressing, in nanoseconds.
	PackErrors   uint64
	UnpackErrors uint64
	PackNanos    uint64

	// ExpiredEntries and ExpiredBytes count entries, and the bytes of their records, that were
	// removed because they had expired: by a Set, by DeleteExpired, or when their memory was
	// needed. They are not among EvictedEntries.
	ExpiredEntries uint64
	ExpiredBytes   uint64

	// Promotions counts entries that moved from the small ring to the main one; Reinsertions,
	// those that were read in the main ring and started another round in it; GhostHits, Sets
	// of new entries whose hash was still remembered from an eviction. These go straight to
	// the main ring where that has proved to pay.
	Promotions   uint64
	Reinsertions uint64
	GhostHits    uint64

	// MovedBytes counts the bytes of records that the cache itself has copied: by promotions,
	// reinsertions and compaction. The bytes that Sets write are not included.
	MovedBytes uint64

	// LoadedEntries counts entries that snapshots have brought. DiscardedBlocks counts
	// blocks that [Load] had to leave out, as they were damaged or missing.
	LoadedEntries   uint64
	DiscardedBlocks uint64

	// RecoveredEntries and RecoveredBytes count what the cache has found in
	// Options.File when it was made; DiscardedRecords, what it could not use: records
	// that were being written when the process died, damaged ones, and those of which it
	// is not known whether they have expired. A damaged ring of records counts as one.
	RecoveredEntries uint64
	RecoveredBytes   uint64
	DiscardedRecords uint64

	// DiscardedFiles is 1 if Options.File was emptied when the cache was made: it was of
	// another Options.Version, its header was damaged, or the machine had crashed.
	DiscardedFiles uint64

	// Gauges: the state at the time of the call.

	// EntriesCount is the number of entries: those that a Get can find, those that have
	// expired but have not been removed yet, and the negative entries of GetOrLoad.
	EntriesCount uint64

	// ColdEntries is how many of EntriesCount are in the cold part, and ColdBytes the bytes of
	// their records there.
	ColdEntries uint64
	ColdBytes   uint64

	// GhostsCount is the number of evicted entries whose hashes are remembered.
	GhostsCount uint64

	// BytesSize is the bytes of the records of EntriesCount: keys, values as they are stored,
	// and headers of 3 or 7 bytes, with 4 more for an expiry and 4 more in Options.File. A
	// negative entry is a header of 7 bytes, with the same additions, and its key.
	BytesSize uint64

	// MaxBytesSize is the bound on the off-heap memory, as Resize last set it.
	MaxBytesSize uint64

	// EffectiveMaxBytes is the bound in force: MaxBytesSize, or less as long as the operating
	// system refuses memory or the file system of Options.File is full. The cache then works
	// as one of that size, and asks for more now and then.
	EffectiveMaxBytes uint64

	// ReservedBytes is the off-heap memory that rings and indexes hold now, in whole chunks.
	// It is at most MaxBytesSize, except while Resize makes the cache smaller. Memory that is
	// free for reuse, after Reset for example, is not in it.
	ReservedBytes uint64

	// DeadBytes is the bytes of records that were replaced, deleted, or removed because they had
	// expired or were invalidated, and whose memory has not been reused yet. They are part of
	// ReservedBytes.
	DeadBytes uint64

	// IndexBytes is the part of ReservedBytes that indexes hold.
	IndexBytes uint64
}

// Sub returns what has happened since earlier, the statistics of the same cache at an earlier
// time: the differences of the counters, with the gauges of s. [Stats.HitRatio], [Stats.Gain] and
// [Stats.ColdRatio] of the result are those of the time between.
func (s Stats) Sub(earlier Stats) Stats {
	s.GetCalls -= earlier.GetCalls
	s.SetCalls -= earlier.SetCalls
	s.RefusedTooLarge -= earlier.RefusedTooLarge
	s.RefusedNoMemory -= earlier.RefusedNoMemory
	s.RefusedTooShort -= earlier.RefusedTooShort
	s.RefusedClosed -= earlier.RefusedClosed
	s.DelCalls -= earlier.DelCalls
	s.Loads -= earlier.Loads
	s.LoadErrors -= earlier.LoadErrors
	s.LoadsDropped -= earlier.LoadsDropped
	s.StaleHits -= earlier.StaleHits
	s.Misses -= earlier.Misses
	s.NegativeHits -= earlier.NegativeHits
	s.NearMisses -= earlier.NearMisses
	s.Collisions -= earlier.Collisions
	s.Corruptions -= earlier.Corruptions
	s.EvictedEntries -= earlier.EvictedEntries
	s.EvictedBytes -= earlier.EvictedBytes
	s.EvictedSmall -= earlier.EvictedSmall
	s.EvictedMain -= earlier.EvictedMain
	s.EvictedCold -= earlier.EvictedCold
	s.EvictedCrowd -= earlier.EvictedCrowd
	s.ColdHits -= earlier.ColdHits
	s.Packed -= earlier.Packed
	s.PackedFrom -= earlier.PackedFrom
	s.PackedTo -= earlier.PackedTo
	s.LeftOpaque -= earlier.LeftOpaque
	s.LeftShort -= earlier.LeftShort
	s.LeftBehind -= earlier.LeftBehind
	s.PackErrors -= earlier.PackErrors
	s.UnpackErrors -= earlier.UnpackErrors
	s.PackNanos -= earlier.PackNanos
	s.ExpiredEntries -= earlier.ExpiredEntries
	s.ExpiredBytes -= earlier.ExpiredBytes
	s.Promotions -= earlier.Promotions
	s.Reinsertions -= earlier.Reinsertions
	s.GhostHits -= earlier.GhostHits
	s.MovedBytes -= earlier.MovedBytes
	s.LoadedEntries -= earlier.LoadedEntries
	s.DiscardedBlocks -= earlier.DiscardedBlocks
	s.RecoveredEntries -= earlier.RecoveredEntries
	s.RecoveredBytes -= earlier.RecoveredBytes
	s.DiscardedRecords -= earlier.DiscardedRecords
	s.DiscardedFiles -= earlier.DiscardedFiles
	return s
}

// HitRatio returns the part of the lookups that found their key, from 0 to 1; 0 if there was no
// lookup. Counters start with the cache: [Stats.Sub] gives the ratio of a span of time.
func (s Stats) HitRatio() float64 {
	// Of a span of time there can be more misses than lookups: some of these were before it.
	if s.Misses >= s.GetCalls {
		return 0
	}
	return float64(s.GetCalls-s.Misses) / float64(s.GetCalls)
}

// ColdRatio returns how many times smaller compression has made the records that it was of
// use for: PackedFrom over PackedTo; 0 if there were none.
func (s Stats) ColdRatio() float64 {
	if s.PackedTo == 0 {
		return 0
	}
	return float64(s.PackedFrom) / float64(s.PackedTo)
}

// LargerBy returns how much larger the cache is that [Stats.Gain] is about: 0.5 for one with
// room for 50 % more entries. It is GhostsCount over EntriesCount, so it is meaningful only for a
// full cache: not after Reset, nor when most of the entries were removed.
func (s Stats) LargerBy() float64 {
	return float64(s.GhostsCount) / float64(max(s.EntriesCount, 1))
}

// Gain returns the fraction of lookups, from 0 to 1, that missed and would have hit in a cache
// larger by LargerBy: with 0.5 and 0.02, a cache of one and a half times the size would have a hit
// ratio 2 percentage points higher. It is NearMisses over GetCalls. [Stats.Sub] gives that of a
// span of time.
//
// It is an estimate. With the default policy it is a cautious one: for 20 loads, 9 of them
// recorded traces, 0.34 to 0.95 of what a cache of that size really gained; where half of the
// lookups are scans, 0.2. It was too high, by a point, where keys are read once and late. With
// PolicyFIFO it was mostly right within a quarter, but for loops. It is far too low for a cache
// full of large entries, each more than 1/4096 of it, if these are fewer than some hundred.
func (s Stats) Gain() float64 {
	return float64(min(s.NearMisses, s.GetCalls)) / float64(max(s.GetCalls, 1))
}

// Stats returns the counters and gauges of the cache: [Cache.UpdateStats] of a new Stats.
func (c *Cache) Stats() Stats {
	var s Stats
	c.UpdateStats(&s)
	return s
}

// UpdateStats adds the counters and gauges of the cache to s. It takes every bucket's lock for
// a moment, one after another, and does not allocate.
func (c *Cache) UpdateStats(s *Stats) {
	lookups, misses := c.counters.Sum()
	s.GetCalls += lookups
	s.Misses += misses
	s.NegativeHits += c.counters.Negatives()
	s.LoadedEntries += c.snapshots.loaded.Load()
	s.DiscardedBlocks += c.snapshots.discarded.Load()
	c.each(func(b *bucket) { b.updateStats(s) })
	if z := c.shared.compression; z != nil {
		z.updateStats(s)
	}
	s.MaxBytesSize += uint64(c.shared.bound())
	s.EffectiveMaxBytes += uint64(c.shared.inForce())
	s.ReservedBytes += uint64(c.shared.pool.Used())
	no := &c.shared.refusals
	s.RefusedTooLarge += no.tooLarge.Load()
	s.RefusedNoMemory += no.noMemory.Load()
	s.RefusedTooShort += no.tooShort.Load()
	s.RefusedClosed += no.closed.Load()
	r := &c.shared.recovered
	s.RecoveredEntries += r.entries.Load()
	s.RecoveredBytes += r.bytes.Load()
	s.DiscardedRecords += r.discarded.Load()
	s.DiscardedFiles += r.files.Load()
}

// updateStats adds the bucket's share to s.
func (b *bucket) updateStats(s *Stats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Collisions += b.collisions.Load()
	s.Corruptions += b.corruptions.Load()
	s.SetCalls += b.sets
	s.DelCalls += b.dels
	s.Loads += b.loads
	s.LoadErrors += b.loadErrors
	s.LoadsDropped += b.loadsDropped
	s.StaleHits += b.staleHits.Load()
	s.EvictedEntries += b.evictedSmall + b.evictedMain + b.evictedCold + b.evictedCrowd
	s.EvictedCold += b.evictedCold
	s.ColdHits += b.coldHits.Load()
	s.LeftBehind += b.cold.behind
	s.ColdEntries += uint64(b.cold.entries())
	s.ColdBytes += uint64(b.cold.bytes())
	s.EvictedSmall += b.evictedSmall
	s.EvictedMain += b.evictedMain
	s.EvictedCrowd += b.evictedCrowd
	s.Promotions += b.promotions
	s.Reinsertions += b.reinsertions
	s.GhostHits += b.ghostHits
	s.MovedBytes += b.movedBytes
	s.DeadBytes += uint64(b.deadBytesLocked())
	s.EvictedBytes += b.evictedBytes
	s.ExpiredEntries += b.expired
	s.ExpiredBytes += b.expiredBytes
	b.addGainLocked(s)
	s.BytesSize += uint64(b.liveBytesLocked())
	s.IndexBytes += uint64(b.index.Pages() * b.shared.pool.PageSize())
}

// String returns all fields on one line for people to read: bytes in units of 1024, the hit
// ratio in percent. The wording may change between versions: programs take the fields,
// [Stats.LogValue] or package [github.com/ringcache/ringcache/expvarstats].
func (s Stats) String() string {
	return fmt.Sprintf("%d gets, %.1f %% hits, %d misses, %d near, %d sets, %d dels; "+
		"refused %d too large, %d without memory, %d too short, %d closed; "+
		"%d entries, %v of %v, %v in force, %v reserved, of it %v dead, %v index; "+
		"%d evicted (%d small, %d main, %d cold, %d crowd), %v; %d expired, %v; "+
		"%d promoted, %d reinserted, %v moved, %d ghosts, %d ghost hits, "+
		"%d collisions, %d corruptions; "+
		"%d loads, %d of them failed, %d dropped, %d stale hits, %d negative hits; "+
		"%d cold, %v, %d cold hits, %d packed, %v to %v in %v, "+
		"%d opaque, %d short, %d behind, %d pack and %d unpack errors; "+
		"%d loaded from snapshots, %d blocks discarded; "+
		"%d recovered, %v, %d records discarded, %d files discarded",
		s.GetCalls, 100*s.HitRatio(), s.Misses, s.NearMisses, s.SetCalls, s.DelCalls,
		s.RefusedTooLarge, s.RefusedNoMemory, s.RefusedTooShort, s.RefusedClosed,
		s.EntriesCount, byteCount(s.BytesSize), byteCount(s.MaxBytesSize),
		byteCount(s.EffectiveMaxBytes), byteCount(s.ReservedBytes),
		byteCount(s.DeadBytes), byteCount(s.IndexBytes),
		s.EvictedEntries, s.EvictedSmall, s.EvictedMain, s.EvictedCold, s.EvictedCrowd,
		byteCount(s.EvictedBytes),
		s.ExpiredEntries, byteCount(s.ExpiredBytes),
		s.Promotions, s.Reinsertions, byteCount(s.MovedBytes),
		s.GhostsCount, s.GhostHits, s.Collisions, s.Corruptions,
		s.Loads, s.LoadErrors, s.LoadsDropped, s.StaleHits, s.NegativeHits,
		s.ColdEntries, byteCount(s.ColdBytes), s.ColdHits, s.Packed,
		byteCount(s.PackedFrom), byteCount(s.PackedTo), time.Duration(s.PackNanos),
		s.LeftOpaque, s.LeftShort, s.LeftBehind, s.PackErrors, s.UnpackErrors,
		s.LoadedEntries, s.DiscardedBlocks,
		s.RecoveredEntries, byteCount(s.RecoveredBytes), s.DiscardedRecords,
		s.DiscardedFiles)
}

// LogValue returns a group of all fields, each under its name in snake case (get_calls), as
// plain numbers. So Stats is a [slog.LogValuer]: a logger takes a Stats as it is.
func (s Stats) LogValue() slog.Value {
	v := reflect.ValueOf(s)
	attrs := make([]slog.Attr, v.NumField())
	for i := range attrs {
		attrs[i] = slog.Uint64(snakeCase(v.Type().Field(i).Name), v.Field(i).Uint())
	}
	return slog.GroupValue(attrs...)
}

// snakeCase returns get_calls for GetCalls.
func snakeCase(name string) string {
	var s []byte
	for i := range len(name) {
		if unicode.IsUpper(rune(name[i])) && i > 0 {
			s = append(s, '_')
		}
		s = append(s, name[i])
	}
	return strings.ToLower(string(s))
}

// byteCount is a number of bytes that prints itself in the largest unit of which
// there is at least one.
type byteCount uint64

func (n byteCount) String() string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", uint64(n))
	}
	const units = "KMGTPE"
	x, u := float64(n)/1024, 0
	// From 1024 on, one digit behind the point would say 1024.0.
	for x >= 1023.95 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	return fmt.Sprintf("%.1f %cB", x, units[u])
}
