package ringcache

import (
	"cmp"
	"fmt"

	"github.com/ringcache/ringcache/internal/store"
)

// Records that would fill a noticeable part of their bucket are stored in a separate arena, which
// consists of a few large buckets. In a bucket of a few records, eviction would be a matter of
// luck.
//
// The share of the large buckets follows that of a single first-in first-out cache: the fraction of
// recently stored bytes that belonged to large records. The small buckets divide most of the rest.
//
// A key is in one place at a time: a Set holds the small bucket's lock over both places, and so
// does a Get when shared.LargeKeys tells it to look in the large one too.

// reclaim makes other buckets release memory for large bucket lb until the pool has need bytes:
// first what is above their quotas, then chunks of small buckets, since what these hold within
// their quotas may be more than what they divide, and last of large ones. The small bucket of the
// key, which may have it, gives nothing.
func (c *engine) reclaim(lb *bucket, need int, w *write) {
	s, a := c.shared, &c.arena
	takeFrom := func(b *bucket, n, keep int) {
		if b != lb && b != c.bucket(w.Hash) {
			c.drain(b, n, keep, w)
		}
	}
	fromSmall := func(n, keep int) (got bool) {
		had := s.Pool.Spare()
		for i := 0; i < s.Buckets && s.Pool.Spare() < need; i++ {
			takeFrom(&c.buckets[a.hand%uint32(s.Buckets)], n, keep)
			a.hand++
		}
		return s.Pool.Spare() > had
	}
	fromLarge := func(keep int) {
		for i := range a.buckets {
			if lack := need - s.Pool.Spare(); lack > 0 {
				takeFrom(&a.buckets[i], lack, keep)
			}
		}
	}
	fromSmall(max(need, drainMost), store.KeepQuota)
	fromLarge(store.KeepQuota)
	for fromSmall(1<<s.Shift, 0) {
	}
	fromLarge(0)
}

// pause calls OnRemove for the entries that a write has removed, if they make up a step. The caller
// holds the arena's lock and no other; pause releases it meanwhile.
func (c *engine) pause(w *write) {
	if !w.removals.IsStep() {
		return
	}
	c.arena.mu.Unlock()
	defer c.arena.mu.Lock()
	c.notify(w)
}

// drainMost bounds the bytes that a small bucket gives up at once for a record of less.
const drainMost = 256 << 10

// drain makes a bucket release n bytes of the memory that it holds above keep, in steps.
func (c *engine) drain(b *bucket, n, keep int, w *write) {
	for n > 0 {
		b.lock()
		n = b.Give(n, keep)
		b.unlockFor(w)
		c.pause(w)
	}
}

// balance makes a large bucket release memory, held for dead bytes or above its quota, if small
// bucket b, which has stored news bytes, is at its limit.
func (c *engine) balance(b *bucket, news int, w *write) {
	a, full := &c.arena, false
	if c.shared.Arrivals.Held.Load() > 0 {
		b.look(func(s *store.Store) { full = s.IsAtLimit() })
	}
	if !full || !a.mu.TryLock() {
		return // in the latter case a later call may do it
	}
	defer a.mu.Unlock()
	a.hand++
	lb := &a.buckets[a.hand%store.LargeBuckets]
	c.drain(lb, balanceRatio*news, store.KeepQuota, w)
}

// balanceRatio: a large bucket gives up at most so many times the bytes that a full small one has
// stored.
const balanceRatio = 8

// How a cache works when the system refuses memory. The pool's bound shrinks then, and buckets
// evict within the memory that they hold. A bucket that holds too little for a record takes memory
// from others.

const (
	// retryTries is how often a write is retried at most: other writes may be faster to take the
	// memory that was freed for it.
	retryTries = 8

	// levelTries is how many buckets are asked at most for a chunk for a bucket below its quota.
	levelTries = 16
)

// exceedsMemory returns an error if the system refuses memory, and a record of n bytes would take
// more than half of what there is for records.
func (c *engine) exceedsMemory(n int) error {
	s := c.shared
	if !s.Pool.Limited() || n <= s.ForRecords()/2 {
		return nil
	}
	// The pool may ask the system again, but not for each record.
	if s.Pool.Stored(min(n, s.Pool.ChunkSize()), 2*n); n <= s.ForRecords()/2 {
		return nil
	}
	return fmt.Errorf("record of %d bytes, at most %d while the system grants %d: %w",
		n, s.ForRecords()/2, s.EffectiveBound(), cmp.Or(s.Pool.Refusal(), ErrNoMemory))
}

