package index

import "github.com/ringcache/ringcache/internal/chunk"

// How an index moves to a larger geometry: pages are added at the end of the table, and homes move
// to the new geometry, the last one first, a few with each Set. A home's new place is never before
// its old one, so the groups that it moves to are free.

// Grow adds pages, whose content does not matter, to the table, and begins the move of the homes.
func (x *Index) Grow(pages []chunk.Ref) {
	had := x.Pages()
	n := had + len(pages)
	if n > x.pages.Len() {
		longer := make([]chunk.Ref, max(n, x.pages.Len()*3/2))
		for i := range x.pages.Len() {
			longer[i] = *x.pages.At(uint32(i))
		}
		copy(longer[had:], pages) // first, since readers look into page 0 of an empty index too
		x.pages.Replace(longer)   // before the geometry: see chunk.Table
	}
	for i, r := range pages {
		*x.pages.At(uint32(had + i)) = r
	}
	for g := uint32(had) << x.pageShift; g < uint32(n)<<x.pageShift; g++ {
		x.Group(g).ctrl = 0
	}
	x.old.Store(uint32(had) << x.pageShift)
	x.cur.Store(uint32(n) << x.pageShift)
	x.front.Store(uint32(had) << x.pageShift)
}

// taken is a slot that was taken out of its group, and its tag.
type taken struct{ slot, tag uint64 }

// Move moves the last n homes that are still in the old geometry, and prefetches the next n. All of
// their entries are taken out before the first is put back, because the two geometries share groups
// near the beginning of the table. Slots that are displaced are passed to lost.
func (x *Index) Move(n int, w *Windows, lost func(slot uint64)) {
	front := x.front.Load()
	if front == 0 {
		return
	}
	var buf [40]taken // more are rare, and allocate
	all := buf[:0]
	rest := front - min(front, uint32(n))
	for ; front > rest; front-- {
		all = x.takeOut(all, front-1)
	}
	x.front.Store(rest)
	to := Geometry(x.cur.Load())
	for _, e := range all {
		g := x.Group(to.Home(e.slot))
		if free := ^g.ctrl & tagHighs; free != 0 { // nearly always
			g.put(FirstSlot(free), e.slot, e.tag)
			continue
		}
		x.Used[Ring(e.slot)]-- // Insert counts it again
		if victim, forced := x.Insert(e.slot, e.tag, w); forced {
			lost(victim)
		}
	}
	x.prefetchMove(n)
}

// takeOut empties the slots of a home in the old geometry, and appends their contents to all. They
// still count as used.
func (x *Index) takeOut(all []taken, home uint32) []taken {
	old := Geometry(x.old.Load())
	path := old.Path(old.start(home) << hashAt)
	for p := path; ; p.Next() {
		g := x.Group(p.At)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := FirstSlot(used)
			if s := g.Slots[i].Load(); old.Home(s) == home {
				all = append(all, taken{slot: s, tag: g.take(i)})
				x.addOverflow(path, p.At, s, -1)
			}
		}
		if p.Left == 0 || !g.anyOverflow() {
			return all
		}
	}
}

// prefetchMove prefetches the groups that the next n homes will move from and to: they arrive
// before the move, which comes some hundred Sets in other buckets later.
func (x *Index) prefetchMove(n int) {
	front := x.front.Load()
	if front == 0 {
		return
	}
	from := front - min(front, uint32(n))
	for at := from; at < front; at++ {
		x.Group(at).Prefetch()
	}
	old, to := Geometry(x.old.Load()), Geometry(x.cur.Load())
	last := to.Home((old.start(front) - 1) << hashAt)
	for at := to.Home(old.start(from) << hashAt); at <= last; at++ {
		x.Group(at).Prefetch()
	}
}
