package ringcache

import (
	"cmp"
	"fmt"
	"sync"
)

// Records that would fill a visible part of their bucket are stored in a separate arena: a
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
	mu       sync.Mutex // one writer at a time
	held     [largeBuckets]int
	incoming [largeBuckets]incoming
	hand     int // the small bucket that has to give next
	buckets  [largeBuckets]bucket
}

// bucket returns the small bucket for hash h.
func (c *Cache) bucket(h uint64) *bucket { return &c.buckets[h&c.mask&(bucketCount-1)] }

// largeBucket returns the large bucket for hash h.
func (c *Cache) largeBucket(h uint64) *bucket {
	return &c.arena.buckets[h>>bucketBits&(largeBuckets-1)]
}

// nth returns a bucket by number: the small ones come first.
func (c *Cache) nth(i int) *bucket {
	if i < c.shared.buckets {
		return &c.buckets[i]
	}
	return &c.arena.buckets[i-c.shared.buckets]
}

// isLarge reports whether a record of n bytes goes to the large buckets. The border does
// not follow the small buckets' quota: records that made it fall would keep it low.
func (c *Cache) isLarge(n int) bool {
	full := int(c.shared.full.Load())
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
	c.shared.arrive(arrival{1, w.n}, true)
	lb := c.largeBucket(w.h)
	defer c.settleLarge(c.expect(lb, w.n))
	c.makeWay(lb, w)
	if len(w.v) > c.shared.maxValue() {
		return errResized
	}

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
	// Again: a search of lb for forgotten entries, which may have ended meanwhile, does not see
	// this one.
	if _, forgotten := c.shared.usageOf(w.k); forgotten {
		return errForgotten
	}
	if err := lb.setLocked(w); err != nil {
		if err = c.insistLocked(lb, w, err, func() error { return lb.setLocked(w) }); err != nil {
			return err
		}
	}
	c.shared.pool.Stored(w.n)
	lb.learnLocked()
	return nil
}

// incoming is what large Sets under way are going to take in a large bucket.
type incoming struct{ sets, bytes int }

// expect has the small buckets' quotas leave the bytes that large bucket lb is going to take for
// a record of n bytes. settleLarge ends it.
func (c *Cache) expect(lb *bucket, n int) *bucket {
	in := &c.arena.incoming[int(lb.number)-c.shared.buckets]
	in.sets++
	in.bytes = max(in.bytes, lb.demand(n))
	c.settle(lb)
	return lb
}

// settleLarge is settle after a large Set.
func (c *Cache) settleLarge(lb *bucket) {
	in := &c.arena.incoming[int(lb.number)-c.shared.buckets]
	if in.sets--; in.sets == 0 {
		in.bytes = 0
	}
	c.settle(lb)
}

// makeWay evicts entries for a large Set, whose bucket expects it: first those of other buckets,
// then, if there is an OnRemove, its own. Without OnRemove the Set itself evicts the latter.
func (c *Cache) makeWay(lb *bucket, w *write) {
	c.reclaim(lb, c.arena.incoming[int(lb.number)-c.shared.buckets].bytes, w)
	if c.shared.onRemove == nil || w.quiet {
		return
	}
	// Other Sets may take what was freed, so there is an end to it.
	for done, rounds := false, 2*w.n/stepBytes; !done && rounds > 0; rounds-- {
		lb.lock()
		done = lb.makeWayLocked(w)
		lb.unlockFor(w)
		c.pause(w)
	}
}

// reclaim has others give up the bytes that large bucket lb is going to take and the pool
// has not: small buckets what they hold above their new quota, and in a cache of very few
// chunks the other large ones whatever it takes.
func (c *Cache) reclaim(lb *bucket, need int, w *write) {
	s, a := c.shared, &c.arena
	for done := 0; done < s.buckets; {
		if s.pool.Spare() >= need {
			return
		}
		b := &c.buckets[a.hand]
		b.lock()
		if b.shrinkLocked(max(need, shrinkMost)) {
			a.hand = (a.hand + 1) % s.buckets
			done++
		}
		b.unlockFor(w)
		c.pause(w)
	}
	for i := range a.buckets {
		other := &a.buckets[i]
		if missing := need - s.pool.Spare(); missing > 0 && other != lb {
			c.drain(other, missing, 0, w)
		}
	}
}

