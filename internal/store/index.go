package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
)

// The size of a bucket's index: how large it begins, how it grows, and how it drops old stale
// slots.

const (
	// An index grows by 1/growthPart of its pages, but at least by one. Smaller steps would move
	// entries more often, larger ones leave room unused.
	growthPart = 8

	// homesPerSet is how many homes move with each Set while an index grows. All must have moved
	// before the next growth, which takes 1.5 for each Set, and 3.8 in the worst case.
	homesPerSet = 4
)

// How many sixteenths of its slots are used when an index grows. A lower number takes more memory
// from records, but keeps more ghosts and makes searches shorter.
const (
	growFilling = 12 // as long as nothing was evicted
	growFull    = 11 // after that, if records have fullRecord bytes: all groups have ghosts
	growFIFO    = 10 // the same with PolicyFIFO, where no entry stays in its home group
	growRoomy   = 9  // always, if they have roomyRecord bytes

	fullRecord  = 1 << 6
	roomyRecord = 1 << 10
)

// growAt returns that number for a bucket. mean is the mean size of its records; full, whether it
// has evicted any.
func growAt(kind policy.Kind, mean int, full bool) int {
	switch {
	case mean >= roomyRecord:
		return growRoomy
	case mean < fullRecord || !full:
		return growFilling
	case kind == policy.FIFO:
		return growFIFO
	}
	return growFull
}

// growStill is how many sixteenths fewer of the slots suffice while an index waits for pages:
// evictions that make room for these pages must not end the wait.
const growStill = 2

// isCrowded reports whether the index is to grow.
func (b *Store) isCrowded() bool {
	at := int(b.growAt)
	if b.pageDelta > 0 {
		at -= growStill
	}
	return b.live()*16 >= b.Index.Groups()*index.GroupSlots*at
}

// MoveHomes does the index's share of a Set while it grows. It may lose entries of equal hashes, so
// it is called before the condition of a write is checked.
func (b *Store) MoveHomes() {
	b.Index.Move(homesPerSet, &b.windows, b.displace)
}

const (
	shortRecord = 64 // bytes of the shortest records for which an index is made in advance
	SlotBytes   = 13 // bytes of an index for each entry, if a quarter of the slots is unused
)

// firstPages returns how many pages an index begins with: as many as the bucket's share of the
// expected entries needs, but not more than a bucket full of short records needs. The root allows
// for buckets that get more entries than others.
func (b *Store) firstPages() int {
	if b.Shared.Expected == 0 || b.Large {
		return 1
	}
	quota := b.quota()
	n := min(b.Shared.Expected/b.Shared.Buckets, quota/(shortRecord+SlotBytes))
	return min(b.pagesFor(n+int(3*math.Sqrt(float64(n)))), b.maxPages(quota))
}

// pagesFor returns the least pages with which an index of n entries is not
// crowded.
func (b *Store) pagesFor(n int) int { return b.Index.PagesFor(n/int(b.growAt)*16 + 16) }

// fewPages returns how many pages will do for the index, and whether these are far fewer than it
// has.
func (b *Store) fewPages() (n int, few bool) {
	n = b.pagesFor(b.live() + b.live()/8) // a little more than it needs, lest it grow again at once
	return n, n+n/2 < b.Index.Pages()
}

// startIndex gives an empty index firstPages if the pool has room for them and for a record
// of size bytes, else one page.
func (b *Store) startIndex(size int) error {
	p, n := b.Shared.Pool, b.firstPages()
	fits := p.Spare() >= p.PagesSize(n)+(b.chunksFor(size)+1)*p.ChunkSize()
	if n > 1 && fits && b.growIndex(n) == nil {
		return nil
	}
	return b.growIndex(1)
}

// tendIndex lets a crowded index grow, unless its last growth is still under way.
func (b *Store) tendIndex() {
	if b.Index.Growing() {
		return // each Set moves some homes
	}
	if !b.isCrowded() {
		b.pageDelta = 0 // a growth that was planned is not needed any more
		return
	}
	n := max(1, b.Index.Pages()/growthPart)
	b.pageDelta, b.hint = int32(n), hintUnknown
	if b.Index.Pages()+n > b.maxPages(b.quota()) {
		b.pageDelta = 0 // tiny records: the index has its part, and drops the oldest slots
		return
	}
	p := b.Shared.Pool
	if !b.isOver(b.limits()) && p.Spare() >= p.PagesSize(n) {
		_ = b.growIndex(n)
	} // else, or if the pages are refused, the next Sets make room for them
}

// maxPages returns how many pages an index may have in a bucket of that quota:
// three quarters of it, but not the last two chunks.
func (b *Store) maxPages(quota int) int {
	return max(1, min(quota-quota/4, quota-2<<b.Shared.Shift)/b.Shared.Pool.PageSize())
}

// keepPages gives the pages of the index beyond the first n back to the pool.
func (b *Store) keepPages(n int) {
	if n < b.Index.Pages() {
		pages := b.Index.TakenPages()
		b.rebuildIndex(pages[:n], pages[n:])
	}
}

// GivePages gives half of the index's pages back to the pool. It reports false if there are fewer
// than two.
func (b *Store) GivePages() bool {
	n := b.Index.Pages()
	b.keepPages((n + 1) / 2)
	return n > 1
}

// rebuildIndex makes the index anew from pages, which may be its own, with the live slots only. It
// gives the pages in rest back.
func (b *Store) rebuildIndex(pages, rest []chunk.Ref) {
	type entry struct{ slot, tag uint64 }
	var live []entry
	b.Index.Each(func(slot, tag uint64) {
		if b.Ring(index.Ring(slot)).Live(slot) {
			live = append(live, entry{slot, tag})
		}
	})
	b.Index.Reset()
	b.Shared.Pool.PutPages(rest)
	b.Index.Grow(pages)
	b.pageDelta = 0
	for _, e := range live {
		if victim, forced := b.Index.Insert(e.slot, e.tag, &b.windows); forced {
			b.displace(victim)
		}
	}
}

// growIndex adds n pages to the index.
func (b *Store) growIndex(n int) error {
	pages, err := b.Shared.Pool.Pages(n)
	if err != nil {
		return err
	}
	if b.Index.Empty() {
		b.Shared.Indexes.Add(1)
	}
	b.Index.Grow(pages)
	b.pageDelta = 0
	b.hint = hintUnknown // the rings may hold less now
	return nil
}

// sweep drops outdated stale slots, at a pace that reaches every group within an eighth of the
// position space (I5). Records that were moved use up positions as new ones do.
func (b *Store) sweep() {
	per := b.Shared.PosBits - 3 // log2 of the bytes for each round
	b.unswept += uint64(b.appended) * uint64(b.Index.Groups())
	b.appended = 0
	if n := b.unswept >> per; n > 0 {
		b.unswept -= n << per
		b.Index.Sweep(int(n), &b.windows)
	}
}
