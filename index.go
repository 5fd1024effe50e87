package ringcache

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/ringcache/ringcache/internal/policy"
)

// The index of a bucket maps hashes to slots. It is an open-addressing table
// of groups; a group is one cache line:
//
//	word 0: seven tag bytes (0: the slot is empty) | two counts of what has passed (4 bits each)
//	word 1 to 7: seven slots
//	slot: hash (24 bits) | frequency (2) | trial (1) | ring (1) | position (36)
//
// A hash has its home group, found by multiplication, so groups are in hash
// order. An entry that finds its home full goes on to the groups 1, 3, 6, 10,
// ... behind it (triangular probing: runs of full groups do not join), at most
// probeGroups in all. A group counts the entries that passed it so, on two sides,
// of which an entry's is the lowest bit of its slot's hash: a search ends at a group
// that nothing of its side passed. With good hashes some ten have passed on a side at
// the very most. A count that has come to passedMost, as where keys have been chosen
// to meet, has lost count, and stays there.
//
// The index never looks at records. A slot whose position is no longer alive
// in its ring is stale: it is left where it is, can be found again as a ghost,
// and gives its place to whoever needs one.
//
// The table grows in place. Pages are added at its end, and homes move from the
// old geometry to the new one, the last first, a few with each Set: a home's new
// place is never before its old one, so there is always room behind the
// frontier. A growing table is never rebuilt.
//
// Invariants (numbers as in docs/design.md):
//
//	I4  an entry lies on the probe path of its hash, and every group that it
//	    passed counts it on its side, or has lost count
//	I5  a stale slot is dropped before its position can come round again
//	I6  while the table grows, homes below front are found in the old geometry
//	    and all others in the new one
const (
	groupSlots  = 7
	groupBytes  = 64
	groupShift  = 6
	probeGroups = 16

	slotPosBits  = 36
	slotRingBit  = 1 << slotPosBits
	slotTrialBit = 1 << (slotPosBits + 1) // came to main as a ghost, and is not yet judged
	slotFreqOne  = 1 << (slotPosBits + 2)
	slotFreqMask = 3 * slotFreqOne
	slotPosMask  = 1<<slotPosBits - 1
	slotHashBits = 24
	slotHashAt   = 64 - slotHashBits

	tagOnes  = 0x0001010101010101
	tagLows  = 0x007f7f7f7f7f7f7f
	tagHighs = 0x0080808080808080
	tagUsed  = 0x80 // set in every tag, so that 0 means empty

	passedBits0 = 8 * groupSlots // where the counts of what has passed begin in a control word
	passedBits  = 4              // of each of the two
	passedMost  = 1<<passedBits - 1
)

// A group is a cache line.
var _ [0]struct{} = [unsafe.Sizeof(group{}) - groupBytes]struct{}{}

// table is a geometry: so many groups, each the home of an equal share of the
// hashes.
type table struct{ groups uint32 }

// home returns the home group of hash h.
func (t table) home(h uint64) uint32 {
	return uint32((h >> slotHashAt) * uint64(t.groups) >> slotHashBits)
}

// end returns the first hash, of slotHashBits bits, behind those of a home.
func (t table) end(home uint32) uint64 {
	return ((uint64(home)+1)<<slotHashBits + uint64(t.groups) - 1) / uint64(t.groups)
}

// start returns the first hash, of slotHashBits bits, of those of a home.
func (t table) start(home uint32) uint64 {
	if home == 0 {
		return 0
	}
	return t.end(home - 1)
}

// probe is a walk along a probe path. It goes round at the table's end.
type probe struct {
	at   uint32 // group
	step uint32 // groups to the next
	end  uint32 // groups in the table
	left uint32 // groups still to come
}

// path returns the walk that begins at home.
func (t table) path(home uint32) probe {
	return probe{at: home, step: 1, end: t.groups, left: min(probeGroups, t.groups) - 1}
}

// next goes to the next group; there is one if left is above 0.
func (p *probe) next() {
	p.at += p.step
	for p.at >= p.end {
		p.at -= p.end
	}
	p.step++
	p.left--
}

