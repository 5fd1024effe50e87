package ringcache

import (
	"fmt"

	"github.com/ringcache/ringcache/internal/store"
)

// How a cache changes its size while it is in use.
//
// Larger is simple: there is more to divide. Smaller is work, in steps: each takes
// one bucket's lock and evicts a little. Three figures fall in turn. First
// shared.MaxBytes, from which follow the longest value, the border of large
// records, and what the large buckets should hold; when these have shrunk,
// shared.total, which the small buckets divide; and with each step the pool's
// bound, which is never below what is in use until the end, so that nobody looks
// for memory that nobody has.
//
// A Set that chose its bucket by the old figures is sent back by bucket.longest.

// leastChunks is how many chunks a bucket must have on the average.
const leastChunks = 4

// Resize sets the bound on off-heap memory to MaxBytes, while others use the cache.
// When it returns, memory is within a smaller bound, unless another call has taken over,
// and what lay above has gone back to the operating system, unless the cache lies on the
// Go heap (see the section Memory of the package) or was made with less than 64 MB (256 MB
// where the system's pages have 16 KB). Entries stay as far as there is room, first those
// that have been read. OnRemove is called between steps, each of which locks a bucket,
// for 64 KB or 256 records, or to make its index anew.
//
// The rule for maxBytes is that of [Options].MaxBytes. Besides, Resize accepts at least an eighth
// of the bound that the cache was made with, or 128 MB if that was 1 GB or more, and at most 4 TB,
// or 8 GB for each bucket of a cache that was made with less than 32 MB. Beyond these it returns
// [ErrInvalidOptions] and changes nothing. After Close it returns [ErrClosed]. If calls overlap,
// the last one wins; earlier ones may return before memory is within either bound. A value above a
// sixteenth of the new bound goes when it would be moved.
func (c *Cache) Resize(maxBytes int) error {
	least, most := boundsOf(c.shared.Buckets, 1<<c.shared.Shift)
	err := checkBound(maxBytes)
	if err == nil && (maxBytes < least || int64(maxBytes) > most) {
		err = fmt.Errorf("MaxBytes is %d bytes, must be from %d to %d for the size it was made with: %w",
			maxBytes, least, most, ErrInvalidOptions)
	}
	if err != nil {
		return fmt.Errorf("ringcache: resize cache: %w", err)
	}
	if !c.resize(maxBytes) {
		return fmt.Errorf("ringcache: resize cache: %w", ErrClosed)
	}
	return nil
}

// boundsOf returns the least and the most that a cache with these buckets and chunks can be
// bounded to.
func boundsOf(buckets, chunkSize int) (least int, most int64) {
	return leastChunks * buckets * chunkSize, int64(buckets) * maxBucketBytes
}

// resize is Resize to a size that is known to be right. It reports false if the
// cache is closed.
func (c *Cache) resize(maxBytes int) bool {
	if turn, work := c.beginResize(maxBytes); work {
		c.shrink(turn, maxBytes)
	}
	return !c.isClosed()
}

// isClosed reports whether Close has come.
func (c *Cache) isClosed() bool {
	b := &c.buckets[0]
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Closed
}

// beginResize sets the bound, and reports whether there is more to do.
func (c *Cache) beginResize(maxBytes int) (turn uint64, work bool) {
	z := &c.sizing
	z.mu.Lock()
	defer z.mu.Unlock()
	z.turn++
	bound := c.shared.Bound()
	if maxBytes > bound {
		c.enlarge(maxBytes)
	}
	// One that was replaced, or that a panic in OnRemove has ended, has left work.
	z.unfinished = z.unfinished || maxBytes < bound
	if z.unfinished {
		c.arena.mu.Lock() // a large Set has its value checked and stored under it
		c.shared.SetBound(maxBytes)
		c.arena.mu.Unlock()
	}
	return z.turn, z.unfinished
}

// enlarge gives the cache more memory. Buckets take longer records before any Set
// brings one, which they would send back otherwise.
func (c *Cache) enlarge(maxBytes int) {
	s := c.shared
	s.Pool.SetBound(maxBytes)
	c.each(func(b *bucket) {
		b.mu.Lock()
		b.Longest = max(b.Longest, s.Longest(maxBytes, b.Large))
		b.mu.Unlock()
	})
	if z := s.Compression; z != nil {
		z.Allow(s.Longest(maxBytes, false))
	}
	s.SetBound(maxBytes)
	c.allot(maxBytes)
}

// allot has the small buckets divide total bytes, less what the large ones have.
func (c *Cache) allot(total int) {
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	c.shared.Total.Store(int64(total))
	c.shared.SetQuotas()
}

// shrink makes the cache smaller, until another Resize comes.
func (c *Cache) shrink(turn uint64, to int) {
	pool, over := c.shared.Pool, false
	step := func(do func(w *write)) { over = over || !c.shrinkStep(turn, to, do) }
	for i := range c.arena.buckets {
		for f := (store.Fit{}); !f.Done && !over; {
			step(func(w *write) { c.fitLargeStep(&c.arena.buckets[i], &f, w) })
		}
	}
	step(func(*write) { c.allot(to) })
	for i := range c.shared.Buckets {
		for f := (store.Fit{}); !f.Done && !over; {
			step(func(w *write) { c.fitStep(&c.buckets[i], &f, w) })
		}
	}
	// Seldom is still more in use: chunks of which only some pages are.
	n := c.shared.Buckets + store.LargeBuckets
	for gave := true; gave; {
		gave = false
		for i := 0; i < n && !over && pool.Used() > to; i++ {
			step(func(w *write) { gave = c.giveChunk(c.nth(i), w) || gave })
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

// shrinkStep does one step, and tells OnRemove of the entries evicted. It reports false
// if another Resize has come.
func (c *Cache) shrinkStep(turn uint64, to int, do func(w *write)) bool {
	var w write
	defer c.notify(&w)
	c.sizing.mu.Lock()
	defer c.sizing.mu.Unlock()
	if c.sizing.turn != turn {
		return false
	}
	do(&w)
	c.shared.Pool.Lower(to)
	return true
}

// fitStep does a step of making a bucket as small as its quota says.
func (c *Cache) fitStep(b *bucket, f *store.Fit, w *write) {
	b.lock()
	defer b.unlockFor(w)
	f.Step(&b.Store)
}

// fitLargeStep is fitStep of a large bucket.
func (c *Cache) fitLargeStep(lb *bucket, f *store.Fit, w *write) {
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	c.fitStep(lb, f, w)
	c.updateQuotas(lb)
}

// giveChunk has a bucket give up a chunk, and reports whether it had any.
func (c *Cache) giveChunk(b *bucket, w *write) bool {
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	if b.Large {
		defer c.updateQuotas(b)
	}
	b.lock()
	defer b.unlockFor(w)
	if b.Memory().Chunks == 0 {
		return false
	}
	b.Give(c.shared.Pool.ChunkSize(), 0)
	return true
}
