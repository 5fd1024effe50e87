package ringcache

import (
	"fmt"

	"github.com/ringcache/ringcache/internal/policy"
)

// How a cache changes its size while it is in use.
//
// Larger is simple: there is more to divide. Smaller is work, which is done in
// steps: each takes one bucket's lock and evicts a little. Three figures fall
// one after another. First commons.maxBytes, from which follow the longest
// value, the border between small and large records, and what the large
// buckets should hold; when these have shrunk, commons.total, which the small
// buckets divide; and with each step the pool's bound, which is never below
// what is in use until the end, so that nobody meanwhile has to look for memory
// that nobody has.
//
// A Set that has read the old figures may come to its bucket when that is done
// already. The bucket knows the longest record that it takes (bucket.most), and
// sends a longer one back to begin again.

// A step of shrinking ends when it has dropped or moved so much.
const (
	fitRecords = 256
	fitBytes   = 64 << 10
)

// leastChunks is how many chunks a bucket must have on the average.
const leastChunks = 4

// Resize sets the bound on off-heap memory to maxBytes, at any time and while
// others use the cache. When it has made the cache smaller and returns, its
// memory is within the new bound, and what lay above has gone back to the
// operating system. Entries stay as far as there is room for them, before all
// those that have been read. The longest value is a sixteenth of the new bound; a
// longer one that is there goes when it would be moved.
//
// A cache can have an eighth of the bound that it was made with, one of 1 GB or
// more at least 128 MB, and none less than 32 MB; upwards there is the limit of
// Options.MaxBytes. Beyond these Resize returns [ErrInvalidOptions], naming the
// limit, and changes nothing; after Close it returns [ErrClosed]. Memory is still
// taken in chunks of the size that the first bound asked for, so a cache that is
// to become a hundred times larger is better made large, and resized to what it
// may have at first.
//
// Resize takes time in proportion to what has to go, but locks a bucket only for
// steps of 64 KB or 256 records, and once while its index is made anew. Calls of
// Resize wait for each other. Options.OnEvict is called between the steps, for
// what has gone with each; it must not call Resize itself, which would wait for
// the one that called it. Where the cache lies on the Go heap (see the
// section Memory of the package), and where it was made with less than 64 MB, or
// four times that on systems with pages of 16 KB, what is free is kept for
// reuse.
func (c *Cache) Resize(maxBytes int) error {
	s := c.shared
	least := max(minMaxBytes, leastChunks*s.buckets<<s.shift)
	if maxBytes < least {
		return fmt.Errorf("ringcache: resize cache: %d bytes, must be at least %d: %w", maxBytes, least, ErrInvalidOptions)
	}
	if int64(maxBytes) > maxMaxBytes {
		return fmt.Errorf("ringcache: resize cache: %d bytes, must be at most %d: %w", maxBytes, int64(maxMaxBytes), ErrInvalidOptions)
	}
	if !c.resize(maxBytes) {
		return fmt.Errorf("ringcache: resize cache: %w", ErrClosed)
	}
	return nil
}

// resize is Resize to a size that is known to be right. It reports false if the
// cache is closed.
func (c *Cache) resize(maxBytes int) bool {
	c.sizing.Lock()
	defer c.sizing.Unlock()
	switch bound := c.shared.bound(); {
	case maxBytes > bound:
		c.enlarge(maxBytes)
	case maxBytes < bound: // to the same size, it would still make large buckets fit
		c.shrink(maxBytes)
	}
	b := &c.buckets[0]
	b.hold()
	defer b.mu.release()
	return !b.closed
}

// enlarge gives the cache more memory. Buckets take longer records before any
// Set brings one, or the two would go on asking each other.
func (c *Cache) enlarge(maxBytes int) {
	s := c.shared
	s.pool.raise(maxBytes)
	c.each(func(b *bucket) {
		b.lock()
		b.most = max(b.most, s.longestOf(maxBytes, b.large))
		b.mu.Unlock()
	})
	s.maxBytes.Store(int64(maxBytes))
	c.allot(maxBytes)
}

// allot has the small buckets divide total bytes, less what the large ones have.
func (c *Cache) allot(total int) {
	g := &c.region
	g.mu.Lock()
	defer g.mu.Unlock()
	c.shared.total.Store(int64(total))
	c.shared.divide()
}

// shrink takes memory from the cache.
func (c *Cache) shrink(maxBytes int) {
	s, g := c.shared, &c.region
	var w write
	g.mu.Lock() // a large Set has its value checked and stored under it
	s.maxBytes.Store(int64(maxBytes))
	g.mu.Unlock()
	for i := range g.buckets {
		lb := &g.buckets[i]
		for f := (fit{}); !f.done; s.pool.lower(maxBytes) {
			g.mu.Lock()
			lb.fit(&f, &w)
			c.settle(lb)
			g.mu.Unlock()
			c.announce(&w)
		}
	}
	c.allot(maxBytes)
	for i := range s.buckets {
		for f := (fit{}); !f.done; s.pool.lower(maxBytes) {
			c.buckets[i].fit(&f, &w)
			c.announce(&w)
		}
	}
	c.squeeze(maxBytes)
	for s.pool.cool() {
	}
}