// index is guarded by its bucket's lock: to read for searches, to write
// for all else. Only frequencies change while others read (slotRef.touch).
type index struct {
	pages     []chunkRef
	cur       table
	old       table
	front     atomic.Uint32 // homes of old below it have not moved; 0: not growing
	pageShift uint8         // log2 of the groups in a page
	patient   bool          // Sets are put aside in the bucket
	hint      atomic.Pointer[indexHint]
	sweepAt   uint32         // next group that sweep looks at
	latest    uint64         // ring and position of the record that was set last
	used      [ringCount]int // slots by the ring of their position, alive or stale (I9)
}

// hintGroups is the size from which an index is worth a prefetch: 512 smaller
// ones fit into a processor's second-level cache together.
const hintGroups = 64

// indexHint is what prefetch may read without the bucket's lock. It never
// changes; each growth puts a new one in place.
type indexHint struct {
	pages    []chunkRef
	cur, old table
}

// tagOf returns the tag of hash h.
func tagOf(h uint64) uint64 { return h>>33&0x7f | tagUsed }

// slotWord returns a slot for hash h.
func slotWord(h uint64, ring policy.Ring, pos uint64) uint64 {
	return h>>slotHashAt<<slotHashAt | uint64(ring)<<slotPosBits | pos
}

// withPos returns slot s with another position.
func withPos(s uint64, ring policy.Ring, pos uint64) uint64 {
	return s&^(slotRingBit|slotPosMask) | uint64(ring)<<slotPosBits | pos
}

// slotRing returns which ring the slot's position is of.
func slotRing(s uint64) policy.Ring { return policy.Ring(s >> slotPosBits & 1) }

// slotFreq returns how often the entry has been read, up to 3.
func slotFreq(s uint64) int { return int(s & slotFreqMask / slotFreqOne) }

// slotHash returns the part of a hash that a slot and its tag remember, in its
// place.
func slotHash(s, tag uint64) uint64 { return s>>slotHashAt<<slotHashAt | (tag&0x7f)<<33 }

// group returns group number n.
func (x *index) group(n uint32) *group {
	shift := x.pageShift & 31 // as it is: known to the compiler
	page := x.pages[n>>shift].pointer()
	// Sound: a page holds 1<<pageShift groups, and pages come from the pool
	// aligned to at least a group.
	return (*group)(unsafe.Add(page, uintptr(n&(1<<shift-1))<<groupShift))
}

// home returns the home group of hash h (I6). It has no branch: where homes move,
// nobody could foretell which.
func (x *index) home(h uint64) uint32 {
	cur, old := x.cur.home(h), x.old.home(h)
	_, unmoved := bits.Sub64(uint64(old), uint64(x.front.Load()), 0)
	return cur ^ (cur^old)&-uint32(unmoved)
}

// table returns the geometry in which hash h is found now, and its home (I6).
func (x *index) table(h uint64) (t table, home uint32) {
	if front := x.front.Load(); front != 0 {
		if home = x.old.home(h); home < front {
			return x.old, home
		}
	}
	return x.cur, x.cur.home(h)
}

// path returns the probe path of hash h.
func (x *index) path(h uint64) probe {
	t, home := x.table(h)
	return t.path(home)
}

// firstSlot returns the first slot in a word of matches.
func firstSlot(m uint64) int { return bits.TrailingZeros64(m) >> 3 }

// place is where a slot was found.
type place struct {
	g    *group
	slot uint64 // as it was read
	at   uint32 // number of g
	i    int    // slot of g
}

// slotRef is a slot in a group, and what was read there.
type slotRef struct {
	at   *uint64
	slot uint64
}

// isHot reports whether the slot's frequency is as high as it can be.
func (s slotRef) isHot() bool { return s.slot&slotFreqMask == slotFreqMask }

// warmer returns the slot with a higher frequency, if it is not hot.
func (s slotRef) warmer() uint64 { return s.slot + slotFreqOne }

