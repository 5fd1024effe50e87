package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ring"
)

// How much the rings of a bucket may hold. room.go has how they give memory up.

// reservation is the number of chunks that a ring will hold for the record that is being stored.
// The moves that make room for that record must not take them.
type reservation struct {
	ring   policy.Ring
	chunks int
}

// limits are how many chunks each ring may hold, both together, and the cold part. (Not an array:
// the compiler keeps those out of registers.)
type limits struct{ small, main, both, cold int }

// of returns the limit of small or main.
func (l limits) of(r policy.Ring) int {
	if r == policy.Small {
		return l.small
	}
	return l.main
}

// limit returns how many chunks each ring may hold now.
func (b *Store) limit() limits {
	s := b.Shared
	quota := b.quota()
	pages := b.Index.Pages() + int(b.pageDelta)
	if most := b.maxPages(quota); pages > most {
		pages = most // shrinkIndex will reduce them
	}
	total, held := max(quota-pages*s.Pool.PageSize(), 0)>>s.Shift, b.chunks()
	if next := held + b.chunksFor(b.Longest) + 1; next > total && !b.strict {
		total = max(total, min(next, total+s.lent(quota)>>s.Shift))
	}
	if total > held {
		// Other buckets may hold more than their share at the moment.
		total = min(total, held+b.spare())
	}
	return b.divide(total)
}

// spare returns how many chunks the pool can still give, less those that are reserved.
func (b *Store) spare() int {
	spare := b.Shared.Pool.Spare() >> b.Shared.Shift
	if c := b.reserved; c.chunks > 0 {
		spare -= max(0, c.chunks-b.Rings[c.ring].Held())
	}
	return max(spare, 0)
}

// divide returns how many of total chunks each ring may hold.
func (b *Store) divide(total int) limits {
	total = min(total, b.Shared.maxChunks)
	cold := 0
	if b.cold.on {
		cold = b.coldLimit(total)
		total = max(0, total-max(cold, b.cold.held()))
	}
	hasSmall, hasMain := b.Rings[policy.Small].Held(), b.Rings[policy.Main].Held()
	room := 1 + 2*int(b.mean)>>b.Shared.Shift
	small, main := b.policy.Limits(total, hasSmall, hasMain, room)
	return limits{small: small, main: main, both: total, cold: cold}
}

// chunksFor returns how many chunks n bytes take.
func (b *Store) chunksFor(n int) int { return (n + 1<<b.Shared.Shift - 1) >> b.Shared.Shift }

// chunks returns how many chunks the rings hold.
func (b *Store) chunks() int {
	n := b.Rings[policy.Small].Held() + b.Rings[policy.Main].Held()
	if b.cold.on {
		n += b.cold.held()
	}
	return n
}

// Memory is the memory that a bucket holds and may hold.
type Memory struct {
	Held   int // bytes of rings and index
	Quota  int // bytes that they may hold
	Chunks int // of the rings
	Kept   int // Quota, or less: what the live entries need, and room for compaction
}

// Memory returns the memory that the bucket holds and may hold.
func (b *Store) Memory() Memory {
	m := Memory{Held: b.held(), Quota: b.quota(), Chunks: b.chunks()}
	m.Kept = min(m.Quota, b.need()+b.need()/hysteresis)
	return m
}

// held returns the bytes that rings and index hold.
func (b *Store) held() int {
	return b.Index.Pages()*b.Shared.Pool.PageSize() + b.chunks()<<b.Shared.Shift
}

// size returns the bytes of the records in all rings, dead ones included. Readers call it without
// the lock.
//
//go:norace
func (b *Store) size() int {
	return int(b.Rings[policy.Small].Size+b.Rings[policy.Main].Size) + b.cold.size()
}

// quota returns the bytes that rings and index may hold together while the other buckets use their
// quotas. Quotas are cut to whole chunks; the small buckets' differ by their stagger, so that
// together they still use all memory.
func (b *Store) quota() int {
	if b.Large {
		// Small changes of the balance move no memory.
		share := max(b.Shared.largeTarget()/LargeBuckets, b.kept())
		return max(share, min(b.held(), share+share/hysteresis))
	}
	return int(b.Shared.quota.Load()) + int(b.stagger)
}

