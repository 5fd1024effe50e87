package sim

import "github.com/ringcache/ringcache/internal/policy"

// What large.go of the library has under these names.
const (
	largeBuckets  = 4
	largeShare    = 8
	sparseShare   = 512
	hysteresis    = 8
	maxValueShare = 16

	sparseEntries = 32
	denseEntries  = 48
	leastRecords  = 16

	growStep = 16 // chunks: 64 KB in a cache of 64 MB
)

// engineArena is the large buckets of an engine, and what balances them with the
// others. Its methods are the engine's.
type engineArena struct {
	buckets [largeBuckets]engineBucket
	hand    int // the bucket that has to give next

	// What was set lately.
	records      int
	small, large int // weight
	sparse       bool

	everSmall int // weight that was set in the other buckets at any time
}

// isLarge reports whether an entry goes to the large buckets.
func (e *engine) isLarge(size int) bool {
	full, n := float64(e.capacity)/float64(e.o.Buckets), float64(size)
	return n > full/sparseShare && (n > full/largeShare || e.arena.sparse)
}

// flowIn counts what was set.
func (e *engine) flowIn(records, weight int, large bool) {
	g := &e.arena
	g.records += records
	if large {
		g.large += weight
	} else {
		g.small += weight
	}
	e.weigh()
	if g.small+g.large > int(e.capacity) {
		g.records, g.small, g.large = g.records/2, g.small/2, g.large/2
	}
}

// weigh decides whether the cache is sparse: a bucket would hold few entries.
func (e *engine) weigh() {
	g := &e.arena
	if g.records < leastRecords {
		return
	}
	perBucket := float64(e.capacity) / float64(e.o.Buckets) * float64(g.records) /
		float64(g.small+g.large)
	switch {
	case g.sparse && perBucket >= denseEntries:
		g.sparse = false
	case !g.sparse && perBucket < sparseEntries:
		g.sparse = true
	}
}

// largeTarget returns the weight that the large buckets should hold. However much
// they are in demand, each of the others keeps two chunks, if it has so much to
// hold at all.
func (e *engine) largeTarget() int {
	g := &e.arena
	if g.large == 0 {
		return 0
	}
	share := float64(g.large) / float64(g.small+g.large)
	kept := min(g.everSmall, len(e.buckets)*2*e.chunk)
	return max(0, min(int(share*float64(e.capacity)), int(e.capacity)-kept))
}

// largeUsed returns the weight that they hold.
func (e *engine) largeUsed() (used int) {
	for i := range e.arena.buckets {
		used += e.arena.buckets[i].used()
	}
	return used
}

// reclaim has the buckets give up what a large one is going to take for an entry.
func (e *engine) reclaim(lb *engineBucket, size int) {
	g := &e.arena
	need := lb.demand(size)
	for range e.buckets {
		if e.spare() >= need {
			return
		}
		b := &e.buckets[g.hand%len(e.buckets)]
		g.hand++
		b.shrink(need)
	}
}

// demand returns how much a large bucket is to grow by with an entry: to its
// quota, bit by bit, and so far that the entry has room.
func (b *engineBucket) demand(size int) int {
	grow := min(b.quota()*b.engine.chunk-b.used(), 2*size+growStep*b.engine.chunk)
	return max(grow, size-b.used())
}

// lend has the large buckets give up the weight of an entry that a bucket has not
// room for, whatever it evicts.
func (e *engine) lend(b *engineBucket, size int) {
	for i := range e.arena.buckets {
		if b.used()+e.spare() < size {
			e.arena.buckets[i].give(size-e.spare(), 0)
		}
	}
}

// flowed counts what a bucket has set, and has the large ones give up what they
// hold too much.
func (e *engine) flowed(records, weight int) {
	e.flowIn(records, weight, false)
	used, target := e.largeUsed(), e.largeTarget()
	if used == 0 || used <= target+target/hysteresis+e.chunk*largeBuckets {
		return
	}
	g := &e.arena
	g.hand++
	lb := &g.buckets[g.hand%largeBuckets]
	lb.give(weight+e.chunk, lb.quota()*e.chunk)
}

// give evicts a weight of up to n, as long as the bucket holds more than keep.
func (b *engineBucket) give(n, keep int) {
	from := b.used()
	for _, ring := range []policy.Ring{policy.Main, policy.Small} {
		r, work := &b.rings[ring], policy.SetWork(max(n, 0))
		for r.used > 0 && b.used() > keep && from-b.used() < n {
			b.evictTail(ring, &work)
		}
	}
}

// shrink evicts what the bucket holds beyond its quota, when large buckets are to
// hold so much more.
func (b *engineBucket) shrink(more int) {
	room, work := b.quotaBeside(more)*b.engine.chunk, policy.SetWork(0)
	for b.used() > room {
		b.evictTail(b.fuller(), &work)
	}
}
