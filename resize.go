package ringcache

import (
	"fmt"
	"math"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// How a cache changes its size while it is in use.
//
// Growing is simple: there is more memory to divide. Shrinking is done in steps, most of which lock
// a bucket, and move or evict a little. First all buckets give up what their live records do not
// need; then, while that is not enough, those evict that lose the least for a chunk. Three figures
// fall in order. The first is shared.MaxBytes, which determines the longest value, the threshold of
// large records, and what the large buckets should hold. When these have shrunk, shared.Total
// follows, which the small buckets divide. The pool's bound falls last; until the end it is never
// below the memory in use, so that no bucket looks for memory that does not exist.
//
// A Set that went by the old figures is sent back by errResized.

// leastChunks is the least average number of chunks in a bucket.
const leastChunks = 4

// Resize sets [Options].MaxBytes to maxBytes while the cache is in use. When it returns after
// lowering the limit, and no other call overlaps, the excess has gone back to the operating system,
// except on the Go heap, in a File without holes, and in a cache made with less than 1 GB where
// pages exceed 4 KB. It evicts what no longer fits; [PolicyS3FIFO] usually prefers to keep entries
// that were read. It works in short steps. In a cache much smaller than it was made,
// [Options].Compressor may keep nothing.
//
// The minimum is at most 1/8 of the limit that the cache or its File was made with, and at most 128
// MB, but at least 256 KB. The maximum is up to 4 TB. Outside this range Resize returns
// [ErrInvalidOptions] and changes nothing. If calls overlap, the latest wins.
func (c *Cache) Resize(maxBytes int) error {
	if c.space != nil {
		return fmt.Errorf("ringcache: resize cache: %w", ErrNamespace)
	}
	least, most := boundsOf(c.shared.Buckets, 1<<c.shared.Shift, c.least)
	if maxBytes < least || int64(maxBytes) > most {
		return fmt.Errorf("ringcache: resize cache: MaxBytes is %d bytes, must be from %d to %d "+
			"for the size it was made with: %w", maxBytes, least, most, ErrInvalidOptions)
	}
	if c.isClosed() || !c.resize(maxBytes) {
		return fmt.Errorf("ringcache: resize cache: %w", ErrClosed)
	}
	return nil
}

// boundsOf returns the least and the greatest bound of a cache with these buckets and chunks. No
// cache has less than floor.
func boundsOf(buckets, chunkSize, floor int) (least int, most int64) {
	return max(leastChunks*buckets*chunkSize, floor), int64(buckets) * maxBucketBytes
}

// resize is Resize to a valid size. It reports false if the cache is closed.
func (c *engine) resize(maxBytes int) bool {
	if turn, work := c.beginResize(maxBytes); work {
		c.shrink(turn, maxBytes)
	}
	return !c.isClosed()
}

// beginResize sets the bound, and reports whether memory has to be released.
func (c *engine) beginResize(maxBytes int) (turn uint64, work bool) {
	z := &c.sizing
	z.mu.Lock()
	defer z.mu.Unlock()
	z.turn++
	bound := c.shared.Bound()
	if maxBytes > bound {
		c.enlarge(maxBytes)
	}
	// A call that was superseded, or that a panic in OnRemove has ended, has left work.
	z.unfinished = z.unfinished || maxBytes < bound
	if z.unfinished {
		c.arena.mu.Lock() // a large Set checks and stores its value under it
		c.shared.SetBound(maxBytes)
		c.arena.mu.Unlock()
	}
	return z.turn, z.unfinished
}

// enlarge gives the cache more memory. Buckets must accept longer records before any Set brings
// one: they would send it back.
func (c *engine) enlarge(maxBytes int) {
	s := c.shared
	s.Pool.SetBound(maxBytes)
	c.allot(maxBytes)
	c.each(func(b *bucket) { b.look(func(s *store.Store) { s.Enlarge(maxBytes) }) })
	s.SetBound(maxBytes)
}

// allot makes the small buckets divide total bytes, less those of the large ones.
func (c *engine) allot(total int) {
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	c.shared.Total.Store(int64(total))
	c.shared.SetQuotas()
}

// shrink makes the cache smaller, until it is done or another Resize begins. All buckets compact,
// the large ones first; then some evict, those that lose the least for a chunk first.
func (c *engine) shrink(turn uint64, to int) {
	pool, over := c.shared.Pool, false
	bound := math.MaxInt // the pool's, lest moves to large buckets find no memory
	step := func(do func(w *write)) { over = over || !c.shrinkStep(turn, bound, do) }
	fit := func(b *bucket, f store.Fit) (evicts bool) {
		for !f.Done && !over {
			step(func(w *write) { c.fitStep(b, &f, w) })
		}
		return f.Evicts
	}
	n := c.shared.Buckets + store.LargeBuckets
	for i := c.shared.Buckets; i < n; i++ {
		fit(c.nth(i), store.Fit{})
	}
	step(func(*write) { c.allot(to) })
	for i := range c.shared.Buckets {
		func(b *bucket, l store.Long) {
			defer b.look(l.End) // also after a panic in OnRemove
			for !l.Done && !over {
				c.moveLong(b, &l)
				step(func(*write) {}) // unless another Resize has begun
			}
		}(c.nth(i), store.Long{})
	}
	bound = to
	for i := range c.shared.Buckets {
		fit(c.nth(i), store.Fit{})
	}
	for loss, gave := 0, true; gave || loss < pool.ChunkSize(); {
		loss, gave = loss+pool.ChunkSize()/lossSteps, false
		for i := 0; i < n && !over && pool.Used() > to; i++ {
			// Even if a smaller index takes the place of the chunk, the bucket has given something.
			gave = fit(c.nth(i), store.Fit{Evicts: true, Loss: loss}) || gave
		}
	}
	for more := true; more && !over; {
		step(func(*write) {
			if more = pool.Trim(); !more {
				pool.SetBound(to)
				c.sizing.unfinished = false
			}
		})
	}
}

// lossSteps: the buckets that lose up to 1/lossSteps of a chunk give one first, then those that
// lose up to twice as much, and so on.
const lossSteps = 8

// shrinkStep does one step, and passes the evicted entries to OnRemove. It reports false if another
// Resize has begun.
func (c *engine) shrinkStep(turn uint64, to int, do func(w *write)) bool {
	var w write
	defer c.notify(&w)
	c.sizing.mu.Lock()
	defer c.sizing.mu.Unlock()
	if c.sizing.turn != turn {
		return false
	}
	c.shared.Pool.Lower(to)
	do(&w)
	return true
}

// fitStep is one step of making a bucket smaller.
func (c *engine) fitStep(b *bucket, f *store.Fit, w *write) {
	if b.Large {
		c.arena.mu.Lock()
		defer c.arena.mu.Unlock()
	}
	b.lock()
	defer b.unlockFor(w)
	f.Step(&b.Store)
}

// moveLong moves entries of a small bucket that are large by the new bound to the large buckets.
// The caller holds no lock.
func (c *engine) moveLong(b *bucket, l *store.Long) {
	b.look(l.Next)
	v := scratch.Get()
	defer v.Release()
	for i := range l.Found {
		w := write{Write: l.Found[i], cond: ifEqual, keeps: true, counted: true}
		value, _, got := c.lookupAny(v.Bytes[:0], w.Key, w.Hash, withValue)
		v.Bytes = value
		if got == hit && len(value) <= c.shared.MaxValue() && c.exceedsMemory(w.Bytes) == nil {
			w.Value, w.old = value, value
			c.shared.CountMoved(w.Bytes)
			_ = c.setLarge(b, &w) // if there is no memory, the entry is lost
			c.notify(&w)
		}
	}
}
