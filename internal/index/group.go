package index

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/position"
	"github.com/ringcache/ringcache/internal/prefetch"
)

// Group is one cache line of the index: a control word, and seven slots. Readers raise the
// frequency in a slot without a lock, so slots are atomic. The control word is written only under
// the lock.
type Group struct {
	ctrl  uint64
	slots [groupSlots]atomic.Uint64
}

const (
	groupSlots = 7
	groupBytes = 64
	groupShift = 6

	tagOnes  = 0x0001010101010101
	tagLows  = 0x007f7f7f7f7f7f7f
	tagHighs = 0x0080808080808080
	tagUsed  = 0x80 // set in every tag, so that 0 means empty

	overflowAt0  = 8 * groupSlots // where the overflow counts begin in a control word
	overflowBits = 4              // of each of the two
	overflowMost = 1<<overflowBits - 1
)

var _ [0]struct{} = [unsafe.Sizeof(Group{}) - groupBytes]struct{}{}

// tagAt returns the tag of slot i; 0 if the slot is empty.
func (g *Group) tagAt(i int) uint64 { return g.ctrl >> (8 * i) & 0xff }

// Matches returns a word with the high bit set in each byte i whose tag is tag. There are no false
// positives: the addition cannot carry out of a byte.
//
//go:norace
func (g *Group) Matches(tag uint64) uint64 {
	x := g.ctrl ^ tag*tagOnes
	return ^((x&tagLows + tagLows) | x) & tagHighs
}

// FirstSlot returns the first slot in a word of matches, which is not 0.
func FirstSlot(m uint64) int { return bits.TrailingZeros64(m) >> 3 }

// At returns slot i, which is below groupSlots.
func (g *Group) At(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(unsafe.Pointer(&g.slots), i<<3)) // sound: within slots
}

// Load returns the content of slot i.
func (g *Group) Load(i int) uint64 { return g.At(i).Load() }

// Prefetch prefetches the group.
func (g *Group) Prefetch() {
	prefetch.Line(unsafe.Pointer(g)) // sound: nothing is read
}

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

// empties returns a word with the high bit set in each byte of an empty slot.
func (g *Group) empties() uint64 { return ^g.ctrl & tagHighs }

// stale returns a word with the high bit set in each byte of a slot that is not live; the group has
// no empty slot. It has no branches, because a processor could not predict them.
func (g *Group) stale(w Windows) (m uint64) {
	tails := [policy.Rings]uint64{w.Small.Tail, w.Main.Tail, w.Queue.Tail, w.Cold.Tail}
	sizes := [policy.Rings]uint64{w.Small.Size, w.Main.Size, w.Queue.Size, w.Cold.Size}
	mask := w.Small.Mask
	for i := range g.slots {
		s := g.slots[i].Load()
		ring := s >> PosBits & (ringMask >> PosBits)
		_, live := bits.Sub64((s-tails[ring])&mask, sizes[ring], 0)
		m = m>>8 | live<<(8*groupSlots-1)
	}
	return ^m & tagHighs
}

// put puts a slot with its tag into place i, which is empty.
func (g *Group) put(i int, slot, tag uint64) {
	g.ctrl |= tag << (8 * i & 63)
	g.At(i).Store(slot)
}

// clear empties place i. The word of the slot stays: a slot without a tag is not used, except by a
// late reader that raises its frequency.
func (g *Group) clear(i int) { g.ctrl &^= 0xff << (8 * i & 63) }

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

// addOverflow adds by, which is 1 or -1, to the count of entries on the side of h, a hash or a
// slot, that passed g. A count that has reached overflowMost has lost count, and stays there.
func (g *Group) addOverflow(h uint64, by int) {
	if g.Overflow(h) != overflowMost {
		g.ctrl += uint64(by) << overflowAt(h)
	}
}

// oldest returns the slot of g whose record was written longest ago, except for latest: the next
// Get must find the latest Set, whatever is displaced.
func (g *Group) oldest(w Windows, latest uint64) (oldest int) {
	var most uint64
	for i := range g.slots {
		s := g.slots[i].Load()
		if s&(ringMask|PosMask) == latest {
			if oldest == i {
				oldest = (i + 1) % groupSlots
			}
			continue
		}
		if age := w.of(s).Age(s); age > most {
			oldest, most = i, age
		}
	}
	return oldest
}

// Windows are the live parts of a bucket's rings.
type Windows struct{ Small, Main, Queue, Cold *position.Window }

// of returns the window of the ring that the slot's position refers to.
func (w Windows) of(slot uint64) *position.Window {
	switch Ring(slot) {
	case policy.Small:
		return w.Small
	case policy.Main:
		return w.Main
	case policy.Queue:
		return w.Queue
	default:
		return w.Cold
	}
}

// live reports whether the slot's record is still in its ring.
func (w Windows) live(slot uint64) bool { return w.of(slot).Live(slot) }
