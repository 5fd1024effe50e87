package ringcache

import (
	"sync"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/policy"
)

// Records that would be a visible part of their bucket live in a place of
// their own: a few large buckets, which share the cache's memory with the small
// ones. A small bucket holds 1/512 of a cache, so a value of a sixteenth of the
// cache would not even fit; and a bucket of a few records would evict by luck.
//
// The large buckets are ordinary ones; they only take more or less of the
// memory. Their share follows what a single first-in first-out cache would
// hold: of the bytes stored lately, the part that were large records. The
// small buckets divide the rest.
//
// Locks are taken in the order: region.mu, small bucket, large bucket, pool. A
// key lives in one place at a time: a Set holds the small bucket's lock over
// both places, and so does a Get when commons.stray tells it to look in the
// large bucket too.

const (
	// largeBuckets is few enough that the largest record, a sixteenth of the
	// cache, fits into the share of one.
	largeBuckets = 4

	// largeShare: a record is large above 1/largeShare of a bucket's full quota;
	// sparseShare, the same in a sparse cache, where a bucket of its own would
	// hold too few entries to tell the good from the lucky.
	largeShare  = 8
	sparseShare = 512

	// swing: large buckets may hold 1/swing more than their target.
	swing = 8

	// slackShare: 1/slackShare of the cache is in nobody's quota, for the chunks
	// that a bucket takes beyond its own in a pinch.
	slackShare = 256

	// maxValueShare: a value may be as large as 1/maxValueShare of the cache.
	maxValueShare = 16
)

// region is the large buckets of a cache, and what balances them with the
// small ones.
type region struct {
	mu      sync.Mutex // one writer at a time
	held    [largeBuckets]int
	hand    int // the small bucket that has to give next
	buckets [largeBuckets]bucket
}

// tally counts records and their bytes.
type tally struct{ records, bytes int }

// flow tells how much of the recently stored bytes were of large records, and
// how large records are on the whole. The counts are halved whenever the bytes
// reach the cache's size.
type flow struct {
	records      atomic.Int64
	small, large atomic.Int64 // bytes
	held         atomic.Int64 // bytes that the large buckets hold
	sparse       atomic.Bool  // see commons.flowIn
}

// A cache is sparse when a bucket would hold fewer than sparseEntries of such
// records as are stored, and is so until it would hold denseEntries.
const (
	sparseEntries = 32
	denseEntries  = 48
	leastRecords  = 16 // fewer are too few to tell
)

// flowIn counts what was stored in a small bucket, or in a large one.
func (s *commons) flowIn(t tally, large bool) {
	f := &s.flow
	side := &f.small
	if large {
		side = &f.large
	}
	side.Add(int64(t.bytes))
	r, sm, lg := f.records.Add(int64(t.records)), f.small.Load(), f.large.Load()
	s.weigh(r, sm+lg)
	if sm+lg > s.maxBytes.Load() {
		// Of several that come here at once, one halves each count.
		f.records.CompareAndSwap(r, r/2)
		f.small.CompareAndSwap(sm, sm/2)
		f.large.CompareAndSwap(lg, lg/2)
	}
}

// weigh decides whether the cache is sparse.
func (s *commons) weigh(records, bytes int64) {
	if records < leastRecords || bytes <= 0 {
		return
	}
	f := &s.flow
	perBucket := float64(s.bound()) / float64(s.buckets) * float64(records) / float64(bytes)
	switch sparse := f.sparse.Load(); {
	case sparse && perBucket >= denseEntries:
		f.sparse.Store(false)
	case !sparse && perBucket < sparseEntries:
		f.sparse.Store(true)
	}
}

// largeTarget returns the bytes that the large buckets should hold. However
// much they are in demand, the small buckets keep two chunks each: what is small
// is cheap to keep.
func (s *commons) largeTarget() int {
	small, large := max(s.flow.small.Load(), 0), s.flow.large.Load()
	if large <= 0 {
		return 0
	}
	share, bound := float64(large)/float64(small+large), s.bound()
	return min(int(share*float64(bound)), bound-s.buckets*2<<s.shift)
}

// divide gives the small buckets what the large ones leave.
func (s *commons) divide() {
	total := int(s.total.Load())
	total -= max(total/slackShare, 4<<s.shift)
	s.quota.Store(max(0, int64(total)-s.flow.held.Load()) / int64(s.buckets))
}

// largeBucket returns the large bucket for hash h.
func (c *Cache) largeBucket(h uint64) *bucket {
	return &c.region.buckets[h>>bucketBits&(largeBuckets-1)]
}

// isLarge reports whether a record of n bytes goes to the large buckets. The
// border does not follow the balance: were it to follow the small buckets'
// quota, records that made it fall would keep it low.
func (c *Cache) isLarge(n int) bool {
	full := c.shared.bound() >> c.bits
	return n > full/sparseShare && (n > full/largeShare || c.shared.flow.sparse.Load())
}

// longest returns the bytes of the longest record that a bucket takes: what
// isLarge leaves to the small ones at the most, what Set takes at all for the
// others.
func (s *commons) longest(large bool) int { return s.longestOf(s.bound(), large) }

// longestOf is longest in a cache of bound bytes.
func (s *commons) longestOf(bound int, large bool) int {
	if large {
		return maxHeader + maxKey + bound/maxValueShare
	}
	return bound / s.buckets / largeShare
}

