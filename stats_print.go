package ringcache

import (
	"fmt"
	"log/slog"
)

// String returns all fields on one line for people to read: counts in full,
// bytes in units of 1024, the hit ratio in percent. The order stays, the wording
// may change between versions: for programs there are the fields themselves,
// [Stats.LogValue] and package [github.com/ringcache/ringcache/expvarstats].
func (s Stats) String() string {
	return fmt.Sprintf("%d gets, %.1f %% hits, %d misses, %d sets, %d dels; "+
		"%d entries, %v of %v, %v reserved, %v of it index; "+
		"%d evicted (%d small, %d main, %d crowd), %v; %d expired, %v; "+
		"%d promoted, %d reinserted, %d ghost hits, %d collisions, %d corruptions; "+
		"%d loads, %d of them failed, %d dropped",
		s.GetCalls, 100*s.HitRatio(), s.Misses, s.SetCalls, s.DelCalls,
		s.EntriesCount, byteCount(s.BytesSize), byteCount(s.MaxBytesSize), byteCount(s.ReservedBytes), byteCount(s.IndexBytes),
		s.EvictedEntries, s.EvictedSmall, s.EvictedMain, s.EvictedCrowd, byteCount(s.EvictedBytes),
		s.ExpiredEntries, byteCount(s.ExpiredBytes),
		s.Promotions, s.Reinsertions, s.GhostHits, s.Collisions, s.Corruptions,
		s.Loads, s.LoadErrors, s.LoadsDropped)
}

// LogValue returns a group of all fields, each under its name in snake case
// (get_calls), with counts and bytes as plain numbers. With it Stats is a
// [slog.LogValuer], so that a logger can be handed a Stats as it is.
func (s Stats) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Uint64("get_calls", s.GetCalls),
		slog.Uint64("set_calls", s.SetCalls),
		slog.Uint64("del_calls", s.DelCalls),
		slog.Uint64("misses", s.Misses),
		slog.Uint64("collisions", s.Collisions),
		slog.Uint64("corruptions", s.Corruptions),
		slog.Uint64("evicted_entries", s.EvictedEntries),
		slog.Uint64("evicted_bytes", s.EvictedBytes),
		slog.Uint64("evicted_small", s.EvictedSmall),
		slog.Uint64("evicted_main", s.EvictedMain),
		slog.Uint64("evicted_crowd", s.EvictedCrowd),
		slog.Uint64("expired_entries", s.ExpiredEntries),
		slog.Uint64("expired_bytes", s.ExpiredBytes),
		slog.Uint64("promotions", s.Promotions),
		slog.Uint64("reinsertions", s.Reinsertions),
		slog.Uint64("ghost_hits", s.GhostHits),
		slog.Uint64("loads", s.Loads),
		slog.Uint64("load_errors", s.LoadErrors),
		slog.Uint64("loads_dropped", s.LoadsDropped),
		slog.Uint64("entries_count", s.EntriesCount),
		slog.Uint64("bytes_size", s.BytesSize),
		slog.Uint64("max_bytes_size", s.MaxBytesSize),
		slog.Uint64("reserved_bytes", s.ReservedBytes),
		slog.Uint64("index_bytes", s.IndexBytes),
	)
}

// byteCount is a number of bytes that prints itself in the largest unit of
// which there is at least one.
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
