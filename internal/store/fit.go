package store

import "github.com/ringcache/ringcache/internal/policy"

// Fit is the progress of making a bucket smaller.
type Fit struct {
	begun bool
	Done  bool
	pages int // pages that the index is to have
	moves int // bytes of records that may still be moved instead of dropped
}

// Step does one step of making b as small as its quota says.
func (f *Fit) Step(b *Store) {
	if b.Closed {
		f.Done = true
		return
	}
	quota := b.quota()
	if !f.begun {
		b.Longest = b.Shared.Longest(b.Shared.Bound(), b.Large)
		f.begun, f.pages = true, b.pagesWithin(quota)
		f.moves = quota
	}
	chunks := max(quota-f.pages*b.Shared.Pool.PageSize(), 0) >> b.Shared.Shift
	b.pageDelta = int32(f.pages - b.Index.Pages()) // for limit
	f.Done = b.shed(chunks, &f.moves)
	b.pageDelta = 0
	b.sweep() // moved records use up positions (I5)
	if f.Done && f.pages < b.Index.Pages() {
		b.repackIndex(f.pages)
	}
}

// pagesWithin returns how many pages the index is to have when the bucket holds no more than quota:
// as many as now, unless far fewer will do.
func (b *Store) pagesWithin(quota int) int {
	has, live := b.Index.Pages(), b.live()
	each := b.size()/max(live, 1) + SlotBytes
	live = min(live, quota/each)
	// A little more than it needs, lest it grow again at once.
	needs := b.pagesFor(live + live/8)
	if needs+needs/2 < has {
		has = needs
	}
	return min(has, b.maxPages(quota))
}

// shed compacts, then evicts until the rings hold no more than total chunks together, or the work
// of a step is done. It reports whether the former is true. Up to moves bytes in all are moved.
func (b *Store) shed(total int, moves *int) (done bool) {
	work := b.setWork(0)
	work.Records = StepRecords
	work.Bytes = min(*moves, max(work.Bytes, b.Longest), b.Shared.mostMoved)
	budget, from := work.Bytes, b.size()
	defer func() { *moves -= budget - work.Bytes }()
	left := StepRecords
	b.vacate(&work, func() (in policy.Ring, more bool) {
		if in, more = b.over(total); !more {
			done = true
			return in, false
		}
		if dead, worth := b.deadest(); worth {
			in = dead
		}
		left--
		return in, left >= 0 && from-b.size()+budget-work.Bytes < StepBytes
	})
	return done
}

// over returns a ring that holds more than its part of total chunks, if all rings together hold
// more than that. If they do not, later Sets even out the parts, and no entry has to be evicted.
func (b *Store) over(total int) (policy.Ring, bool) {
	l := b.divide(total)
	if b.cold.held() <= l.cold && !b.isOver(l) {
		return 0, false
	}
	return b.tooLarge(l)
}

// repackIndex shrinks the index to n pages, which come from the pool: if each
// bucket kept some of its old ones, hardly any chunk cut into pages would become idle.
func (b *Store) repackIndex(n int) {
	old := b.Index.TakenPages()
	pages, err := b.Shared.Pool.Pages(n)
	if err != nil {
		b.rebuildIndex(old[:n], old[n:])
		return
	}
	b.rebuildIndex(pages, old)
}
