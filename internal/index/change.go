package index

// What a writer does to slots.

// Store puts slot, of the same hash, over the one at p.
func (x *Index) Store(p Place, slot uint64) {
	x.used[PartOf(p.Slot)]--
	x.used[PartOf(slot)]++
	p.Group.slots[p.I].Store(slot)
}

// SetLatest says that slot is of the record that was set last: it is the last to
// be displaced.
func (x *Index) SetLatest(slot uint64) { x.latest = slot & (ringMask | PosMask) }

// Remove empties the slot at p, and takes it out of the counts of the groups that it
// passed (I4).
func (x *Index) Remove(p Place) {
	s := p.Group.Load(p.I)
	x.used[PartOf(s)]--
	p.Group.clear(p.I)
	if path := x.Path(s); path.At != p.At {
		x.addOverflow(path, p.At, s, -1)
	}
}

// addOverflow counts by entries more, of a hash or slot, in the groups that path p has before
// group at.
func (x *Index) addOverflow(p Path, at uint32, h uint64, by int) {
	for ; p.At != at; p.Next() {
		x.Group(p.At).addOverflow(h, by)
	}
}

// Insert puts slot, with its tag, where a search will find it: into the first empty or
// stale place on its path, or, when probeGroups groups are full of live ones, over a
// live one, which it returns.
func (x *Index) Insert(slot, tag uint64, w Windows) (victim uint64, forced bool) {
	path := x.Path(slot)
	p, found := x.space(path, w)
	if !found {
		// A crowd of equal hashes evicts only its own.
		g := x.Group(path.At)
		p = Place{Group: g, At: path.At, I: g.oldest(w, x.latest)}
		victim = g.Load(p.I)
	}
	if p.Group.tagAt(p.I) != 0 {
		x.Remove(p)
	}
	p.Group.put(p.I, slot, tag)
	x.used[PartOf(slot)]++
	x.addOverflow(path, p.At, slot, 1) // (I4)
	return victim, !found
}

// space returns the first empty place in the first group on a path that has an empty or
// a stale one, else its first stale one.
func (x *Index) space(p Path, w Windows) (Place, bool) {
	for ; ; p.Next() {
		g := x.Group(p.At)
		m := g.empties()
		if m == 0 {
			m = g.stale(w)
		}
		if m != 0 {
			return Place{Group: g, At: p.At, I: FirstSlot(m)}, true
		}
		if p.Left == 0 {
			return Place{}, false
		}
	}
}

// Sweep looks at the next n groups and drops slots that are stale for so long
// that their position may come round (I5).
func (x *Index) Sweep(n int, w Windows) {
	for range min(n, x.Groups()) {
		g := x.Group(x.sweepAt)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := FirstSlot(used)
			if s := g.Load(i); w.of(s).Outdated(s) {
				x.Remove(Place{Group: g, At: x.sweepAt, I: i})
			}
		}
		x.sweepAt = (x.sweepAt + 1) % x.cur.Load()
	}
}

// Each calls fn with every used slot, and its tag.
func (x *Index) Each(fn func(slot, tag uint64)) {
	for n := range x.cur.Load() {
		g := x.Group(n)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := FirstSlot(used)
			fn(g.Load(i), g.tagAt(i))
		}
	}
}

// TakeHome appends the live slots with hashes from at on, of HashBits bits, up
// to the end of at's home, which it returns. A path may come by a group twice, and so may they:
// readers may have changed the frequency in between.
func (x *Index) TakeHome(slots []uint64, at uint64, w Windows) ([]uint64, uint64) {
	in := x.geometry(at << hashAt)
	home := in.home(at << hashAt)
	end := in.start(home + 1) // front is between two homes (I6): in holds for all of them
	for p := in.path(home); ; p.Next() {
		g := x.Group(p.At)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			s := g.Load(FirstSlot(used))
			if hash := HashOf(s); hash >= at && hash < end && w.live(s) {
				slots = append(slots, s)
			}
		}
		if p.Left == 0 || !g.anyOverflow() {
			return slots, end
		}
	}
}
