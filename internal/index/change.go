package index

// How a writer changes slots.

// Store replaces the slot at p with another one of the same hash.
func (x *Index) Store(p Place, slot uint64) {
	x.used[PartOf(p.Slot)]--
	x.used[PartOf(slot)]++
	p.Group.slots[p.I].Store(slot)
}

// SetLatest records that slot is that of the record set last, which must not be displaced.
func (x *Index) SetLatest(slot uint64) { x.latest = slot & (ringMask | PosMask) }

// Remove empties the slot at p, and decrements the counts of the groups that it passed (I4).
func (x *Index) Remove(p Place) {
	s := p.Group.Load(p.I)
	x.used[PartOf(s)]--
	p.Group.clear(p.I)
	if path := x.Path(s); path.At != p.At {
		x.addOverflow(path, p.At, s, -1)
	}
}

// addOverflow adds by to the counts, for a hash or slot h, of the groups on path p before group at.
func (x *Index) addOverflow(p Path, at uint32, h uint64, by int) {
	for ; p.At != at; p.Next() {
		x.Group(p.At).addOverflow(h, by)
	}
}

// Insert puts slot, with its tag, where a search will find it: in the first empty or stale place on
// its path, or, if probeGroups groups are full of live slots, in place of a live one, which it
// returns.
func (x *Index) Insert(slot, tag uint64, w Windows) (victim uint64, forced bool) {
	path := x.Path(slot)
	p, found := x.space(path, w)
	if !found {
		// Entries with equal hashes evict only each other.
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

// space finds the first group on a path with an empty or stale place, and returns its first empty
// place, or its first stale one if none is empty.
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

// Sweep examines the next n groups and drops slots that have been stale for so long that their
// position may come round again (I5).
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

// TakeHome appends the live slots whose hashes, of HashBits bits, lie between at and the end of
// at's home, and returns that end. A path may visit a group twice, so a slot may be appended twice,
// with different frequencies if a reader raised it in between.
func (x *Index) TakeHome(slots []uint64, at uint64, w Windows) ([]uint64, uint64) {
	in := x.geometry(at << hashAt)
	home := in.home(at << hashAt)
	end := in.start(home + 1) // the same geometry for all of them (I6)
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