// setLarge stores a large record.
func (c *Cache) setLarge(b *bucket, w *write) error {
	if c.unmet(b, w) {
		return errUnmet
	}
	g := &c.region
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(w.v) > c.shared.maxValue() {
		return errResized
	}
	c.shared.flowIn(tally{1, w.n}, true)
	lb := c.largeBucket(w.h)
	c.reclaim(lb, lb.appetite(w.n), w)
	defer c.settle(lb)

	b.lock()
	defer b.unlock(w)
	lb.lock()
	if lb.index.growing() {
		lb.moveLocked() // as in setInBucket
	}
	lb.unlock(w)
	if err := c.beginLocked(b, w); err != nil {
		return err
	}
	b.delLocked(w)
	lb.lock()
	defer lb.unlock(w)
	if err := lb.setLocked(w); err != nil {
		return err
	}
	lb.learnLocked()
	return nil
}

// appetite returns the bytes of new chunks and pages that a large bucket takes
// at most for a record of n bytes.
func (b *bucket) appetite(n int) int {
	b.hold()
	defer b.mu.release()
	size := b.shared.pool.chunkSize
	need := (n/size + 2) * size
	grow := min(b.quota()-b.heldLocked(), 2*need+policy.SetWork(n).Bytes)
	for i := range b.rings {
		// Whatever the quota, this record has to fit into either ring.
		grow = max(grow, need-b.rings[i].held()*size)
	}
	return max(grow, 0) + b.shared.pool.pageSize*(1+len(b.index.pages)/growthPart)
}

// reclaim has others give up as many bytes as large bucket lb is going to take
// and the pool has not: small buckets what they hold above their new quota, and
// if that is not enough, which takes a cache of very few chunks, the other large
// ones whatever it takes.
func (c *Cache) reclaim(lb *bucket, need int, w *write) {
	s, g := c.shared, &c.region
	s.flow.held.Add(int64(need))
	s.divide()
	for range s.buckets {
		if s.pool.spare() >= need {
			return
		}
		b := &c.buckets[g.hand]
		g.hand = (g.hand + 1) % s.buckets
		b.lock()
		b.shrinkLocked(max(need, shrinkMost))
		b.unlock(w)
	}
	for i := range g.buckets {
		other := &g.buckets[i]
		if s.pool.spare() >= need || other == lb {
			continue
		}
		other.lock()
		other.giveLocked(need-s.pool.spare(), 0)
		other.unlock(w)
		c.settle(other)
	}
}

// short reports whether a small bucket has not the memory for a record of n
// bytes, whatever it evicts: the large buckets have all but a little.
func (b *bucket) short(n int) bool {
	s := b.shared
	if !s.pool.isShort(n) {
		return false // as nearly always
	}
	spare := s.pool.spare()
	b.hold()
	defer b.mu.release()
	need := (n + 1<<s.shift - 1) >> s.shift
	if len(b.index.pages) == 0 {
		need++
	}
	return b.chunksLocked()+max(spare, 0)>>s.shift < need
}

// lend has the large buckets give up the chunks for a small record.
func (c *Cache) lend(w *write) {
	s, g := c.shared, &c.region
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.buckets {
		if need := w.n + 3*s.pool.chunkSize - s.pool.spare(); need > 0 {
			lb := &g.buckets[i]
			lb.lock()
			lb.giveLocked(need, 0)
			lb.unlock(w)
			c.settle(lb)
		}
	}
}

// settle notes what a large bucket holds, and divides the rest.
func (c *Cache) settle(lb *bucket) {
	s, g := c.shared, &c.region
	lb.hold()
	held := lb.heldLocked()
	lb.mu.release()
	sum := 0
	for i := range g.buckets {
		if &g.buckets[i] == lb {
			g.held[i] = held
		}
		sum += g.held[i]
	}
	s.flow.held.Store(int64(sum))
	s.divide()
}

// flowed counts what a small bucket has stored, and has the large buckets
// give up memory when their share has become smaller.
func (c *Cache) flowed(t tally, w *write) {
	s, g := c.shared, &c.region
	s.flowIn(t, false)
	held := int(s.flow.held.Load())
	target := s.largeTarget()
	if held == 0 || held <= target+target/swing+s.pool.chunkSize*largeBuckets {
		return
	}
	if !g.mu.TryLock() {
		return // the next one to come will do it
	}
	defer g.mu.Unlock()
	g.hand = (g.hand + 1) % s.buckets
	lb := &g.buckets[g.hand%largeBuckets]
	lb.lock()
	lb.giveLocked(t.bytes+s.pool.chunkSize, lb.quota())
	lb.unlock(w)
	c.settle(lb)
}

// giveLocked evicts until n bytes of chunks are given back, or the bucket holds
// no more than keep.
func (b *bucket) giveLocked(n, keep int) {
	from := b.heldLocked()
	for _, ring := range []policy.Ring{policy.Main, policy.Small} {
		r, work := &b.rings[ring], b.setWork(n)
		for r.size > 0 && b.heldLocked() > keep && from-b.heldLocked() < n {
			b.evictTailLocked(ring, &work)
		}
		if r.size == 0 && from-b.heldLocked() < n {
			r.trim()
		}
	}
}
