package ringcache

import "slices"

// How an index moves to a larger geometry, a few homes at a time.

// growing reports whether homes are still to be moved.
func (x *index) growing() bool { return x.front.Load() != 0 }

// grow adds pages of zero bytes to the table, and begins to move the homes.
func (x *index) grow(pages []chunkRef) {
	// A copy, since a hint may be reading the old slice.
	x.pages = slices.Concat(x.pages, pages)
	x.old = x.cur
	x.cur.groups = uint32(len(x.pages)) << x.pageShift
	if x.cur.groups >= hintGroups {
		x.hint.Store(&indexHint{pages: x.pages, cur: x.cur, old: x.old})
	}
	x.front.Store(x.old.groups)
}

// taken is a slot that has been taken out of its group, and its tag.
type taken struct{ slot, tag uint64 }

// move moves the last n homes that are still in the old geometry. Their entries
// are all taken out before the first is put back: near the table's beginning the
// two geometries share groups. What finds no place is returned through lost.
func (x *index) move(n int, w windows, lost func(slot uint64)) {
	front := x.front.Load()
	if front == 0 {
		return
	}
	var buf [10 * moveRun]taken // more than that is rare, and allocates
	all := buf[:0]
	for ; n > 0 && front > 0; n-- {
		front--
		all = x.takeOut(all, front)
	}
	x.front.Store(front)
	for _, t := range all {
		// The slot begins with the bits of the hash that count.
		if x.group(x.cur.home(t.slot)).put(t.slot, t.tag) {
			continue
		}
		x.used[slotRing(t.slot)]-- // insert counts it again
		if victim, forced := x.insert(slotHash(t.slot, t.tag), t.slot, w); forced {
			lost(victim)
		}
	}
}

// takeOut empties the slots of a home in the old geometry, and appends what was in
// them to all. They still count as used.
func (x *index) takeOut(all []taken, home uint32) []taken {
	path := x.old.path(home)
	for p := path; ; p.next() {
		g := x.group(p.at)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := firstSlot(used)
			if s := g.slots[i]; x.old.home(s) == home {
				all = append(all, taken{slot: s, tag: g.tagAt(i)})
				g.clear(i)
				x.unpass(path, p.at, s)
			}
		}
		if p.left == 0 || !g.passedAny() {
			return all
		}
	}
}

// prefetchMove asks for the groups that the next n homes are going to move from and
// to: by then, some hundred Sets in other buckets later, they have come.
func (x *index) prefetchMove(n int) {
	front := x.front.Load()
	if front == 0 {
		return
	}
	from := front - min(front, uint32(n))
	x.prefetchGroups(from, front-1)
	x.prefetchGroups(x.cur.home(x.old.start(from)<<slotHashAt), x.cur.home((x.old.end(front-1)-1)<<slotHashAt))
}
