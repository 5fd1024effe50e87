package ringcache

import (
	"encoding/binary"

	"github.com/ringcache/ringcache/internal/policy"
)

// The common case of Get and of a Set over an older value, which is a straight
// line: a short record without an expiry, in one chunk, with its slot in the home
// group. All else is find's, which the common case is written out of: how many
// instructions wait for a cache line decides how many later ones can begin before
// it has come. On amd64 it is written in assembly (glance.go), and what is here is for
// what that leaves.

// direct returns the value of k in place, and its slot, in the common case. In all
// others v is nil, and sure tells whether k is then known not to be in the bucket; if
// not, getAny finds out. cold tells that the record has not been asked for.
func (b *bucket) direct(k []byte, h uint64, cold bool) (v []byte, at slotRef, sure bool) {
	x := &b.index
	tag := tagOf(h)
	if len(x.pages) == 0 || b.asideTag == uint8(tag) {
		return nil, slotRef{}, b.asideTag == 0
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
		v := r.shortValue(s, k)
		return v, slotRef{&g.slots[i], s}, v != nil
	}
	return nil, slotRef{}, !g.passed(h)
}

// getDirect appends the value of k to dst, in the common case. If it has not, sure and
// cold mean what they mean to direct.
func (b *bucket) getDirect(dst, k []byte, h uint64, cold bool) (out []byte, ok, sure bool) {
	v, at, sure := b.direct(k, h, cold)
	if v == nil {
		return dst, false, sure
	}
	if b.policy.Kind != policy.FIFO {
		storeUnless(at.isHot(), at.at, at.warmer()) // at.touch, which the compiler would not inline
	}
	return append(dst, v...), true, true
}

// shortValue returns the value of the record at pos in place, or nil if it is not a
// short record without an expiry, in one chunk, with key k. What a slot has above its
// position does not matter (ring.slot).
func (r *ring) shortValue(pos uint64, k []byte) []byte {
	rec := r.run(pos)
	if len(rec) < 4 {
		return nil
	}
	w := binary.LittleEndian.Uint32(rec)
	value := shortHeader + len(k) // not the record's length: see match
	end := value + int(w>>8&maxShortValue)
	if w&longBit != 0 || int(w&maxShortKey) != len(k) || end > len(rec) {
		return nil
	}
	if key, n := rec[shortHeader:value], len(k); n >= 8 && n <= 16 {
		// Most keys are so long, and a call would take longer than this.
		first := binary.LittleEndian.Uint64(key) ^ binary.LittleEndian.Uint64(k)
		last := binary.LittleEndian.Uint64(key[n-8:]) ^ binary.LittleEndian.Uint64(k[n-8:])
		if first|last != 0 {
			return nil
		}
	} else if string(key) != string(k) {
		return nil
	}
	return rec[value:end]
}

// overwriteLocked is setLocked for the common case of a key that is there: it
// writes in place, and reports whether it has.
func (b *bucket) overwriteLocked(w *write) bool {
	if w.expiry != 0 || b.shared.onEvict != nil {
		return false
	}
	old, _, _ := b.direct(w.k, w.h, false)
	return replaceBytes(old, w.v)
}

// overwriteAtLocked is overwriteLocked for the record of a slot that is likely to
// have the key.
func (b *bucket) overwriteAtLocked(slot uint64, w *write) bool {
	return w.expiry == 0 && replaceBytes(b.rings[slotRing(slot)].shortValue(slot, w.k), w.v)
}

// replaceBytes writes v over old, unless that is nil or of another length, and reports
// whether it has.
func replaceBytes(old, v []byte) bool {
	if old == nil || len(old) != len(v) {
		return false
	}
	copy(old, v)
	return true
}
