package ringcache

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
)

// How large a bucket's index begins, how it grows, and how it forgets what is
// long gone.

// growthPart is the part of its pages by which an index grows: an eighth, rounded
// down, or one page. Smaller steps would move entries more often, larger ones leave
// more room unused.
const growthPart = 8

// moveRun is how many homes move with each Set while an index grows, before it looks for its key: while the
// line of the index comes. All have to move before the next growth: that takes 1.5 a Set where the index has grown by an
// eighth, and 3.8 at the worst, by one of 15 pages where records are large. With fewer, what has not moved becomes too
// full meanwhile; more would cost less each, since they are neighbours, and be felt by every hundredth Set.
const moveRun = 4

// How many sixteenths of its slots are used when an index grows. Fewer take more memory from records, and leave
// more ghosts and shorter ways: to a place for a new key, and to knowing that a key is not there.
const (
	crowdedFilling = 12 // as long as nothing has been evicted
	crowdedFull    = 11 // then, if records have fullRecord bytes: new keys meet entries and ghosts in all groups
	crowdedFIFO    = 10 // the same with PolicyFIFO, where there is no entry that stays in its home group
	crowdedRoomy   = 9  // always, if they have roomyRecord bytes
)

// The mean sizes of records from which an index may have more slots: what those take is a fiftieth or so of what
// they are for.
const (
	fullRecord  = 1 << 6
	roomyRecord = 1 << 10
)

// whenCrowded returns how many sixteenths of its slots are used when the index of a bucket grows that has records of
// that mean size; full tells that it has evicted some.
func whenCrowded(kind policy.Kind, mean int, full bool) uint8 {
	switch {
	case mean >= roomyRecord:
		return crowdedRoomy
	case mean < fullRecord || !full:
		return crowdedFilling
	case kind == policy.FIFO:
		return crowdedFIFO
	}
	return crowdedFull
}

// crowdedStill is how many sixteenths fewer of the slots may be used while an index waits for its pages. A
// bucket may have to give up a chunk of records for them, and must not think again for it.
const crowdedStill = 2

// crowded reports whether the index is to grow.
func (b *bucket) crowded() bool {
	at := int(b.crowdedAt)
	if b.pending > 0 {
		at -= crowdedStill
	}
	return b.liveLocked()*16 >= b.index.slots()*at
}

// moveLocked does the index's share of a Set while it grows.
func (b *bucket) moveLocked() {
	b.index.move(moveRun, b.windows(), b.loseLocked)
	b.index.prefetchMove(moveRun)
}

// expectation is what was said of the entries to come: how many in the whole
// cache, and the bytes of a value; 0 is unknown. Nothing but speed depends on it.
type expectation struct{ entries, valueSize int }

const (
	typicalKey    = 16 // bytes of a key, of which nothing is said
	typicalRecord = 64 // bytes of a record if nothing is said of values either
	entrySlots    = 13 // bytes of an index for an entry: a quarter or so of the slots is not used
)

// record returns the bytes of an expected record.
func (e expectation) record() int {
	if e.valueSize == 0 {
		return typicalRecord
	}
	return shortHeader + typicalKey + e.valueSize
}

// mean returns the bytes of an expected record, or 0 if nothing is said of them.
func (e expectation) mean() int {
	if e.valueSize == 0 {
		return 0
	}
	return e.record()
}

// firstPages returns how many pages an index is to begin with: as many as the
// bucket's share of the expected entries needs, but for no more of them than
// fit. A few more come to one bucket than to another, hence the root.
func (b *bucket) firstPages() int {
	e := b.shared.expected
	if e.entries == 0 || b.large {
		return 1
	}
	quota := b.quota()
	mean := e.entries / b.shared.buckets
	n := min(mean, quota/(e.record()+entrySlots))
	return min(b.pagesFor(n+int(3*math.Sqrt(float64(n)))), b.mostPages(quota))
}

// pagesFor returns the least pages with which an index of n entries is not
// crowded.
func (b *bucket) pagesFor(n int) int {
	at := int(b.crowdedAt)
	slots := n/at*16 + 16
	groups := slots/groupSlots + 1
	return (groups + 1<<b.index.pageShift - 1) >> b.index.pageShift
}

