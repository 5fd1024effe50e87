package store

import (
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

// limits returns how many chunks each ring may hold now.
func (b *Store) limits() limits { return b.limitsFor(0) }

// limitsFor returns the limits when there is no room for a record of n bytes. While live entries
// leave memory free, a small bucket may have what they and the record take, whatever its quota is:
// that may be small because others are slow to give up dead bytes.
func (b *Store) limitsFor(n int) limits {
	s := b.Shared
	quota := b.quota()
	pages := min(b.Index.Pages()+int(b.pageDelta), b.maxPages(quota)) // Give reduces them to that
	total, held := max(quota-pages*s.Pool.PageSize(), 0)>>s.Shift, b.chunks()
	if next := held + b.chunksFor(b.Longest) + 1; next > total && !b.strict {
		total = max(total, min(next, total+s.lent(quota)>>s.Shift))
	}
	if n > 0 && !b.Large && !b.strict && s.FreeOfLive(keptFree) > 0 {
		need := b.liveBytes() + n
		total = max(total, b.chunksFor(need+need/hysteresis)+2) // with room for dead bytes
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
	spare -= max(b.reserved.chunks-b.Rings[b.reserved.ring].Held(), 0)
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
// together they still use all memory, and by what their live entries need.
func (b *Store) quota() int {
	if b.Large {
		// Small changes of the balance move no memory, nor does a Set that frees some for itself: what a
		// bucket holds may be 1/hysteresis more than its part, and, when memory is full, less.
		target, own := b.Shared.largeTarget(), 0
		if b.Shared.FreeOfLive(keptFree) <= 0 { // one bucket may have what the others don't need
			bound := b.Shared.EffectiveBound()
			small := float64(bound-target) / float64(bound) // the part of the small buckets
			target -= int(small*float64(target)) / hysteresis
			own = b.toldHeld + target - int(b.Shared.Arrivals.Held.Load())
		}
		share := max(target/LargeBuckets, own, b.kept(hysteresis))
		return max(share, min(b.toldHeld, share+share/hysteresis))
	}
	share := int(b.Shared.quota.Load()) + int(b.stagger)
	if b.strict {
		return share
	}
	// The dead bytes of large buckets may leave hardly any share. A few chunks more than kept would
	// be a whole share where shares are small.
	most := max(share, int(b.Shared.full.Load()))
	kept := min(b.kept(2*hysteresis), b.need()+b.need()/(2*hysteresis)+most/hysteresis)
	return min(max(share+b.Shared.extra(b.need()), kept), most+most/lentShare)
}

// kept returns the bytes that a bucket may hold whatever its share: as many as its live entries and
// the records under way need, with 1/part of that and a few chunks for compaction, if the cache has
// so many to spare.
func (b *Store) kept(part int) int {
	need := b.need()
	more := need/part + 2*b.incoming + 4*b.Shared.Pool.ChunkSize()
	return need + min(b.Shared.FreeOfLive(keptFree), more)
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

// Enlarge prepares the bucket for a greater bound of the cache.
func (b *Store) Enlarge(bound int) {
	b.Longest = max(b.Longest, b.Shared.Longest(bound, b.Large))
	b.hint = hintUnknown // it may have more chunks
}

// Await adds n bytes that the bucket is to get to what it holds, until the next EndWrite: the other
// buckets' quotas leave them out.
func (b *Store) Await(n int) {
	b.toldHeld += n
	b.Shared.AddHeld(n)
}

// SetIncoming sets the bytes of the longest record under way to a large bucket.
func (b *Store) SetIncoming(n int) { b.incoming = n }

// withinReach returns how many chunks a ring has or can get.
func (b *Store) withinReach(r *ring.Ring) int {
	return r.Held() + max(b.Shared.Pool.Spare(), 0)>>b.Shared.Shift
}

// free returns how many chunks more small and main may hold together.
func (b *Store) free(l limits) int {
	return l.both - b.Rings[policy.Small].Held() - b.Rings[policy.Main].Held()
}

// isOver reports whether small and main hold more chunks than they may.
func (b *Store) isOver(l limits) bool { return b.free(l) < 0 }

// isNearlyFull reports whether small and main have less room than compaction keeps free.
func (b *Store) isNearlyFull(l limits) bool {
	size := b.Rings[policy.Small].Size + b.Rings[policy.Main].Size
	return size+size/aheadShare > uint64(l.both)<<b.Shared.Shift
}