// pause tells OnRemove of the entries that a write has removed, if they are a step. The caller
// holds the arena's lock and no other; pause releases it meanwhile.
func (c *Cache) pause(w *write) {
	if w.quiet || !w.removals.isStep() {
		return
	}
	c.arena.mu.Unlock()
	defer c.arena.mu.Lock()
	c.shared.notify(w)
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

// drain has a large bucket give up n bytes of what it holds above keep, in steps.
func (c *Cache) drain(lb *bucket, n, keep int, w *write) {
	for n > 0 {
		lb.lock()
		n = lb.giveLocked(n, keep)
		lb.unlockFor(w)
		c.settle(lb)
		c.pause(w)
	}
}

// settle notes what a large bucket holds, and divides the rest.
func (c *Cache) settle(lb *bucket) {
	lb.mu.Lock()
	held := lb.heldLocked()
	lb.mu.Unlock()
	c.note(lb, held)
}

// note is settle of a large bucket that holds so many bytes.
func (c *Cache) note(lb *bucket, held int) {
	s, a := c.shared, &c.arena
	sum := 0
	for i := range a.buckets {
		if &a.buckets[i] == lb {
			a.held[i] = held
		}
		sum += a.held[i] + a.incoming[i].bytes
	}
	s.arrivals.held.Store(int64(sum))
	s.divide()
}

// report counts what small bucket b has stored, and has the large buckets give up memory when
// their share has become smaller and b has filled its own.
func (c *Cache) report(b *bucket, news arrival, w *write) {
	s, a := c.shared, &c.arena
	s.arrive(news, false)
	held := int(s.arrivals.held.Load())
	target := s.largeTarget()
	if held == 0 || held <= target+target/hysteresis+s.pool.ChunkSize()*largeBuckets {
		return
	}
	if !b.isAtLimit() {
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

// What follows is how a cache goes on that the system refuses memory. The pool's bound then
// is what there is, and buckets evict within what they hold. One that holds too little for a
// record takes from others, whose locks it must not wait for, as it keeps its own.

const (
	// insistTries is how often a write is tried again: others may be faster to take what
	// was freed for it.
	insistTries = 8

	// levelTries is how many buckets are asked for a chunk that one is to have.
	levelTries = 16
)

// exceedsMemory returns an error if a record of n bytes would take more than half of the
// memory that the system gives. To try would only drop all others.
func (c *Cache) exceedsMemory(n int) error {
	s := c.shared
	if !s.pool.Limited() || n <= s.inForce()/2 {
		return nil
	}
	if s.pool.Stored(n); n <= s.inForce()/2 { // it may have asked the system again
		return nil
	}
	return fmt.Errorf("record of %d bytes, memory for %d in all: %w",
		n, s.inForce(), cmp.Or(s.pool.Refusal(), ErrNoMemory))
}

// insistLocked tries a write to bucket b again, by calling store, that failed for want of
// memory with err. It has others give up as much as b lacks.
func (c *Cache) insistLocked(b *bucket, w *write, err error, store func() error) error {
	for range insistTries {
		if c.exceedsMemory(w.n) != nil {
			break
		}
		if b.index.Empty() && c.shared.file != nil {
			c.takePageLocked(w)
		}
		if lack := b.lackLocked(w.n); lack > 0 {
			c.takeLocked(b, max(c.shared.pool.Spare(), 0)+lack<<c.shared.shift, w)
		}
		if lack := b.lackLocked(w.n); lack > 0 && b.large {
			own := c.bucket(w.h) // the caller has locked it
			if own.removals != nil {
				own.takeRemovalsLocked(w) // or it would give up one step's, and no more
			}
			own.giveLocked(lack<<c.shared.shift, 0)
		}
		if again := store(); again == nil {
			return nil
		}
	}
	return b.failLocked(w, err)
}

// takeLocked has other buckets give up chunks until the pool has so many bytes to spare for
// bucket b: first what they hold above their quota, then all but a chunk, then all.
func (c *Cache) takeLocked(b *bucket, bytes int, w *write) {
	s := c.shared
	for _, keep := range []func(*bucket) int{
		(*bucket).quota,
		func(*bucket) int { return s.pool.ChunkSize() },
		func(*bucket) int { return 0 },
	} {
		for range s.buckets + largeBuckets {
			if s.pool.Spare() >= bytes {
				return
			}
			c.takeFromNextLocked(b, bytes, keep, w)
		}
	}
}

// takeFromNextLocked has the bucket whose turn it is give up chunks of what it holds above
// keep, until the pool has so many bytes to spare. One that somebody has locked is left alone.
func (c *Cache) takeFromNextLocked(b *bucket, bytes int, keep func(*bucket) int, w *write) {
	s, a := c.shared, &c.arena
	n := s.buckets + largeBuckets
	other := c.nth(int(s.hand.Add(1)) % n)
	if other.large && !b.large { // who writes to a large bucket has the arena's lock
		if !a.mu.TryLock() {
			return
		}
		defer a.mu.Unlock()
	}
	if other == b || !other.tryLock() {
		return
	}
	defer other.unlockFor(w)
	other.giveLocked(bytes-s.pool.Spare(), keep(other))
	if other.large {
		c.note(other, other.heldLocked())
	}
}

// takePageLocked has a bucket give up a page of its index for that of another.
func (c *Cache) takePageLocked(w *write) {
	for i := range c.shared.buckets {
		if b := &c.buckets[i]; b.tryLock() {
			had := b.index.Pages()
			if had > 1 {
				b.halveIndexLocked()
			}
			b.unlockFor(w)
			if had > 1 {
				return
			}
		}
	}
}

// levelLocked is called for a bucket that has taken in a chunk, and does something only
// where the system refuses memory: the pool may ask for more, and a bucket below its quota
// gets a chunk of one above, which may have no Sets that would make it give one up.
func (c *Cache) levelLocked(b *bucket, w *write) {
	s := c.shared
	if !s.pool.Limited() {
		return
	}
	s.pool.Stored(b.inflow.bytes)
	size := s.pool.ChunkSize()
	for range levelTries {
		if s.pool.Spare() >= size || b.heldLocked()+size > b.quota() {
			return
		}
		c.takeFromNextLocked(b, size, (*bucket).quota, w)
	}
}
