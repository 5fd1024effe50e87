package index

// What a writer does to slots.

// Store puts slot, of the same hash, over the one at p.
func (x *Index) Store(p Place, slot uint64) {
	x.used[Ring(p.Slot)]--
	x.used[Ring(slot)]++
	p.Group.slots[p.I].Store(slot)
}

// SetLatest says that slot is of the record that was set last: it is the last to
// be displaced.
func (x *Index) SetLatest(slot uint64) { x.latest = slot & (ringBit | PosMask) }

// Remove empties the slot of hash h at p.
func (x *Index) Remove(h uint64, p Place) {
	x.clearSlot(x.Path(h), p.At, p.I)
}

// pass counts an entry, of hash or slot h, in the groups that it has passed on
// path p before group at.
func (x *Index) pass(p Path, at uint32, h uint64) {
	for ; p.At != at; p.Next() {
		x.Group(p.At).pass(h)
	}
}

// unpass takes it out of them.
func (x *Index) unpass(p Path, at uint32, h uint64) {
	for ; p.At != at; p.Next() {
		x.Group(p.At).unpass(h)
	}
}

// clearSlot empties slot i of group at, on path p, and takes it out of the
// counts of the groups that it passed (I4).
func (x *Index) clearSlot(p Path, at uint32, i int) {
	g := x.Group(at)
	old := g.Load(i)
	x.used[Ring(old)]--
	g.clear(i)
	x.unpass(p, at, old)
}

// replace puts slot of hash h, on path p, over slot i of group at, which has
// another hash. It is clearSlot and putAt; most slots are in their home group,
// and there is nothing to count.
func (x *Index) replace(p Path, at uint32, i int, h, slot uint64) {
	g := x.Group(at)
	old := g.Load(i)
	x.used[Ring(old)]--
	x.used[Ring(slot)]++
	g.ctrl = g.ctrl&^(0xff<<(8*i)) | Tag(h)<<(8*i)
	g.slots[i].Store(slot)
	if in, home := x.geometry(old); home != at {
		x.unpass(in.path(home), at, old)
	}
	if p.At != at {
		x.pass(p, at, slot)
	}
}

// Insert puts slot where a search for hash h will find it: into the first empty
// place on the path, else over the first stale slot, else, when probeGroups
// groups are full of live ones, over a live one, which it returns.
func (x *Index) Insert(h, slot uint64, w Windows) (victim uint64, forced bool) {
	path := x.Path(h)
	at, i := x.space(path, w)
	if i < 0 {
		// A crowd of equal hashes evicts only its own.
		g := x.Group(path.At)
		i = g.oldest(w, x.latest)
		victim = g.Load(i)
		x.replace(path, path.At, i, h, slot)
		return victim, true
	}
	if g := x.Group(at); g.tagAt(i) == 0 {
		g.putAt(i, slot, Tag(h))
		x.used[Ring(slot)]++
		x.pass(path, at, slot) // (I4)
	} else {
		x.replace(path, at, i, h, slot)
	}
	return 0, false
}

// space returns the first group on a path with an empty place or a stale slot,
// and which place that is, the first empty one or else the first stale one; i is
// below 0 if there is no such group.
func (x *Index) space(p Path, w Windows) (at uint32, i int) {
	for ; ; p.Next() {
		g := x.Group(p.At)
		m := g.empties()
		if m == 0 {
			m = g.stale(w)
		}
		if m != 0 {
			return p.At, FirstSlot(m)
		}
		if p.Left == 0 {
			return 0, -1
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
				x.clearSlot(x.Path(knownHash(s, g.tagAt(i))), x.sweepAt, i)
			}
		}
		x.sweepAt = (x.sweepAt + 1) % x.cur.size()
	}
}

// Each calls fn with every used slot, and the part of its hash that is known.
func (x *Index) Each(fn func(hash, slot uint64)) {
	for n := range x.cur.size() {
		g := x.Group(n)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := FirstSlot(used)
			s := g.Load(i)
			fn(knownHash(s, g.tagAt(i)), s)
		}
	}
}

// TakeHome appends the live slots with hashes from at on, of HashBits bits, up
// to the end of at's home, which it returns. What readers change is left out of
// them. A path may come by a group twice, and so may they.
func (x *Index) TakeHome(slots []uint64, at uint64, w Windows) ([]uint64, uint64) {
	in, home := x.geometry(at << hashAt)
	end := in.end(home) // front is between two homes (I6): in holds for all of them
	for p := in.path(home); ; p.Next() {
		g := x.Group(p.At)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			s := g.Load(FirstSlot(used))
			if hash := HashOf(s); hash >= at && hash < end && w.live(s) {
				slots = append(slots, s&^(freqMask|trialBit))
			}
		}
		if p.Left == 0 || !g.anyOverflow() {
			return slots, end
		}
	}
}

// HashOf returns the bits of a hash that a slot remembers, as a number of
// HashBits bits.
func HashOf(slot uint64) uint64 { return slot >> hashAt }