// touch raises the frequency of the slot, up to 3, so that a hot entry is only
// read. It may run beside other reads, and whoever comes last wins: the others' counts
// are lost.
func (s slotRef) touch() { storeUnless(s.isHot(), s.at, s.warmer()) }

// touch raises the frequency of the slot.
func (p place) touch() { slotRef{&p.g.slots[p.i], p.slot}.touch() }

// at finds the slot of hash h for the record at pos of a ring.
func (x *index) at(h uint64, ring policy.Ring, pos uint64) (place, bool) {
	if len(x.pages) == 0 {
		return place{}, false
	}
	tag, want := tagOf(h), slotWord(h, ring, pos)
	for p := x.path(h); ; p.next() {
		g := x.group(p.at)
		for m := g.matches(tag); m != 0; m &= m - 1 {
			i := firstSlot(m)
			if s := g.slots[i]; s&^(slotFreqMask|slotTrialBit) == want {
				return place{g: g, slot: s, at: p.at, i: i}, true
			}
		}
		if p.left == 0 || !g.passed(h) {
			return place{}, false
		}
	}
}

// store puts slot, of the same hash, over the one at p.
func (x *index) store(p place, slot uint64) {
	x.used[slotRing(p.slot)]--
	x.used[slotRing(slot)]++
	p.g.slots[p.i] = slot
}

// remove empties the slot of hash h at p.
func (x *index) remove(h uint64, p place) { x.clearSlot(x.path(h), p.at, p.i) }

// pass counts an entry, of hash or slot h, in the groups that it has passed on path p before group at.
func (x *index) pass(p probe, at uint32, h uint64) {
	for ; p.at != at; p.next() {
		x.group(p.at).pass(h)
	}
}

// unpass takes it out of them.
func (x *index) unpass(p probe, at uint32, h uint64) {
	for ; p.at != at; p.next() {
		x.group(p.at).unpass(h)
	}
}

// clearSlot empties slot i of group at, on path p, and takes it out of the
// counts of the groups that it passed (I4).
func (x *index) clearSlot(p probe, at uint32, i int) {
	g := x.group(at)
	old := g.slots[i]
	x.used[slotRing(old)]--
	g.clear(i)
	x.unpass(p, at, old)
}

// replace puts slot of hash h, on path p, over slot i of group at, which has
// another hash. It is clearSlot and put; most slots are in their home group, and
// there is nothing to count.
func (x *index) replace(p probe, at uint32, i int, h, slot uint64) {
	g := x.group(at)
	old := g.slots[i]
	x.used[slotRing(old)]--
	x.used[slotRing(slot)]++
	g.ctrl = g.ctrl&^(0xff<<(8*i)) | tagOf(h)<<(8*i)
	g.slots[i] = slot
	if t, home := x.table(old); home != at {
		x.unpass(t.path(home), at, old)
	}
	if p.at != at {
		x.pass(p, at, slot)
	}
}

// insert puts slot where a search for hash h will find it: into an empty
// place, else over a stale slot, else, when probeGroups groups are full of
// alive ones, over an alive one, which it returns.
func (x *index) insert(h, slot uint64, w windows) (victim uint64, forced bool) {
	at, i := x.space(h, w)
	return x.insertAt(at, i, h, slot, w)
}

// space returns the first group on the path of hash h with an empty place or a stale slot, and
// which place that is, the first empty one or else the first stale one; i is below 0 if there is
// no such group.
func (x *index) space(h uint64, w windows) (at uint32, i int) {
	for p := x.path(h); ; p.next() {
		g := x.group(p.at)
		m := g.empties()
		if m == 0 {
			m = g.stale(w)
		}
		if m != 0 {
			return p.at, firstSlot(m)
		}
		if p.left == 0 {
			return 0, -1
		}
	}
}

// insertAt is insert into the place that space has found.
func (x *index) insertAt(at uint32, i int, h, slot uint64, w windows) (victim uint64, forced bool) {
	path := x.path(h)
	if i < 0 {
		// A crowd of equal hashes evicts only its own.
		g := x.group(path.at)
		i = g.oldest(w, x.latest)
		victim = g.slots[i]
		x.replace(path, path.at, i, h, slot)
		return victim, true
	}
	if g := x.group(at); g.tagAt(i) == 0 {
		g.putAt(i, slot, tagOf(h))
		x.used[slotRing(slot)]++
		x.pass(path, at, slot) // (I4)
	} else {
		x.replace(path, at, i, h, slot)
	}
	return 0, false
}