// retryLocked retries a write to bucket b that failed for lack of memory with err. It makes other
// buckets release as much memory as b lacks; own is the key's small bucket, which is locked too.
func (c *engine) retryLocked(b, own *bucket, w *write, err error) error {
	for more, tries := true, 0; more && tries < retryTries; tries++ {
		if c.exceedsMemory(w.Bytes) != nil ||
			b.Index.Empty() && c.shared.File != nil && !c.takePageLocked(w) {
			break
		}
		more = c.takeLackLocked(b, w)
		if lack := b.Lack(w.Bytes); lack > 0 && b.Large {
			for n := lack << c.shared.Shift; n > 0; n = own.Give(n, 0) {
				own.takeRemovalsLocked(w) // or it would release no more than one step
			}
		}
		if b.Set(&w.Write) == nil {
			return nil
		}
	}
	return b.Fail(&w.Write, err)
}

// takeLackLocked makes other buckets release the chunks that bucket b lacks for a record: first the
// memory above their quotas, then all but one chunk, then everything. It reports false if they have
// not enough, and none was locked.
func (c *engine) takeLackLocked(b *bucket, w *write) (more bool) {
	s, lack := c.shared, b.Lack(w.Bytes)
	if lack <= 0 {
		return true
	}
	bytes, at := max(s.Pool.Spare(), 0)+lack<<s.Shift, s.Hand.Load()
	for _, keep := range []int{store.KeepQuota, s.Pool.ChunkSize(), 0} {
		for range s.Buckets + store.LargeBuckets {
			if s.Pool.Spare() >= bytes {
				return true
			}
			at++ // not Hand, which others advance too: this walk must see each bucket
			s.Hand.Store(at)
			more = !c.takeFromLocked(b, at, bytes, keep, w) || more
		}
	}
	return more || s.Pool.Spare() >= bytes
}

// takeFromLocked makes the bucket at a place in the rotation release chunks of the memory that it
// holds above keep, until the pool has the given number of spare bytes. It skips a bucket that is
// locked, and reports false then; but a small bucket waits for a large one.
func (c *engine) takeFromLocked(
	b *bucket, at uint32, bytes, keep int, w *write,
) (ok bool) {
	s := c.shared
	other := c.nth(int(at % uint32(s.Buckets+store.LargeBuckets)))
	if other == b {
		return true
	}
	if lb := other; lb.Large && !b.Large { // in the order of locks
		lb.lock()
		defer lb.unlockFor(w)
	} else if !other.tryLock() {
		return false
	} else {
		defer other.unlockFor(w)
	}
	for n := bytes - s.Pool.Spare(); n > 0; n = other.Give(n, keep) {
		other.takeRemovalsLocked(w)
	}
	return true
}

// takePageLocked makes a bucket release a page of its index for that of another bucket. It reports
// false if no index has two.
func (c *engine) takePageLocked(w *write) (more bool) {
	s := c.shared
	if s.Pool.PagesUsed() <= int(s.Indexes.Load()) {
		return false
	}
	for i := range s.Buckets {
		if b := &c.buckets[i]; b.tryLock() {
			gave := b.GivePages()
			b.unlockFor(w)
			if gave {
				break
			}
		}
	}
	return true
}

// levelLocked is called for a bucket that has accepted n bytes, and has an effect only if the
// system refuses memory: the pool may ask for more, and a bucket below its quota gets a chunk of
// one above, which may have no Sets that would make it release one.
func (c *engine) levelLocked(b *bucket, w *write, n int) {
	s := c.shared
	if !s.Pool.Limited() {
		return
	}
	s.Pool.Stored(n, 0)
	size := s.Pool.ChunkSize()
	for range levelTries {
		if m := b.Sizes(); s.Pool.Spare() >= size || m.Held+size > m.Quota {
			return
		}
		c.takeFromLocked(b, s.Hand.Add(1), size, store.KeepQuota, w)
	}
}
