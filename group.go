package ringcache

import (
	"math/bits"
	"sync/atomic"
)

// group is one cache line of the index.
type group struct {
	ctrl  uint64
	slots [groupSlots]uint64
}

// tagAt returns the tag of slot i; 0 if the slot is empty.
func (g *group) tagAt(i int) uint64 { return g.ctrl >> (8 * i) & 0xff }

// matches returns a word with the high bit set in each byte i whose tag is
// tag. There are no false positives: the addition cannot carry from a byte.
func (g *group) matches(tag uint64) uint64 {
	x := g.ctrl ^ tag*tagOnes
	return ^((x&tagLows + tagLows) | x) & tagHighs
}

// empties returns a word with the high bit set in each byte of an empty slot.
func (g *group) empties() uint64 { return ^g.ctrl & tagHighs }

// stale returns a word with the high bit set in each byte of a slot that is not
// alive; none is empty. It has no branches: nobody could foretell them.
func (g *group) stale(w windows) (m uint64) {
	tails, sizes, mask := [ringCount]uint64{w.small.tail, w.main.tail}, [ringCount]uint64{w.small.size, w.main.size}, w.small.mask
	for _, s := range &g.slots {
		ring := s >> slotPosBits & 1
		_, alive := bits.Sub64((s-tails[ring])&mask, sizes[ring], 0)
		m = m>>8 | alive<<(8*groupSlots-1)
	}
	return ^m & tagHighs
}

// put puts a slot with its tag into an empty place, and reports whether there was
// one.
func (g *group) put(slot, tag uint64) bool {
	e := g.empties()
	if e == 0 {
		return false
	}
	g.putAt(firstSlot(e), slot, tag)
	return true
}

// putAt puts a slot with its tag into place i, which is empty.
func (g *group) putAt(i int, slot, tag uint64) {
	g.ctrl |= tag << (8 * i & 63)
	g.slots[i] = slot
}

// clear empties slot i.
func (g *group) clear(i int) {
	g.ctrl &^= 0xff << (8 * i & 63)
	g.slots[i] = 0
}

// passedAt returns where in ctrl the count of the side of hash h is, or of the slot of one.
func passedAt(h uint64) uint { return passedBits0 + uint(h>>slotHashAt&1)*passedBits }

// passed reports whether any entry with the side of hash h went on from g to a later group.
func (g *group) passed(h uint64) bool { return g.ctrl>>passedAt(h)&passedMost != 0 }

// passedAny reports whether any entry did.
func (g *group) passedAny() bool { return g.ctrl>>passedBits0 != 0 }

// pass counts one entry more that has passed, with the hash or slot h. What has come to
// passedMost has lost count, and stays there.
func (g *group) pass(h uint64) {
	if at := passedAt(h); g.ctrl>>at&passedMost != passedMost {
		g.ctrl += 1 << at
	}
}

// unpass counts one less.
func (g *group) unpass(h uint64) {
	if at := passedAt(h); g.ctrl>>at&passedMost != passedMost {
		g.ctrl -= 1 << at
	}
}

// load reads a slot whose frequency others may be raising.
func (g *group) load(i int) uint64 { return atomic.LoadUint64(&g.slots[i]) }

// oldest returns the slot of g whose record was written the longest ago, and is
// not the latest: a Set must be seen by the next Get, whatever it displaces.
func (g *group) oldest(w windows, latest uint64) (oldest int) {
	var most uint64
	for i, s := range g.slots {
		if s&(slotRingBit|slotPosMask) == latest {
			if oldest == i {
				oldest = (i + 1) % groupSlots
			}
			continue
		}
		if age := w.of(s).age(s); age > most {
			oldest, most = i, age
		}
	}
	return oldest
}

// windows are the alive parts of a bucket's rings.
type windows struct{ small, main *window }

// of returns the window that the slot's position is of.
func (w windows) of(slot uint64) *window {
	if slot&slotRingBit != 0 {
		return w.main
	}
	return w.small
}

// alive reports whether the slot's record is still in its ring.
func (w windows) alive(slot uint64) bool { return w.of(slot).alive(slot) }

// outdated reports whether the slot is stale and so old that sweep has to drop
// it: half of the position space has been written since.
func (w windows) outdated(slot uint64) bool {
	win := w.of(slot)
	return !win.alive(slot) && win.age(slot) > win.mask/2
}
