package index

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/policy"
)

// What a slot says, and the group of seven slots.

const (
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

// WithFreq returns slot s with a frequency.
func WithFreq(s uint64, freq int) uint64 { return s&^freqMask | uint64(freq)*freqOne&freqMask }

// Location returns slot s without the bits that readers and the policy change: the hash and the
// location of the entry.
func Location(s uint64) uint64 { return s &^ (freqMask | markBit) }

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

// Raise raises the frequency of a slot, which was read as s, unless it is at its maximum or the
// slot has changed meanwhile.
func Raise(slot *atomic.Uint64, s uint64) {
	if s&freqMask != freqMask {
		slot.CompareAndSwap(s, s+freqOne)
	}
}

// MarkSeen marks the ghost in a stale slot, which was read as s, as found, and reports whether this
// is the first time. If a writer or another reader has changed the slot meanwhile, it does nothing.
func MarkSeen(slot *atomic.Uint64, s uint64) bool {
	return s&markBit == 0 && slot.CompareAndSwap(s, s|markBit)
}

// Window is the live part of a ring's position space. A position is the number of bytes that were
// appended before, truncated to a fixed number of bits.
type Window struct {
	Tail uint64 // position of the oldest live byte
	Size uint64 // live bytes
	Mask uint64 // has the bits of a position set
}

// Head returns the position after the newest live byte.
func (w *Window) Head() uint64 { return (w.Tail + w.Size) & w.Mask }

// Live reports whether the byte at pos was written and not yet released. Bits above those of a
// position are ignored, so pos may be a slot. A stale position is not mistaken for a live one if
// fewer than Mask+1 bytes were appended since (I5).
func (w *Window) Live(pos uint64) bool { return (pos-w.Tail)&w.Mask < w.Size }

// Gone returns the number of bytes from the stale position pos to the tail.
func (w *Window) Gone(pos uint64) uint64 { return (w.Tail - pos) & w.Mask }

// Age returns the number of bytes from pos to the head: those appended since, including the record
// at pos.
func (w *Window) Age(pos uint64) uint64 { return (w.Tail + w.Size - pos) & w.Mask }

// Windows are the live parts of a bucket's rings.
type Windows [policy.Rings]*Window

// Of returns the window of the ring that the slot's position refers to.
func (w *Windows) Of(slot uint64) *Window { return w[slot>>PosBits&(ringMask>>PosBits)] }

// Group is one cache line of the index: a control word, and seven slots. Readers raise the
// frequency in a slot without a lock, so slots are atomic. The control word is written only under
// the lock.
type Group struct {
	ctrl  uint64
	Slots [GroupSlots]atomic.Uint64
}

const (
	GroupSlots = 7
	groupBytes = 64
	groupShift = 6

	tagOnes  = 0x0001010101010101
	tagHighs = 0x0080808080808080
	tagUsed  = 0x80 // set in every tag, so that 0 means empty

	overflowAt0  = 8 * GroupSlots // where the overflow counts begin in a control word
	overflowBits = 4              // of each of the two
	overflowMost = 1<<overflowBits - 1
)

var _ [0]struct{} = [unsafe.Sizeof(Group{}) - groupBytes]struct{}{}

// Matches returns a word with the high bit set in each byte i whose tag is that of hash h. There
// are no false positives: seven bits XORed with the complement of others are 0x7f only if they are
// equal, and the addition cannot carry out of a byte.
//
//go:norace
func (g *Group) Matches(h uint64) uint64 {
	low := g.ctrl&^tagHighs ^ (^h>>34&0x7f)*tagOnes
	return (low + tagOnes) & g.ctrl & tagHighs
}

// Prefetch prefetches the group.
func (g *Group) Prefetch() {
	chunk.Prefetch(unsafe.Pointer(g), 1) // sound: nothing is read
}

// FirstSlot returns the first slot in a word of matches, which is not 0.
func FirstSlot(m uint64) int { return bits.TrailingZeros64(m) >> 3 }

// free returns a word with the high bit set in each byte of an empty slot, or, if there is none, of
// a stale one. It looks for these without branches, because a processor could not predict them.
func (g *Group) free(w *Windows) (m uint64) {
	if m = ^g.ctrl & tagHighs; m != 0 {
		return m
	}
	for i := range g.Slots {
		s := g.Slots[i].Load()
		ring := w.Of(s)
		_, live := bits.Sub64((s-ring.Tail)&ring.Mask, ring.Size, 0)
		m = m>>8 | live<<(8*GroupSlots-1)
	}
	return ^m & tagHighs
}

// put puts a slot with its tag into place i, which is empty.
func (g *Group) put(i int, slot, tag uint64) {
	g.ctrl |= tag << (8 * i & 63)
	g.Slots[i].Store(slot)
}

// take empties place i, and returns its tag, or 0 if it was empty. The word of the slot stays: a
// slot without a tag is not used, except by a late reader that raises its frequency.
func (g *Group) take(i int) (tag uint64) {
	at := 8 * i & 63
	tag = g.ctrl >> at & 0xff
	g.ctrl &^= 0xff << at
	return tag
}

// overflowAt returns the position in ctrl of the overflow count for the side of h, a hash or a
// slot.
func overflowAt(h uint64) uint { return overflowAt0 + uint(h>>hashAt&1)*overflowBits }

// Overflow returns how many entries on the side of hash h passed g to a later group; overflowMost
// means that it has lost count.
//
//go:norace
func (g *Group) Overflow(h uint64) uint64 { return g.ctrl >> overflowAt(h) & overflowMost }

// anyOverflow reports whether any entry has passed g.
func (g *Group) anyOverflow() bool { return g.ctrl>>overflowAt0 != 0 }

// oldest returns the slot of g whose record was written longest ago.
func (g *Group) oldest(w *Windows) (oldest int) {
	var most uint64
	for i := range g.Slots {
		s := g.Slots[i].Load()
		if age := w.Of(s).Age(s); age > most {
			oldest, most = i, age
		}
	}
	return oldest
}
