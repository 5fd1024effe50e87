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
// An index is guarded by its bucket's lock. Home, Path, Group and the values that they return may
// also be used by an optimistic reader, which validates the bucket's sequence afterwards: the table
// of pages is long enough for the geometry that was read before it.
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
	"github.com/ringcache/ringcache/internal/prefetch"
)

const (
	probeGroups = 32

	// PosBits is the width of a position in a slot, and PosMask its bits.
	PosBits  = 36
	PosMask  = 1<<PosBits - 1
	ringMask = 3 << PosBits
	markBit  = 1 << (PosBits + 2)
	freqOne  = 1 << (PosBits + 3)
	freqMask = 3 * freqOne

	// HashBits is the number of bits of a hash that a slot holds.
	HashBits = 23
	hashAt   = 64 - HashBits
)

// Tag returns the tag of hash h.
func Tag(h uint64) uint64 { return h>>34&0x7f | tagUsed }

// SameHash reports whether the hash bits in slot s are those of h.
func SameHash(s, h uint64) bool { return (s^h)>>hashAt == 0 }

// Slot returns a slot for hash h.
func Slot(h uint64, ring policy.Ring, pos uint64) uint64 {
	return h>>hashAt<<hashAt | uint64(ring)<<PosBits | pos
}

// WithPos returns slot s with another position.
func WithPos(s uint64, ring policy.Ring, pos uint64) uint64 {
	return s&^(ringMask|PosMask) | uint64(ring)<<PosBits | pos
}

// Ring returns the ring that the slot's position refers to.
func Ring(s uint64) policy.Ring { return policy.Ring(s >> PosBits & (ringMask >> PosBits)) }

// Pos returns the slot's position.
func Pos(s uint64) uint64 { return s & PosMask }

// HashOf returns the hash bits of a slot, as a number.
func HashOf(s uint64) uint64 { return s >> hashAt }

// Freq returns how often the entry was read, up to 3.
func Freq(s uint64) int { return int(s & freqMask / freqOne) }

// WithFreqOf returns slot s with the frequency of another slot.
func WithFreqOf(s, of uint64) uint64 { return s&^freqMask | of&freqMask }

// WithFreq returns slot s, which has a frequency of 0, with another one.
func WithFreq(s uint64, freq int) uint64 { return s | uint64(freq)*freqOne&freqMask }

// Location returns slot s without the bits that readers and the policy change: the hash and the
// location of the entry.
func Location(s uint64) uint64 { return s &^ (freqMask | markBit) }

// WithoutFreq returns slot s with a frequency of 0.
func WithoutFreq(s uint64) uint64 { return s &^ freqMask }

// In a slot of the cold part, other bits take the place of the frequency: the ring from which the
// policy dropped the entry, and whether the entry was read since it arrived or started its last
// round.
const (
	originMain = freqOne
	readBit    = 2 * freqOne
)

// WithOrigin returns slot s, of one of the policy's rings, as a slot of the cold part.
func WithOrigin(s uint64, of policy.Ring) uint64 {
	return s&^(freqMask|markBit) | uint64(of)*originMain
}

// Origin returns the ring that the entry of a slot of the cold part came from.
func Origin(s uint64) policy.Ring { return policy.Ring(s & originMain / originMain) }

// WasRead reports whether the entry of a slot of the cold part was read there.
func WasRead(s uint64) bool { return s&readBit != 0 }

// WithoutRead returns slot s of the cold part as one that was not read.
func WithoutRead(s uint64) uint64 { return s &^ readBit }

// MarkRead notes that the entry of a slot of the cold part, which was read as s, was read.
func MarkRead(slot *atomic.Uint64, s uint64) { slot.CompareAndSwap(s, s|readBit) }

// Lower returns slot s, which was read, with a frequency that is lower by one.
func Lower(s uint64) uint64 { return s - freqOne }

// IsMarked reports whether slot s is marked. In main the mark means that the entry is on probation,
// in small that its key had a ghost, and in a stale slot that a lookup has found the ghost.
func IsMarked(s uint64) bool { return s&markBit != 0 }

// WithMark returns slot s with the mark, and WithoutMark without it.
func WithMark(s uint64) uint64    { return s | markBit }
func WithoutMark(s uint64) uint64 { return s &^ markBit }

// HasPast reports whether the entry of stale slot s was already a ghost before it was dropped, or
// was read as often as is counted. Its frequency, of no other use in a stale slot, is the highest.
func HasPast(s uint64) bool { return s&freqMask == freqMask && Ring(s) < policy.Queue }

// WithPast returns slot s as HasPast wants it.
func WithPast(s uint64) uint64 { return s | freqMask }

// geometry is a number of groups, each the home of an equal share of the hashes. Its methods accept
// a slot in place of its hash, because a slot has the bits that determine the home.
type geometry uint32