// startIndexLocked gives an empty index its first pages: those that it is going
// to need if they can be had, else one.
func (b *bucket) startIndexLocked() error {
	p := b.shared.pool
	if n := b.firstPages(); n > 1 && p.spare() >= n*p.pageSize+2*p.chunkSize && b.growIndexLocked(n) == nil {
		return nil
	}
	return b.growIndexLocked(1)
}

// tendIndexLocked starts a larger geometry if the index is crowded, and has grown into the last.
func (b *bucket) tendIndexLocked() {
	x := &b.index
	if x.growing() {
		return // each Set moves some homes
	}
	if !b.crowded() {
		b.pending = 0 // perhaps a growth that is not needed any more
		return
	}
	n := max(1, len(x.pages)/growthPart)
	b.pending = int32(n)
	if len(x.pages)+n > b.mostPages(b.quota()) {
		b.pending = 0 // tiny records: the index has its part, and forgets the oldest
		return
	}
	if b.isOverLocked(b.limitLocked()) || b.shared.pool.spare() < n*b.shared.pool.pageSize {
		return // the next Sets make room for it
	}
	// A refusal is no harm: the next Set tries again.
	_ = b.growIndexLocked(n)
}

// mostPages returns how many pages an index may have in a bucket of that quota:
// three quarters of it, which only the tiniest records need, but not the last
// two chunks.
func (b *bucket) mostPages(quota int) int {
	return max(1, min(quota*3/4, quota-2<<b.shared.shift)>>(b.index.pageShift+groupShift))
}

// compactLocked makes an index smaller that has more pages than it may: the
// bucket's quota has fallen far. The rings have been cut down before, so that
// there is little to enter.
func (b *bucket) compactLocked() {
	most := b.mostPages(b.quota())
	if len(b.index.pages) > most {
		b.rebuildLocked(b.index.pages[:most], b.index.pages[most:])
	}
}

// rebuildLocked enters what is alive into an index of other pages, and gives
// the rest back. Pages of the index may be among them.
func (b *bucket) rebuildLocked(pages, rest []chunkRef) {
	x := &b.index
	type entry struct{ hash, slot uint64 }
	var alive []entry
	x.each(func(tag, slot uint64) {
		if b.windows().alive(slot) {
			alive = append(alive, entry{slotHash(slot, tag), slot})
		}
	})
	x.reset()
	b.mu.outwaitGlances()
	b.shared.pool.putPages(rest)
	for i := range pages {
		clear(chunkBytes(&pages[i], 0, uint32(b.shared.pool.pageSize)))
	}
	x.grow(pages)
	b.pending = 0
	for _, e := range alive {
		if victim, forced := x.insert(e.hash, e.slot, b.windows()); forced {
			b.loseLocked(victim)
		}
	}
}

// growIndexLocked adds n pages to the index.
func (b *bucket) growIndexLocked(n int) error {
	pages, err := b.shared.pool.takePages(n)
	if err != nil {
		return err
	}
	b.index.grow(pages)
	b.pending = 0
	b.outlook = unforeseen // the rings may hold less now
	if !b.index.patient && b.putsAside() {
		b.index.patient = true
		b.shared.patient.Store(true)
	}
	return nil
}

// putsAside reports whether the bucket is to put Sets aside. With OnEvict it does
// not: what a Set replaces is to be told by the call itself.
func (b *bucket) putsAside() bool {
	from := b.shared.asideFrom
	return from > 0 && int(b.index.cur.groups) >= from && !b.large && b.shared.onEvict == nil
}

// sweepLocked drops outdated stale slots, at a pace that comes round to every
// group within an eighth of the position space (I5). Records that moved have
// used up positions as new ones have.
func (b *bucket) sweepLocked() {
	per := b.shared.posBits - 3 // log2 of the bytes for each round
	b.unswept += uint64(b.appended) * uint64(b.index.cur.groups)
	b.appended = 0
	if n := b.unswept >> per; n > 0 {
		b.unswept -= n << per
		b.index.sweep(int(n), b.windows())
	}
}
