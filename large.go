package ringcache

import (
	"cmp"
	"fmt"

	"github.com/ringcache/ringcache/internal/store"
)

// Records that would fill a noticeable part of their bucket are stored in a separate arena, which
// consists of a few large buckets. A small bucket holds 1/512 of a cache, or 64 KB of a small one,
// so a value of 1/16 of the cache would not even fit, and in a bucket of a few records, eviction
// would be a matter of luck.
//
// The large buckets are ordinary ones, except that their memory varies. Their share follows that of
// a single first-in first-out cache: the fraction of recently stored bytes that belonged to large
// records. The small buckets divide the rest.
//
// A key is in one place at a time (I8): a Set holds the small bucket's lock over both places, and
// so does a Get when shared.LargeKeys tells it to look in the large one too.

// setLarge stores a large record. It makes other buckets release memory only once the condition of
// the write holds, and spares the bucket of the key: no write evicts the entry that it is about.
func (c *engine) setLarge(b *bucket, w *write) error {
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	need, err := c.setInLarge(b, w, false)
	if need == 0 {
		return err
	}
	c.shared.AddHeld(need) // the small buckets' quotas leave it out meanwhile
	defer c.shared.AddHeld(-need)
	c.reclaim(c.largeBucket(w.Hash), need, w)
	_, err = c.setInLarge(b, w, true)
	return err
}

// setInLarge stores a large record whose small bucket is b. If it returns a need, it has stored
// nothing: other buckets have to release memory first, until the pool has so many bytes. freed
// tells that they have.
func (c *engine) setInLarge(b *bucket, w *write, freed bool) (need int, err error) {
	lb := c.largeBucket(w.Hash)
	b.lock()
	defer b.unlockFor(w)
	lb.lock()
	lb.MoveHomes() // as in setSmall
	lb.unlockFor(w)
	if err := c.beginLocked(b, w); err != nil {
		return 0, err
	}
	if len(w.Value) > c.shared.MaxValue() {
		return 0, errResized
	}
	lb.lock()
	defer lb.unlockFor(w)
	// Check again: a search of lb for forgotten entries, which may have ended meanwhile, does not see
	// this one.
	if lb.IsForgotten(&w.Write) {
		return 0, errForgotten
	}
	if !freed && !w.RewriteOnly {
		c.shared.CountArrival(store.Arrival{Records: 1, Bytes: w.Bytes}, true)
	}
	lb.Expect(w.Bytes)
	defer lb.Expect(0)
	if need = lb.Demand(w.Bytes); !freed && c.shared.Pool.Spare() < need {
		return need, nil
	}
	b.invalidateLocked(w)
	b.Delete(&w.Write, nil)
	for freed && c.shared.Pool.Spare() < need && b.Give(need, store.KeepQuota) > 0 {
		if b.Removals != nil { // reclaim has spared b
			b.takeRemovalsLocked(w)
		}
	}
	if err := lb.Set(&w.Write); err != nil {
		if err = c.retryLocked(lb, b, w, err); err != nil {
			return 0, err
		}
	}
	c.shared.Pool.Stored(w.Bytes, 0)
	lb.Arrived(w.Bytes)
	return 0, nil
}

// reclaim makes other buckets release the bytes that large bucket lb will need and the pool lacks:
// small buckets release the memory above their new quotas, and in a cache of very few chunks the
// other large ones as much as necessary. The small bucket of the key, which may have it, does not.
func (c *engine) reclaim(lb *bucket, need int, w *write) {
	s, a := c.shared, &c.arena
	for range s.Buckets {
		if s.Pool.Spare() >= need {
			return
		}
		if b := &c.buckets[a.hand]; b != c.bucket(w.Hash) {
			c.drain(b, max(need, drainMost), store.KeepQuota, w)
		}
		a.hand = (a.hand + 1) % s.Buckets
	}
	for i := range a.buckets {
		other := &a.buckets[i]
		if missing := need - s.Pool.Spare(); missing > 0 && other != lb {
			c.drain(other, missing, 0, w)
		}
	}
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

// takeFromLargeLocked makes the large buckets release chunks for a small record, whose bucket is
// locked. None of them has its key.
func (c *engine) takeFromLargeLocked(w *write) {
	for i := range c.arena.buckets {
		lb := &c.arena.buckets[i]
		lb.lock()
		for lb.Give(c.shared.Missing(w.Bytes), 0) > 0 {
			if lb.Removals != nil {
				lb.takeRemovalsLocked(w)
			}
		}
		lb.unlockFor(w)
	}
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

// balance makes the large buckets release memory if small bucket b, which has stored news bytes,
// has filled its own with live entries: what they hold for dead bytes, or above their quota.
func (c *engine) balance(b *bucket, news int, w *write) {
	a := &c.arena
	if c.shared.Arrivals.Held.Load() == 0 || !b.isAtLimit() {
		return
	}
	if !a.mu.TryLock() {
		return // the next call will do it
	}
	defer a.mu.Unlock()
	a.hand = (a.hand + 1) % c.shared.Buckets
	lb := &a.buckets[a.hand%store.LargeBuckets]
	c.drain(lb, balanceRatio*news, store.KeepLive, w)
}

// balanceRatio: of the memory that large buckets hold for dead bytes, full small buckets get so
// many times the bytes that they store.
const balanceRatio = 8

// How a cache works when the system refuses memory. The pool's bound is then the memory that
// exists, and buckets evict within the memory that they hold. A bucket that holds too little for a
// record takes memory from others, whose locks it must not wait for, because it keeps its own.

const (
	// retryTries is the number of times that a write is retried: other writes may be faster to take
	// the memory that was freed for it.
	retryTries = 8

	// levelTries is the number of buckets that are asked for a chunk for a bucket below its quota.
	levelTries = 16
)

// exceedsMemory returns an error if a record of n bytes would take more than half of the memory
// that the system provides. Storing it would only drop all other records.
func (c *engine) exceedsMemory(n int) error {
	s := c.shared
	if !s.Pool.Limited() || n <= s.ForRecords()/2 {
		return nil
	}
	// The pool may ask the system again, but not for each record, however long it is.
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
			if own.Removals != nil {
				own.takeRemovalsLocked(w) // or it would release no more than one step
			}
			own.Give(lack<<c.shared.Shift, 0)
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
// locked, and reports false then.
func (c *engine) takeFromLocked(
	b *bucket, at uint32, bytes, keep int, w *write,
) (ok bool) {
	s := c.shared
	other := c.nth(int(at % uint32(s.Buckets+store.LargeBuckets)))
	if other == b {
		return true
	}
	if !other.tryLock() {
		return false
	}
	defer other.unlockFor(w)
	other.Give(bytes-s.Pool.Spare(), keep)
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

// levelLocked is called for a bucket that has accepted a chunk of n bytes, and has an effect only
// if the system refuses memory: the pool may ask for more, and a bucket below its quota gets a
// chunk of one above, which may have no Sets that would make it release one.
func (c *engine) levelLocked(b *bucket, w *write, n int) {
	s := c.shared
	if !s.Pool.Limited() {
		return
	}
	s.Pool.Stored(n, 0)
	size := s.Pool.ChunkSize()
	for range levelTries {
		if m := b.Memory(); s.Pool.Spare() >= size || m.Held+size > m.Quota {
			return
		}
		c.takeFromLocked(b, s.Hand.Add(1), size, store.KeepQuota, w)
	}
}
