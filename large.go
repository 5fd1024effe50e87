package ringcache

import (
	"sync"
)

// Records that would be a visible part of their bucket live in an arena of their own: a
// few large buckets. A small bucket holds 1/512 of a cache, so a value of a sixteenth of
// the cache would not even fit; and a bucket of a few records would evict by luck.
//
// The large buckets are ordinary ones; they only take more or less of the memory. Their
// share follows what a single first-in first-out cache would hold: of the bytes stored
// lately, the part that were large records. The small buckets divide the rest.
//
// A key lives in one place at a time (I8): a Set holds the small bucket's lock over both
// places, and so does a Get when shared.largeKeys tells it to look in the large one too.

const (
	// largeBuckets is few enough that the largest record, a sixteenth of the
	// cache, fits into the share of one.
	largeBuckets = 4

	// largeShare: a record is large above 1/largeShare of a bucket's full quota;
	// sparseShare, the same in a sparse cache, where a bucket would hold too few.
	largeShare  = 8
	sparseShare = 512

	// hysteresis: large buckets may hold 1/hysteresis more than their target.
	hysteresis = 8

	// slackShare: 1/slackShare of the cache is in nobody's quota, for a bucket in need.
	slackShare = 256

	// maxValueShare: a value may be as large as 1/maxValueShare of the cache.
	maxValueShare = 16
)

// arena is the large buckets of a cache, and what balances them with the small ones.
type arena struct {
	mu      sync.Mutex // one writer at a time
	held    [largeBuckets]int
	hand    int // the small bucket that has to give next
	buckets [largeBuckets]bucket
}

// bucket returns the small bucket for hash h.
func (c *Cache) bucket(h uint64) *bucket { return &c.buckets[h&c.mask&(bucketCount-1)] }

// largeBucket returns the large bucket for hash h.
func (c *Cache) largeBucket(h uint64) *bucket {
	return &c.arena.buckets[h>>bucketBits&(largeBuckets-1)]
}

// isLarge reports whether a record of n bytes goes to the large buckets. The border does
// not follow the small buckets' quota: records that made it fall would keep it low.
func (c *Cache) isLarge(n int) bool {
	full := c.shared.bound() >> c.bits
	return n > full/sparseShare && (n > full/largeShare || c.shared.arrivals.sparse.Load())
}

// setLarge stores a large record.
func (c *Cache) setLarge(b *bucket, w *write) error {
	defer c.shared.notify(w)
	if c.isUnmet(b, w) {
		return errUnmet
	}
	a := &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(w.v) > c.shared.maxValue() {
		return errResized
	}
	c.shared.arrive(arrival{1, w.n}, true)
	lb := c.largeBucket(w.h)
	c.reclaim(lb, lb.demand(w.n), w)
	defer c.settle(lb)

	b.lock()
	defer b.unlockFor(w)
	lb.lock()
	lb.moveHomesLocked() // as in setInBucket
	lb.unlockFor(w)
	if err := c.beginLocked(b, w); err != nil {
		return err
	}
	b.deleteLocked(w, nil)
	lb.lock()
	defer lb.unlockFor(w)
	if err := lb.setLocked(w); err != nil {
		return err
	}
	lb.learnLocked()
	return nil
}

// reclaim has others give up the bytes that large bucket lb is going to take and the pool
// has not: small buckets what they hold above their new quota, and in a cache of very few
// chunks the other large ones whatever it takes.
func (c *Cache) reclaim(lb *bucket, need int, w *write) {
	s, a := c.shared, &c.arena
	s.arrivals.held.Add(int64(need))
	s.divide()
	for range s.buckets {
		if s.pool.Spare() >= need {
			return
		}
		b := &c.buckets[a.hand]
		a.hand = (a.hand + 1) % s.buckets
		b.lock()
		b.shrinkLocked(max(need, shrinkMost))
		b.unlockFor(w)
	}
	for i := range a.buckets {
		other := &a.buckets[i]
		if missing := need - s.pool.Spare(); missing > 0 && other != lb {
			c.drain(other, missing, 0, w)
		}
	}
}

// lend has the large buckets give up the chunks for a small record.
func (c *Cache) lend(w *write) {
	s, a := c.shared, &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.buckets {
		if need := w.n + 3*s.pool.ChunkSize() - s.pool.Spare(); need > 0 {
			c.drain(&a.buckets[i], need, 0, w)
		}
	}
}

// drain has a large bucket give up n bytes of what it holds above keep.
func (c *Cache) drain(lb *bucket, n, keep int, w *write) {
	lb.lock()
	lb.giveLocked(n, keep)
	lb.unlockFor(w)
	c.settle(lb)
}

// settle notes what a large bucket holds, and divides the rest.
func (c *Cache) settle(lb *bucket) {
	s, a := c.shared, &c.arena
	lb.mu.Lock()
	held := lb.heldLocked()
	lb.mu.Unlock()
	sum := 0
	for i := range a.buckets {
		if &a.buckets[i] == lb {
			a.held[i] = held
		}
		sum += a.held[i]
	}
	s.arrivals.held.Store(int64(sum))
	s.divide()
}

// report counts what a small bucket has stored, and has the large buckets give up memory
// when their share has become smaller.
func (c *Cache) report(news arrival, w *write) {
	s, a := c.shared, &c.arena
	s.arrive(news, false)
	held := int(s.arrivals.held.Load())
	target := s.largeTarget()
	if held == 0 || held <= target+target/hysteresis+s.pool.ChunkSize()*largeBuckets {
		return
	}
	if !a.mu.TryLock() {
		return // the next one to come will do it
	}
	defer a.mu.Unlock()
	a.hand = (a.hand + 1) % s.buckets
	lb := &a.buckets[a.hand%largeBuckets]
	c.drain(lb, news.bytes+s.pool.ChunkSize(), lb.quota(), w)
}
