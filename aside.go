package ringcache

import "sync/atomic"

// A Set of a key that is there waits for memory twice: for a line of the index,
// and then for the record that this leads to. Where the cache is larger than the
// processor's, that is most of its time. There a Set is put aside: key and value are copied to a
// place (agenda.go), what it waits for is asked for, and it is made a few Sets later, or when somebody locks
// its bucket before.
//
// It waits for its record alone if its slot is found at once. Where a bucket's Sets have found older values
// one after the other, the next is likely to do so, too: it is put off, that is put aside without a look at the index,
// whose line has been asked for. When half of its time is over, its slot is looked for, and its record asked for. So it waits
// for no memory at all.
//
// Nobody can tell but by the time that it takes. Who locks the bucket finds the
// Set made: lock, lockToSet, hold and stay make it. Lookups alone take the
// lock by other ways, and look at what was put aside before they look at the index.
//
// Invariant (number as in docs/design.md):
//
//	I14  a Set that was put aside is the newest of its key, and nothing else is done with records in
//	     the bucket before it is made
type aside struct {
	state  atomic.Uint64 // whether a Set waits here, and in which bucket
	hash   uint64        // of the key
	slot   uint64        // of the record that is likely to be replaced, or unsought
	expiry uint32
	klen   uint16
	vlen   uint16
	data   [asideMost]byte // key and value
	_      [8]byte         // an odd number of cache lines, so that places do not meet in the cache
}

// unsought is the slot of a Set that was put off. (A slot that is the same is looked for once more.)
const unsought = 0

// The longest key and value together that are put aside. Longer ones are better written at once: copying them
// twice takes as long as waiting. Where there are many processors, another one may make the Set, and what
// is aside, and the lines that have been asked for, have to cross to it: only a few should.
const (
	asideMost = 1048
	asideMany = 296 // where there are more than asideFew processors
	asideFew  = 2
)

// asideLongest returns which of the two it is.
func asideLongest(processors int) int {
	if processors > asideFew {
		return asideMany
	}
	return asideMost
}

// asideFrom is the number of groups from which a bucket puts Sets aside: before
// that, there is little to wait for.
const asideFrom = hintGroups

// laterFrom is how many Sets must have found an older value, one after the other, before the next is put off: a new
// key that was put off has waited for nothing.
const laterFrom = 8

// lock takes the bucket's lock exclusively, with no Set put aside.
func (b *bucket) lock() {
	b.mu.Lock()
	if b.asideTag != 0 {
		b.takeUpLocked()
	}
}

// lockToSet is lock for a Set, which does the index's share as well.
func (b *bucket) lockToSet() {
	b.lock()
	if b.index.growing() {
		b.moveLocked()
	}
}

// hold takes the bucket's lock to read for more than a lookup, with no Set put
// aside.
func (b *bucket) hold() {
	b.mu.hold()
	if b.asideTag != 0 {
		b.mu.exclude()
		if b.asideTag != 0 { // nobody else has made it meanwhile
			b.takeUpLocked()
		}
	}
}

// stay takes the bucket's lock to read for as long as it takes, beside all that
// read, with no Set put aside. What it took is given back by unshare.
func (b *bucket) stay() {
	for b.hold(); !b.mu.linger(); b.hold() {
	}
}

// putAsideLocked puts a Set aside, or reports false if it has to be made at once:
// it depends on what is there, it is too long, its key is not there, or somebody has claimed the place. No other is
// aside. The record's lines are to be asked for
// without the lock (write.ask): giving it up waits for the translation of what
// was asked for before.
func (b *bucket) putAsideLocked(w *write, p *aside) bool {
	if w.cond != always || len(w.k)+len(w.v) > b.shared.asideMost {
		return false
	}
	slot, ok := b.likely(w.h)
	if !ok || !p.claim(w.h) {
		return false
	}
	b.setAsideLocked(p, w.k, w.v, w.h, w.expiry, slot)
	b.noteAsideLocked(&w.ask, slot)
	return true
}

// putsOffLocked reports whether a Set of n bytes of key and value is likely to find an older value, and may be put off.
func (b *bucket) putsOffLocked(n int) bool {
	return b.index.patient && int(b.repeats) >= b.shared.laterFrom && n <= b.shared.asideMost
}

// noteRepeatLocked notes whether a Set has found one.
func (b *bucket) noteRepeatLocked(repeated bool) {
	if !repeated {
		b.repeats = 0
	} else if b.repeats < laterFrom {
		b.repeats++
	}
}

// setAsideLocked has a Set wait in a place that has been claimed.
func (b *bucket) setAsideLocked(p *aside, k, v []byte, h uint64, expiry uint32, slot uint64) {
	p.hash, p.slot, p.expiry = h, slot, expiry
	p.klen, p.vlen = uint16(len(k)), uint16(len(v))
	copy(p.data[copy(p.data[:], k):], v)
	b.aside = p
	b.asideTag = uint8(tagOf(h))
}

// noteAsideLocked notes the lines of the record of a slot that is going to be replaced.
func (b *bucket) noteAsideLocked(at *lines, slot uint64) {
	b.rings[slotRing(slot)].note(at, slot)
	at.n = (shortHeader+uint32(b.aside.klen)+uint32(b.aside.vlen))/cacheLine + 1
}

// takeUpLocked makes the Set that was put aside. It fails only if there is no older value after all, or one of
// another length, and no memory for it, and then both are gone.
func (b *bucket) takeUpLocked() {
	b.asideTag = 0
	a := b.aside
	if !takeUp(b, a) {
		b.takeUpAnyLocked(a)
	}
	a.free()
}

// takeUpAnyLocked is takeUp for every case.
func (b *bucket) takeUpAnyLocked(a *aside) {
	var w write // no literal: see begin
	w.k, w.v = a.key(), a.value()
	w.h, w.expiry, w.reason = a.hash, a.expiry, EvictReplaced
	if a.slot != unsought {
		// Another core may have asked for them.
		var record lines
		b.noteAsideLocked(&record, a.slot)
		record.prefetchWrite()
		if b.overwriteAtLocked(a.slot, &w) {
			return
		}
	}
	w.measure()
	_ = b.setLocked(&w)
}

// awaiting returns the value of key k, in place, and true, if its newest Set was put aside. The value is nil if
// it has expired. The lock is held, to read at least.
func (b *bucket) awaiting(k []byte, h uint64) (v []byte, ok bool) {
	if b.asideTag != uint8(tagOf(h)) {
		return nil, false
	}
	a := b.aside
	if string(a.key()) != string(k) {
		return nil, false
	}
	if a.expired(b.shared) {
		return nil, true
	}
	return a.value(), true
}

// key returns the key that was put aside.
func (a *aside) key() []byte { return a.data[:a.klen] }

// value returns its value.
func (a *aside) value() []byte {
	end := int(a.klen) + int(a.vlen)
	return a.data[a.klen:end:end]
}

// expired reports whether the entry has expired before it was stored.
func (a *aside) expired(s *commons) bool { return a.expiry != 0 && s.tick() >= a.expiry }
