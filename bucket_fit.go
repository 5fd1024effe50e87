package ringcache

import "github.com/ringcache/ringcache/internal/policy"

// fitLocked does one step of making b as small as its quota says.
func (b *Store) fitLocked(f *fit) {
	if b.closed {
		f.done = true
		return
	}
	quota := b.quota()
	if !f.begun {
		b.longest = b.shared.longest(b.shared.bound(), b.large)
		f.begun, f.pages = true, b.pagesWithin(quota)
		f.moves = quota
	}
	chunks := max(quota-f.pages*b.shared.pool.PageSize(), 0) >> b.shared.shift
	b.wanted = f.pages - b.index.Pages() // for limitLocked
	f.done = b.shedLocked(chunks, &f.moves)
	b.wanted = 0
	b.sweepLocked() // moved records use up positions (I5)
	if f.done && f.pages < b.index.Pages() {
		b.repackIndexLocked(f.pages)
	}
}

// fit is how far a bucket is on its way to a smaller size.
type fit struct {
	begun bool
	done  bool
	pages int // that its index is to have
	moves int // bytes of records that may still be moved instead of dropped
}

// pagesWithin returns how many pages the index is to have when the bucket holds no
// more than quota: those that it has, unless it needs far fewer by then.
func (b *Store) pagesWithin(quota int) int {
	has, live := b.index.Pages(), b.liveLocked()
	each := b.size()/max(live, 1) + slotBytes
	live = min(live, quota/each)
	// A little more than it needs, lest it grow again at once.
	needs := b.pagesFor(live + live/8)
	if needs+needs/2 < has {
		has = needs
	}
	return min(has, b.maxPages(quota))
}

// shedLocked evicts until the rings hold no more than total chunks together, or a
// step's work is done, and reports which. Up to moves bytes in all are moved.
func (b *Store) shedLocked(total int, moves *int) bool {
	work := b.setWork(0)
	work.Records = stepRecords
	work.Bytes = min(*moves, max(work.Bytes, b.longest), 1<<min(b.shared.posBits-4, 30))
	budget, from := work.Bytes, b.size()
	defer func() { *moves -= budget - work.Bytes }()
	for range stepRecords {
		ring, over := b.overLocked(total)
		if !over {
			return true
		}
		if from-b.size()+budget-work.Bytes >= stepBytes {
			break
		}
		if r := b.ring(ring); r.Size == 0 {
			r.Trim()
		} else {
			b.evictTailLocked(ring, &work)
		}
	}
	return false
}

// overLocked returns a ring that holds more than its part of total chunks, if all rings together
// hold more than that. Otherwise Sets even out the parts, and no entry has to leave for it.
func (b *Store) overLocked(total int) (policy.Ring, bool) {
	l := b.divideLocked(total)
	if b.cold.held() > l.cold {
		return b.cold.oldest(), true
	}
	if !b.isOverLocked(l) {
		return 0, false
	}
	for i := range b.rings {
		if b.rings[i].Held() > l.of(policy.Ring(i)) {
			return policy.Ring(i), true
		}
	}
	return 0, false
}

// repackIndexLocked shrinks the index to n pages, which come from the pool: if each
// bucket kept some of its old ones, hardly any chunk cut into pages would become idle.
func (b *Store) repackIndexLocked(n int) {
	old := b.index.TakenPages()
	pages, err := b.shared.pool.Pages(n)
	if err != nil {
		b.rebuildIndexLocked(old[:n], old[n:])
		return
	}
	b.rebuildIndexLocked(pages, old)
}
