// Package index maps hashes to slots, which tell where an entry's record is and how often it was
// read. An index is an open-addressing table of groups; a group is one cache line:
//
//	word 0: seven tag bytes (0: the slot is empty) | two overflow counts (4 bits each)
//	word 1 to 7: seven slots
//	slot: hash (23 bits) | frequency (2) | mark (1) | ring (2) | position (36)
//
// The home group of a hash is found by multiplication, so groups are in hash order. An entry whose
// home is full tries the groups 1, 3, 6, 10, ... after it (triangular probing, so that runs of full
// groups do not join), at most probeGroups in all. Each group counts the entries that passed it,
// separately for the two values of the lowest hash bit in a slot (the side of the entry), and a
// search ends at a group that no entry of its side has passed. With good hashes, at most about ten
// entries of a side pass a group. A count that reaches its maximum, as with keys chosen to collide,
// stays there.
//
// The index never looks at records. A slot whose position is no longer live in its ring is stale:
// it can still be found as a ghost, and its place can be taken by a new slot.
//
// An index is guarded by its bucket's lock. Geometry, Group and the values that they return may
// also be used by an optimistic reader, which validates the bucket's sequence afterwards: the table
// of pages is long enough for the geometry that was read before it. An empty index has one page of
// zeros, in which a search finds nothing.
//
// Invariants (numbers as in docs/design.md):
//
//	I4  an entry lies on the probe path of its hash, and every group that it
//	    passed counts it on its side, or has lost count
//	I5  a stale slot is dropped before its position can come round again
//	I6  while the table grows, homes below front are found in the old geometry
//	    and all others in the new one
package index

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/policy"
)

const probeGroups = 32

// Geometry is a number of groups, each the home of an equal share of the hashes. Its methods accept
// a slot in place of its hash, because a slot has the bits that determine the home.
type Geometry uint32

// Home returns the home group of hash h, where its path begins.
func (n Geometry) Home(h uint64) uint32 { return uint32((h >> hashAt) * uint64(n) >> HashBits) }

// start returns the first hash, of HashBits bits, of a home.
func (n Geometry) start(home uint32) uint64 {
	return (uint64(home)<<HashBits + uint64(n) - 1) / uint64(n)
}

// Path returns the probe path of hash h.
func (n Geometry) Path(h uint64) Path {
	end := max(uint32(n), 1) // an empty index has a path, too
	return Path{At: n.Home(h), step: 1, end: end, Left: min(probeGroups, end) - 1}
}

// Path is a position on a probe path, which wraps around at the end of the table.
type Path struct {
	At   uint32 // group
	Left uint32 // groups that remain
	step uint32 // distance to the next group
	end  uint32 // groups in the table
}

// Next goes to the next group; there is one if Left is above 0.
func (p *Path) Next() {
	p.At += p.step
	for p.At >= p.end {
		p.At -= p.end
	}
	p.step++
	p.Left--
}

// Index is the index of one bucket. It must be initialized with Init.
type Index struct {
	pages     chunk.Table
	cur, old  atomic.Uint32       // geometries; cur is 0 while the index is empty
	front     atomic.Uint32       // homes of old below it have not moved; 0: not growing
	pageShift uint8               // log2 of the groups in a page
	sweepAt   uint32              // next group that Sweep examines
	Used      [policy.Rings]int32 // slots by the ring of their position, live or stale (I9)
}

// Init gives an index the size of its pages.
func (x *Index) Init(pageSize int) {
	x.pages.Init(&chunk.ZeroPage)
	x.pageShift = uint8(bits.Len(uint(pageSize>>groupShift - 1)))
}

// Empty reports whether the index has no pages.
func (x *Index) Empty() bool { return x.cur.Load() == 0 }

// Growing reports whether homes are still to be moved to a larger geometry (grow.go).
func (x *Index) Growing() bool { return x.front.Load() != 0 }

// Pages returns the number of pages.
func (x *Index) Pages() int { return x.Groups() >> x.pageShift }

// Groups returns the number of groups.
func (x *Index) Groups() int { return int(x.cur.Load()) }

// Group returns group number n. For a late reader, the group may no longer belong to the index, but
// its memory is still an index page, because index pages are never used for anything else.
//
//go:norace
func (x *Index) Group(n uint32) *Group {
	shift := x.pageShift & 31 // the mask tells the compiler that it is below 32
	page := x.pages.At(n >> shift)
	// Sound: a page holds 1<<pageShift groups, and pages come from the pool
	// aligned to at least a group.
	return (*Group)(unsafe.Add(page.Pointer(), uintptr(n&(1<<shift-1))<<groupShift))
}

// PagesFor returns the least number of pages with more than this many slots.
func (x *Index) PagesFor(slots int) int { return slots/GroupSlots>>x.pageShift + 1 }

// Geometry returns the geometry in which hash h is currently found (I6).
func (x *Index) Geometry(h uint64) Geometry {
	if front := x.front.Load(); front != 0 {
		if old := Geometry(x.old.Load()); old.Home(h) < front {
			return old
		}
	}
	return Geometry(x.cur.Load())
}

// Prefetch prefetches n groups, beginning with the home of hash h: in a full cache, every third Set
// needs the second one. It needs no lock.
//
//go:norace
func (x *Index) Prefetch(h uint64, n int) {
	chunk.Prefetch(unsafe.Pointer(x.Group(x.Geometry(h).Home(h))), n) // sound: nothing is read
}

// MayHavePassed reports whether a slot of hash h may be in a group after its home. Readers need no
// lock.
//
//go:norace
func (x *Index) MayHavePassed(h uint64) bool {
	p := x.Geometry(h).Path(h)
	for g := x.Group(p.At); p.Left > 0 && g.Overflow(h) != 0; {
		p.Next()
		if g = x.Group(p.At); g.Matches(h) != 0 {
			return true
		}
	}
	return false
}

