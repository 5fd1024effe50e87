package ringcache

import "encoding/binary"

// The common case of Get and of a Set over an older value, which is a straight
// line: a short record without an expiry, in one chunk, with its slot in the home
// group. All else is find's, which the common case is written out of: how many
// instructions wait for a cache line decides how many later ones can begin before
// it has come.

// direct returns the value of k in place, and its slot, in the common case, which
// is a straight line: a short record, in one chunk, with its slot in the home group.
// v is nil if k is not there; if that is not sure, getAny finds out. cold tells that
// the record has not been asked for.
func (b *bucket) direct(k []byte, h uint64, cold bool) (v []byte, at slotRef, sure bool) {
	x := &b.index
	tag := tagOf(h)
	if len(x.pages) == 0 || x.aside == uint8(tag) {
		return nil, slotRef{}, x.aside == 0
	}
	g := x.group(x.home(h))
	for m := g.matches(tag); m != 0; m &= m - 1 {
		i := firstSlot(m)
		s := g.load(i)
		r := &b.rings[slotRing(s)]
		if (s^h)>>slotHashAt != 0 || !r.alive(s) {
			continue
		}
		if cold && r.lines > 1 {
			r.prefetchNext(s)
		}
		rec := r.run(s)
		if len(rec) < 4 {
			return nil, slotRef{}, false
		}
		w := binary.LittleEndian.Uint32(rec)
		value := shortHeader + len(k) // not the record's length: see match
		end := value + int(w>>8&maxShortValue)
		if w&longBit != 0 || int(w&maxShortKey) != len(k) || end > len(rec) || string(rec[shortHeader:value]) != string(k) {
			return nil, slotRef{}, false
		}
		return rec[value:end], slotRef{&g.slots[i], s}, true
	}
	return nil, slotRef{}, !g.passed()
}

// overwriteLocked is setLocked for the common case of a key that is there: it
// writes in place, and reports whether it has.
func (b *bucket) overwriteLocked(w *write) bool {
	if w.expiry != 0 || b.shared.onEvict != nil {
		return false
	}
	v, _, _ := b.direct(w.k, w.h, false) // has no room for an expiry, and so is no mark
	if v == nil || len(v) != len(w.v) {
		return false
	}
	copy(v, w.v)
	return true
}