// slots returns how many slots the current table has.
func (x *index) slots() int { return int(x.cur.groups) * groupSlots }

// sweep looks at the next n groups and drops slots that are stale for so long
// that their position may come round (I5).
func (x *index) sweep(n int, w windows) {
	for range min(n, int(x.cur.groups)) {
		g := x.group(x.sweepAt)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := firstSlot(used)
			if s := g.slots[i]; w.outdated(s) {
				x.clearSlot(x.path(slotHash(s, g.tagAt(i))), x.sweepAt, i)
			}
		}
		x.sweepAt = (x.sweepAt + 1) % x.cur.groups
	}
}

// prefetch asks for the home group of hash h. It runs without a lock: what it
// reads may be out of date, which costs nothing but the hint.
func (x *index) prefetch(h uint64) {
	if home := x.hinted(h); home != nil {
		// Sound: nothing is read, and an address that is no longer mapped does not fault in a prefetch.
		prefetch(home)
	}
}

// prefetchPath does the same for the group behind it too, which a search for a key that is not there, or for a
// place, goes on to in every third case where a cache is full. It is in the same page, but
// for the last one of each.
func (x *index) prefetchPath(h uint64) {
	if home := x.hinted(h); home != nil {
		// Sound: as above.
		prefetchLines(home, 2)
	}
}

// hinted returns where the home group of hash h is likely to be, if that is worth a prefetch.
func (x *index) hinted(h uint64) unsafe.Pointer {
	v := x.hint.Load()
	if v == nil {
		return nil
	}
	n := v.cur.home(h)
	if front := x.front.Load(); front != 0 {
		if home := v.old.home(h); home < front {
			n = home
		}
	}
	page := v.pages[n>>x.pageShift].pointer()
	// Sound: as in group.
	return unsafe.Add(page, uintptr(n&(1<<x.pageShift-1))<<groupShift)
}

// prefetchHome asks for the home group of hash h, under the lock.
func (x *index) prefetchHome(h uint64) {
	_, home := x.table(h)
	// Sound: nothing is read.
	prefetch(unsafe.Pointer(x.group(home)))
}

// prefetchGroups asks for the groups from first to last.
func (x *index) prefetchGroups(first, last uint32) {
	for n := first; n <= last; n++ {
		// Sound: nothing is read.
		prefetch(unsafe.Pointer(x.group(n)))
	}
}

// reset forgets everything and returns the pages.
func (x *index) reset() []chunkRef {
	pages := x.pages
	x.hint.Store(nil)
	x.front.Store(0)
	x.pages, x.cur, x.old, x.sweepAt = nil, table{}, table{}, 0
	x.used = [ringCount]int{}
	return pages
}

// each calls fn with every used slot and its tag.
func (x *index) each(fn func(tag, slot uint64)) {
	for n := range x.cur.groups {
		g := x.group(n)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := firstSlot(used)
			fn(g.tagAt(i), g.slots[i])
		}
	}
}

// takeHome appends the alive slots with hashes from at on, of slotHashBits bits,
// up to the end of at's home, which it returns. What readers change is left out
// of them. A path may come by a group twice, and so may they.
func (x *index) takeHome(slots []uint64, at uint64, w windows) ([]uint64, uint64) {
	t, home := x.table(at << slotHashAt)
	end := t.end(home) // front is between two homes (I6): t holds for all of them
	for p := t.path(home); ; p.next() {
		g := x.group(p.at)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			s := g.load(firstSlot(used))
			if hash := s >> slotHashAt; hash >= at && hash < end && w.alive(s) {
				slots = append(slots, s&^(slotFreqMask|slotTrialBit))
			}
		}
		if p.left == 0 || !g.passedAny() {
			return slots, end
		}
	}
}