// kept returns the bytes that a large bucket may hold whatever the balance: as many as its live
// entries and the records under way need, with room for compaction, if the cache has so many to
// spare.
func (b *Store) kept() int {
	need := b.need()
	more := need/hysteresis + 2*b.incoming + 4*b.Shared.Pool.ChunkSize()
	return need + min(b.Shared.freeOfLive(), more)
}

// need returns the bytes of the bucket's live entries and of its index.
func (b *Store) need() int { return b.liveBytes() + b.Index.Pages()*b.Shared.Pool.PageSize() }

// tellNeed updates the bucket's part of the cache's sum of needs.
func (b *Store) tellNeed() {
	of := &b.Shared.Arrivals.needSmall
	if b.Large {
		of = &b.Shared.Arrivals.needLarge
	}
	if n := b.need(); n != b.told {
		of.Add(int64(n - b.told))
		b.told = n
	}
}

// Expect sets the bytes of the longest record under way to a large bucket.
func (b *Store) Expect(n int) { b.incoming = n }

// withinReach returns how many chunks a ring has or can get.
func (b *Store) withinReach(r *ring.Ring) int {
	return r.Held() + max(b.Shared.Pool.Spare(), 0)>>b.Shared.Shift
}

// free returns how many chunks more small and main may hold together.
func (b *Store) free(l limits) int {
	return l.both - b.Rings[policy.Small].Held() - b.Rings[policy.Main].Held()
}

// hasFree reports whether main has never been full, and free chunks have room for any record at the
// tail of small. Nothing has to be compacted then.
func (b *Store) hasFree(l limits) bool {
	return !b.policy.Full && b.free(l)<<b.Shared.Shift > 2*b.Longest
}

// isOver reports whether small and main hold more chunks than they may.
func (b *Store) isOver(l limits) bool { return b.free(l) < 0 }

// isNearlyFull reports whether small and main have less room than compaction keeps free.
func (b *Store) isNearlyFull(l limits) bool {
	size := b.Rings[policy.Small].Size + b.Rings[policy.Main].Size
	return size+size/aheadShare > uint64(l.both)<<b.Shared.Shift
}

// spareChunks are free in addition to a record where any bucket has memory for it.
const spareChunks = 3

// IsShort reports whether a small bucket lacks the memory for a record of n bytes even if it evicts
// everything, because the large buckets have nearly all memory.
func (b *Store) IsShort(n int) bool { return b.Shared.Missing(n) >= 0 && b.Lack(n) > 0 }

// Missing returns how many bytes more must be free so that any bucket has memory for a record of n
// bytes; below 0 if enough are.
func (s *Shared) Missing(n int) int {
	return n + spareChunks*s.Pool.ChunkSize() - s.Pool.Spare()
}

// Lack returns how many chunks a bucket lacks for a record of n bytes even if it evicts all
// entries; 0 or less if it lacks none.
func (b *Store) Lack(n int) int {
	need := b.chunksFor(n)
	if b.Index.Empty() {
		need++ // its page counts as a chunk, whatever its source
	}
	return need - b.chunks() - max(b.Shared.Pool.Spare(), 0)>>b.Shared.Shift
}

// Demand returns the most bytes of new chunks and pages that a large bucket takes for a record of n
// bytes. If it has enough dead bytes, it compacts first and takes only pages.
func (b *Store) Demand(n int) int {
	size, page := b.Shared.Pool.ChunkSize(), b.Shared.Pool.PageSize()
	need, pages := (n/size+2)*size, page*(1+b.Index.Pages()/growthPart)
	if _, worth := b.deadest(); worth && b.deadBytes() >= 2*need {
		return pages
	}
	grow := min(b.quota()-b.held(), 2*need+policy.SetWork(n, math.MaxInt).Bytes)
	for i := range b.Rings {
		// Whatever the quota, this record has to fit into either ring.
		grow = max(grow, need-b.Rings[i].Held()*size)
	}
	return max(grow, 0) + pages
}