// Place is where a slot was found.
type Place struct {
	Group *Group
	Slot  uint64 // as it was read
	At    uint32 // group number
	I     int    // slot number in the group
}

// Find finds the slot of hash h for the record at pos of a ring.
func (x *Index) Find(h uint64, ring policy.Ring, pos uint64) (Place, bool) {
	want := Slot(h, ring, pos)
	for p := x.Geometry(h).Path(h); ; p.Next() {
		g := x.Group(p.At)
		for m := g.Matches(h); m != 0; m &= m - 1 {
			i := FirstSlot(m)
			if s := g.Slots[i].Load(); Location(s) == want {
				return Place{Group: g, Slot: s, At: p.At, I: i}, true
			}
		}
		if p.Left == 0 || g.Overflow(h) == 0 {
			return Place{}, false
		}
	}
}

// Store replaces the slot at p with another one of the same hash.
func (x *Index) Store(p Place, slot uint64) {
	x.Used[Ring(p.Slot)]--
	x.Used[Ring(slot)]++
	p.Group.Slots[p.I].Store(slot)
}

// Remove empties the slot at p, and decrements the counts of the groups that it passed (I4).
func (x *Index) Remove(p Place) {
	s := p.Group.Slots[p.I].Load()
	x.Used[Ring(s)]--
	p.Group.take(p.I)
	x.addOverflow(x.Geometry(s).Path(s), p.At, s, -1)
}

// addOverflow adds by, which is 1 or -1, to the counts of entries on the side of h, a hash or a
// slot, that passed the groups on path p before group at. A count that has reached overflowMost has
// lost count, and stays there.
func (x *Index) addOverflow(p Path, at uint32, h uint64, by int) {
	for ; p.At != at; p.Next() {
		if g := x.Group(p.At); g.Overflow(h) != overflowMost {
			g.ctrl += uint64(by) << overflowAt(h)
		}
	}
}

// Add puts slot, of hash h, into an empty place in its home. It reports false if there is none, or
// if the index may have a slot of that hash.
func (x *Index) Add(slot, h uint64) bool {
	g := x.Group(x.Geometry(h).Home(h))
	free := ^g.ctrl & tagHighs
	if free == 0 || g.Matches(h)|g.Overflow(h) != 0 {
		return false
	}
	g.put(FirstSlot(free), slot, Tag(h))
	x.Used[Ring(slot)]++
	return true
}

// Insert puts slot, with its tag, where a search will find it: in the first empty or stale place on
// its path, or, if probeGroups groups are full of live slots, in place of a live one, which it
// returns.
func (x *Index) Insert(slot, tag uint64, w *Windows) (victim uint64, forced bool) {
	path := x.Geometry(slot).Path(slot)
	p := path
	g := x.Group(p.At)
	free := g.free(w)
	for free == 0 && p.Left > 0 {
		p.Next()
		g = x.Group(p.At)
		free = g.free(w)
	}
	i := FirstSlot(free)
	if forced = free == 0; forced {
		// Entries with equal hashes evict only each other.
		p = path
		g = x.Group(p.At)
		i = g.oldest(w)
		victim = g.Slots[i].Load()
	}
	if g.ctrl&(tagUsed<<(8*i&63)) != 0 {
		x.Remove(Place{Group: g, At: p.At, I: i})
	}
	g.put(i, slot, tag)
	x.Used[Ring(slot)]++
	x.addOverflow(path, p.At, slot, 1) // (I4)
	return victim, forced
}

// Sweep examines the next n groups and drops slots that have been stale for so long that their
// position may come round again: half of the position space was written since (I5).
func (x *Index) Sweep(n int, w *Windows) {
	for range min(n, x.Groups()) {
		g := x.Group(x.sweepAt)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			i := FirstSlot(used)
			s := g.Slots[i].Load()
			if ring := w.Of(s); !ring.Live(s) && ring.Age(s) > ring.Mask/2 {
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
			fn(g.Slots[i].Load(), g.ctrl>>(8*i)&0xff)
		}
	}
}

// TakeHome appends the live slots whose hashes, of HashBits bits, lie between at and the end of
// at's home, and returns that end. A path may visit a group twice, so a slot may be appended twice,
// with different frequencies if a reader raised it in between.
func (x *Index) TakeHome(slots []uint64, at uint64, w *Windows) ([]uint64, uint64) {
	h := at << hashAt
	in := x.Geometry(h)
	end := in.start(in.Home(h) + 1) // the same geometry for all of them (I6)
	for p := in.Path(h); ; p.Next() {
		g := x.Group(p.At)
		for used := g.ctrl & tagHighs; used != 0; used &= used - 1 {
			s := g.Slots[FirstSlot(used)].Load()
			if hash := HashOf(s); hash >= at && hash < end && w.Of(s).Live(s) {
				slots = append(slots, s)
			}
		}
		if p.Left == 0 || !g.anyOverflow() {
			return slots, end
		}
	}
}

// Reset empties the index and returns its pages.
func (x *Index) Reset() []chunk.Ref {
	pages := x.TakenPages()
	x.cur.Store(0)
	x.old.Store(0)
	x.front.Store(0)
	x.sweepAt, x.Used = 0, [policy.Rings]int32{}
	x.pages.Fill(chunk.ZeroPage) // so that none keeps its own memory alive
	return pages
}

// TakenPages returns the pages.
func (x *Index) TakenPages() []chunk.Ref {
	pages := make([]chunk.Ref, x.Pages())
	for i := range pages {
		pages[i] = *x.pages.At(uint32(i))
	}
	return pages
}
