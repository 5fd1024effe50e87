package ringcache

// A Set of a key that is there waits for memory twice: for a line of the index,
// and then for the record that this leads to. Where the cache is larger than the
// processor's, that is most of its time. There a bucket puts the Set aside: it
// asks for the record's lines, copies key and value to a place of its own, and
// makes the Set when its lock is taken the next time. By then, after some
// hundred Sets in other buckets, the lines have come.
//
// Nobody can tell but by the time that it takes. Who locks the bucket finds the
// Set made: lock, hold and stay make it. Lookups alone take the
// lock by other ways, and look at what was put aside before they look at the index.
//
// Invariant (number as in docs/design.md):
//
//	I14  a Set that was put off (later.go) is the newest of its key, one that was put
//	     aside the newest but for that, and nothing else is done with records in the bucket
//	     before they are made, this one first
type aside struct {
	hash   uint64 // of the key
	slot   uint64 // of the record that is likely to be replaced
	expiry uint32
	klen   uint16
	vlen   uint16
	most   uint16          // longest key and value together that are put aside
	data   [asideMost]byte // key and value
}

// The longest key and value together that are put aside. Longer ones are better written at once: copying them
// twice takes as long as waiting. Where there are many processors, another one makes the Set more often than not, and what
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

// lock takes the bucket's lock exclusively, with no Set put aside.
func (b *bucket) lock() {
	b.mu.Lock()
	if b.index.aside|b.index.later != 0 {
		b.settleLocked()
	}
}

// settleLocked makes the Sets that were put aside and put off.
func (b *bucket) settleLocked() {
	if b.index.aside != 0 {
		b.takeUpLocked()
	}
	if b.index.later != 0 {
		b.makeLocked()
	}
}

// hold takes the bucket's lock to read for more than a lookup, with no Set put
// aside.
func (b *bucket) hold() {
	b.mu.hold()
	if b.index.aside|b.index.later != 0 {
		b.mu.exclude()
		b.settleLocked() // unless somebody else has meanwhile
	}
}

// stay takes the bucket's lock to read for as long as it takes, beside all that
// read, with no Set put aside. What it took is given back by unshare.
func (b *bucket) stay() {
	for b.hold(); !b.mu.linger(); b.hold() {
	}
}

// putAsideLocked puts a Set aside, or reports false if it has to be made at once:
// it depends on what is there, its lines have been asked for, it is too long, or
// its key is not there. No other is aside. The record's lines are to be asked for
// without the lock (write.ask): giving it up waits for the translation of what
// was asked for before.
func (b *bucket) putAsideLocked(w *write) bool {
	a := b.aside
	if a == nil || w.cond != always || w.prompt || len(w.k)+len(w.v) > int(a.most) {
		return false
	}
	slot, ok := b.likely(w.h)
	if !ok {
		return false
	}
	a.put(w.k, w.v, w.h, w.expiry)
	a.slot = slot
	b.noteAsideLocked(&w.ask)
	b.index.aside = uint8(tagOf(w.h))
	return true
}

// put copies a Set.
func (a *aside) put(k, v []byte, h uint64, expiry uint32) {
	a.hash, a.expiry = h, expiry
	a.klen, a.vlen = uint16(len(k)), uint16(len(v))
	copy(a.data[copy(a.data[:], k):], v)
}

// noteAsideLocked notes the lines of the record that is going to be replaced. Nothing
// has been done in the bucket since it was found (I14).
func (b *bucket) noteAsideLocked(at *lines) {
	a := b.aside
	b.rings[slotRing(a.slot)].note(at, a.slot)
	at.n = (shortHeader+uint32(a.klen)+uint32(a.vlen))/cacheLine + 1
}

// takeUpLocked makes the Set that was put aside. It fails only if its value has
// another length than the one before and there is no memory for it, and then
// both are gone.
func (b *bucket) takeUpLocked() {
	if takeUp(b) {
		return
	}
	a := b.aside
	// Another core may have asked for them.
	var record lines
	b.noteAsideLocked(&record)
	record.prefetchWrite()
	b.index.aside = 0
	var w write // no literal: see begin
	w.k, w.v = a.key(), a.value()
	w.h, w.expiry, w.reason = a.hash, a.expiry, EvictReplaced
	if !b.overwriteAtLocked(a.slot, &w) {
		w.measure()
		_ = b.setLocked(&w)
	}
}

// awaiting returns the value of key k, in place, and true, if its newest Set was put off or aside. The value is nil if
// it has expired. The lock is held, to read at least.
func (b *bucket) awaiting(k []byte, h uint64) (v []byte, ok bool) {
	tag := uint8(tagOf(h))
	if b.index.later == tag && string(b.later.key()) == string(k) {
		return b.later.value(), true
	}
	a := b.aside
	if b.index.aside != tag || string(a.key()) != string(k) {
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