// home returns the home group of hash h.
func (n geometry) home(h uint64) uint32 { return uint32((h >> hashAt) * uint64(n) >> HashBits) }

// start returns the first hash, of HashBits bits, of a home.
func (n geometry) start(home uint32) uint64 {
	return (uint64(home)<<HashBits + uint64(n) - 1) / uint64(n)
}

// path returns the probe path that begins at home.
func (n geometry) path(home uint32) Path {
	end := max(uint32(n), 1) // the index may have been reset since, and a path must end
	return Path{At: home, step: 1, end: end, Left: min(probeGroups, end) - 1}
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
	cur, old  atomic.Uint32 // geometries; cur is 0 while the index is empty
	front     atomic.Uint32 // homes of old below it have not moved; 0: not growing
	pageShift uint8         // log2 of the groups in a page
	sweepAt   uint32        // next group that Sweep examines
	used      [Parts]int32  // slots by the part of their position, live or stale (I9)
	latest    uint64        // ring and position of the record that was set last
}

// Init gives an index the size of its pages.
func (x *Index) Init(pageSize int) {
	x.pages.Init()
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

// Slots returns the number of slots.
func (x *Index) Slots() int { return x.Groups() * groupSlots }

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
func (x *Index) PagesFor(slots int) int { return slots/groupSlots>>x.pageShift + 1 }

// Parts is the number of parts of a bucket by which slots are counted: small, main, and the two
// rings of the cold part together.
const Parts = policy.Queue + 1

// PartOf returns the part that the slot's position refers to.
func PartOf(s uint64) policy.Ring { return min(Ring(s), policy.Queue) }

// Used returns the number of slots, live or stale, of each part.
func (x *Index) Used() (n [Parts]int) {
	for i, used := range x.used {
		n[i] = int(used)
	}
	return n
}

// geometry returns the geometry in which hash h is currently found (I6).
func (x *Index) geometry(h uint64) geometry {
	if front := x.front.Load(); front != 0 {
		if old := geometry(x.old.Load()); old.home(h) < front {
			return old
		}
	}
	return geometry(x.cur.Load())
}

// Home returns the home group of hash h, where its path begins.
func (x *Index) Home(h uint64) uint32 { return x.geometry(h).home(h) }

// Path returns the probe path of hash h.
func (x *Index) Path(h uint64) Path {
	in := x.geometry(h)
	return in.path(in.home(h))
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
	if x.Empty() {
		return Place{}, false
	}
	tag, want := Tag(h), Slot(h, ring, pos)
	for p := x.Path(h); ; p.Next() {
		g := x.Group(p.At)
		for m := g.Matches(tag); m != 0; m &= m - 1 {
			i := FirstSlot(m)
			if s := g.Load(i); s&^(freqMask|markBit) == want {
				return Place{Group: g, Slot: s, At: p.At, I: i}, true
			}
		}
		if p.Left == 0 || g.Overflow(h) == 0 {
			return Place{}, false
		}
	}
}

// FindFunc finds a slot that may be that of hash h and for which is returns true.
func (x *Index) FindFunc(h uint64, is func(slot uint64) bool) (Place, bool) {
	if x.Empty() {
		return Place{}, false
	}
	for p := x.Path(h); ; p.Next() {
		g := x.Group(p.At)
		for m := g.Matches(Tag(h)); m != 0; m &= m - 1 {
			i := FirstSlot(m)
			if s := g.Load(i); SameHash(s, h) && is(s) {
				return Place{Group: g, Slot: s, At: p.At, I: i}, true
			}
		}
		if p.Left == 0 || g.Overflow(h) == 0 {
			return Place{}, false
		}
	}
}

// Prefetch prefetches n groups, beginning with the home of hash h: in a full cache, every third Set
// needs the second one. It needs no lock.
//
//go:norace
func (x *Index) Prefetch(h uint64, n int) {
	if !x.Empty() {
		prefetch.Lines(unsafe.Pointer(x.Group(x.Home(h))), n) // sound: nothing is read
	}
}

// Reset empties the index and returns its pages.
func (x *Index) Reset() []chunk.Ref {
	pages := x.TakenPages()
	x.cur.Store(0)
	x.old.Store(0)
	x.front.Store(0)
	x.sweepAt, x.used = 0, [Parts]int32{}
	return pages
}

// Close empties the index and drops its pages, which are released with the pool.
func (x *Index) Close() {
	x.Reset()
	x.pages.Close()
}

// TakenPages returns the pages.
func (x *Index) TakenPages() []chunk.Ref {
	pages := make([]chunk.Ref, x.Pages())
	for i := range pages {
		pages[i] = *x.pages.At(uint32(i))
	}
	return pages
}