// squeeze sees to what shrink has left in use above the bound, which is seldom
// anything: idle pages in chunks that are cut and partly in use.
func (c *Cache) squeeze(maxBytes int) {
	s := c.shared
	s.pool.join()
	for gave := true; gave && int(s.pool.used.Load()) > maxBytes; {
		gave = false
		c.each(func(b *bucket) {
			if int(s.pool.used.Load()) > maxBytes && c.giveChunk(b) {
				gave = true
			}
		})
		s.pool.lower(maxBytes)
	}
	s.pool.bound.Store(int64(maxBytes))
}

// giveChunk has a bucket give up a chunk, and reports whether it had any.
func (c *Cache) giveChunk(b *bucket) bool {
	var w write
	c.region.mu.Lock()
	b.lock()
	had := b.chunksLocked() > 0
	if had {
		b.giveLocked(c.shared.pool.chunkSize, 0)
	}
	b.unlock(&w)
	if b.large {
		c.settle(b)
	}
	c.region.mu.Unlock()
	c.announce(&w)
	return had
}

// fit is how far a bucket is on its way to a smaller size.
type fit struct {
	begun bool
	done  bool
	pages int // that its index is to have
	moves int // bytes of records that may still be moved instead of dropped
}

// fit does one step of making b as small as its quota says.
func (b *bucket) fit(f *fit, w *write) {
	b.lock()
	defer b.unlock(w)
	if b.closed {
		f.done = true
		return
	}
	quota := b.quota()
	if !f.begun {
		b.most = b.shared.longest(b.large)
		f.begun, f.pages = true, b.pagesWithin(quota)
		f.moves = quota
	}
	chunks := max(quota-f.pages*b.shared.pool.pageSize, 0) >> b.shared.shift
	b.pending = int32(f.pages - len(b.index.pages)) // for limitLocked
	f.done = b.shedLocked(chunks, &f.moves)
	b.pending = 0
	b.sweepLocked() // moved records use up positions (I5)
	if f.done && f.pages < len(b.index.pages) {
		b.repackLocked(f.pages)
	}
}

// pagesWithin returns how many pages the index is to have when the bucket holds
// no more than quota: as many as it has, unless it needs far fewer by then.
func (b *bucket) pagesWithin(quota int) int {
	has, live := len(b.index.pages), b.liveLocked()
	each := b.sizeLocked()/max(live, 1) + entrySlots
	live = min(live, quota/each)
	// A little more than it needs, lest it grow again at once.
	needs := b.pagesFor(live + live/8)
	if needs+needs/2 < has {
		has = needs
	}
	return min(has, b.mostPages(quota))
}

// shedLocked evicts until the rings hold no more than total chunks together. It
// reports false when it has done a step's work before. What has been read is
// moved and not dropped, as ever, up to moves bytes in all.
func (b *bucket) shedLocked(total int, moves *int) bool {
	work := b.setWork(0)
	work.Records = fitRecords
	work.Bytes = min(*moves, max(work.Bytes, b.most), 1<<min(b.shared.posBits-4, 30))
	budget, from := work.Bytes, b.sizeLocked()
	defer func() { *moves -= budget - work.Bytes }()
	for range fitRecords {
		ring, over := b.overLocked(total)
		if !over {
			return true
		}
		if from-b.sizeLocked()+budget-work.Bytes >= fitBytes {
			break
		}
		if r := &b.rings[ring]; r.size == 0 {
			r.trim()
		} else {
			b.evictTailLocked(ring, &work)
		}
	}
	return false
}

// overLocked returns a ring that holds more than its part of total chunks.
func (b *bucket) overLocked(total int) (policy.Ring, bool) {
	l := b.divideLocked(total)
	for i := range b.rings {
		if b.rings[i].held() > l.of(policy.Ring(i)) {
			return policy.Ring(i), true
		}
	}
	return 0, false
}

// sizeLocked returns the bytes in both rings, of the dead too.
func (b *bucket) sizeLocked() int {
	return int(b.rings[policy.Small].size + b.rings[policy.Main].size)
}

// repackLocked makes the index one of n pages. They come from the pool, which
// has others' leftovers: were each bucket to keep some of its own, most chunks
// that are cut would remain so.
func (b *bucket) repackLocked(n int) {
	old := b.index.pages
	pages, err := b.shared.pool.takePages(n)
	if err != nil {
		b.rebuildLocked(old[:n], old[n:])
		return
	}
	b.rebuildLocked(pages, old)
	b.shared.pool.join()
}
