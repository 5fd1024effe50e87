package fastcache

import "sync/atomic"

// Stats are counters and gauges of a cache. UpdateStats adds to them.
type Stats struct {
	// GetCalls counts calls of Get, HasGet and Has; a call of GetBig counts once, plus once for
	// each part that it looks up.
	GetCalls uint64

	// SetCalls counts calls of Set; a call of SetBig usually counts once, plus once for each part.
	SetCalls uint64

	// Misses counts the GetCalls that found nothing.
	Misses uint64

	// Collisions stays 0: two keys with the same hash do not replace each other.
	Collisions uint64

	// Corruptions counts damaged records.
	Corruptions uint64

	// EntriesCount is the number of entries in the cache. Each part of a SetBig value counts, also
	// after a Del of its key.
	EntriesCount uint64

	// EvictedBytes counts the bytes of entries evicted to make room. (fastcache 1.13.0 has this
	// field, 1.13.3 does not.)
	EvictedBytes uint64

	// BytesSize is the memory of entries and index in bytes.
	BytesSize uint64

	// MaxBytesSize is the capacity.
	MaxBytesSize uint64

	// BigStats are the counters of SetBig and GetBig.
	BigStats
}

// Reset sets all fields to 0, for the next UpdateStats.
func (s *Stats) Reset() { *s = Stats{} }

// BigStats are the counters of SetBig and GetBig.
type BigStats struct {
	// GetBigCalls and SetBigCalls count calls.
	GetBigCalls uint64
	SetBigCalls uint64

	// TooBigKeyErrors counts calls of SetBig with a key that was too long.
	TooBigKeyErrors uint64

	// InvalidMetavalueErrors counts calls of GetBig that found a non-empty value of Set.
	InvalidMetavalueErrors uint64

	// InvalidValueLenErrors counts calls of GetBig that found a value with an
	// impossible length.
	InvalidValueLenErrors uint64

	// InvalidValueHashErrors stays 0.
	InvalidValueHashErrors uint64
}

// UpdateStats adds the counters and gauges of the cache to s. Call s.Reset before
// reusing s.
func (c *Cache) UpdateStats(s *Stats) {
	inner := c.inner.Load()
	r := inner.Stats().Sub(inner.loading)
	s.GetCalls += r.GetCalls
	s.SetCalls += r.SetCalls + c.ignored.Load()
	s.Misses += r.Misses
	s.Corruptions += r.Corruptions
	s.EntriesCount += r.EntriesCount
	s.EvictedBytes += r.EvictedBytes
	s.BytesSize += r.ReservedBytes
	s.MaxBytesSize += r.MaxBytesSize
	c.big.addTo(&s.BigStats)
}

// bigCounters are the counters of BigStats, and the number of the last value stored in parts.
type bigCounters struct {
	gets, sets, keys, kinds, lengths atomic.Uint64
	lastNumber                       atomic.Uint64
}

func (b *bigCounters) reset() {
	for _, n := range []*atomic.Uint64{&b.gets, &b.sets, &b.keys, &b.kinds, &b.lengths} {
		n.Store(0)
	}
}

func (b *bigCounters) addTo(s *BigStats) {
	s.GetBigCalls += b.gets.Load()
	s.SetBigCalls += b.sets.Load()
	s.TooBigKeyErrors += b.keys.Load()
	s.InvalidMetavalueErrors += b.kinds.Load()
	s.InvalidValueLenErrors += b.lengths.Load()
}
