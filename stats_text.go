package ringcache

import "fmt"

// String returns all fields on one line for people to read: bytes in units of 1024, the hit ratio
// in percent. The wording may change between versions: programs should use the fields
// or package [github.com/ringcache/ringcache/adapters/ringexpvar].
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

// byteCount is a number of bytes that is printed in the largest unit of which there is at least
// one.
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
