package index

import (
	"unsafe"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/prefetch"
)

// How an index moves to a larger geometry, a few homes at a time.
//
// Pages are added at the table's end, and homes move from the old geometry to
// the new one, the last first, a few with each Set: a home's new place is never
// before its old one, so there is always room behind the frontier. A growing
// table is never rebuilt.

// Growing reports whether homes are still to be moved.
func (x *Index) Growing() bool { return x.front.Load() != 0 }

// Grow adds pages, of any content, to the table, and begins to move the homes.
func (x *Index) Grow(pages []chunk.Ref) {
	had := x.Pages()
	n := had + len(pages)
	if n > x.pages.Len() {
		longer := make([]chunk.Ref, max(n, x.pages.Len()*3/2))
		for i := range x.pages.Len() {
			longer[i] = *x.pages.At(uint32(i))
		}
		x.pages.Replace(longer) // before the geometry: see chunk.Table
	}
	for i, r := range pages {
		*x.pages.At(uint32(had + i)) = r
	}
	for g := uint32(had) << x.pageShift; g < uint32(n)<<x.pageShift; g++ {
		x.Group(g).wipe()
	}
	x.old.groups.Store(uint32(had) << x.pageShift)
	x.cur.groups.Store(uint32(n) << x.pageShift)
	x.front.Store(uint32(had) << x.pageShift)
}

// taken is a slot that was taken out of its group, and its tag.
type taken struct{ slot, tag uint64 }

// Move moves the last n homes that are still in the old geometry. Their entries
// are all taken out before the first is put back: near the table's beginning the
// two geometries share groups. What finds no place is returned through lost.
func (x *Index) Move(n int, w Windows, lost func(slot uint64)) {
	front := x.front.Load()
	if front == 0 {
		return
	}
	var buf [40]taken // more than that is rare, and allocates
	all := buf[:0]
	for ; n > 0 && front > 0; n-- {
		front--
		all = x.takeOut(all, front)
	}
	x.front.Store(front)
	for _, e := range all {
		// The slot begins with the bits of the hash that count.
		if x.Group(x.cur.home(e.slot)).put(e.slot, e.tag) {
			continue
		}
		x.used[Ring(e.slot)]-- // Insert counts it again
		if victim, forced := x.Insert(knownHash(e.slot, e.tag), e.slot, w); forced {
			lost(victim)
		}
	}
}

// takeOut empties the slots of a home in the old geometry, and appends what was
// in them to all. They still count as used.
func (x *Index) takeOut(all []taken, home uint32) []taken {
	path := x.old.path(home)
	for p := path; ; p.Next() {
		g := x.Group(p.At)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := FirstSlot(used)
			if s := g.Load(i); x.old.home(s) == home {
				all = append(all, taken{slot: s, tag: g.tagAt(i)})
				g.clear(i)
				x.unpass(path, p.At, s)
			}
		}
		if p.Left == 0 || !g.anyOverflow() {
			return all
		}
	}
}

// PrefetchMove asks for the groups that the next n homes are going to move from
// and to: by then, some hundred Sets in other buckets later, they have come.
func (x *Index) PrefetchMove(n int) {
	front := x.front.Load()
	if front == 0 {
		return
	}
	from := front - min(front, uint32(n))
	x.prefetch(from, front-1)
	first, last := x.old.start(from), x.old.end(front-1)-1
	x.prefetch(x.cur.home(first<<hashAt), x.cur.home(last<<hashAt))
}

// prefetch asks for the groups from first to last.
func (x *Index) prefetch(first, last uint32) {
	for n := first; n <= last; n++ {
		// Sound: nothing is read.
		prefetch.Line(unsafe.Pointer(x.Group(n)))
	}
}
