package ringcache

// Where Sets have found older values one after the other, the next is likely to do so, too. A
// bucket puts such a Set off: its line of the index has been asked for, and the bucket copies key and
// value to a place of its own and looks there when the next plain Set comes, some hundred Sets in other buckets
// later. If the key is there, the Set is put aside then (aside.go), and waits for its record
// in the same way; if not, it is made. So a Set over an older value waits for no memory at all.
//
// Nobody can tell, as with what was put aside: lock, hold and stay make both Sets, the one that was put
// aside first, and lookups look at both (I14).

// laterFrom is how many Sets must have found an older value, one after the other, before the next is put off: a new
// key that was put off has waited for nothing.
const laterFrom = 8

// lockToSet takes the bucket's lock for a plain Set, and brings those that wait one step on. It
// returns the lines that the one waits for that is now aside, to be asked for without the lock.
func (b *bucket) lockToSet() (ask lines) {
	b.mu.Lock()
	x := &b.index
	if x.aside|x.later == 0 && !x.growing() {
		return lines{}
	}
	if x.aside != 0 {
		b.takeUpLocked()
	}
	if x.growing() { // what is aside knows of a record, which this might lose
		b.moveLocked()
	}
	if x.later != 0 {
		ask = b.resumeLocked()
	}
	return ask
}

// putsOffLocked reports whether a Set of n bytes of key and value is likely to find an older value, and may be put off.
func (b *bucket) putsOffLocked(n int) bool {
	return b.aside != nil && int(b.repeats) >= b.shared.laterFrom && n <= int(b.aside.most)
}

// noteRepeatLocked notes whether a Set has found one.
func (b *bucket) noteRepeatLocked(repeated bool) {
	if !repeated {
		b.repeats = 0
	} else if b.repeats < laterFrom {
		b.repeats++
	}
}

// putOffLocked puts a Set off. No other is put off.
func (b *bucket) putOffLocked(k, v []byte, h uint64) {
	b.later.put(k, v, h, 0)
	b.index.later = uint8(tagOf(h))
}

// resumeLocked puts the Set aside that was put off, and returns the lines of its record, or makes it.
func (b *bucket) resumeLocked() (ask lines) {
	slot, ok := b.likely(b.later.hash)
	if !ok {
		b.makeLocked()
		return lines{}
	}
	b.aside, b.later = b.later, b.aside
	b.aside.slot = slot
	b.index.aside, b.index.later = b.index.later, 0
	b.noteAsideLocked(&ask)
	return ask
}

// makeLocked makes the Set that was put off. It fails as takeUpLocked does.
func (b *bucket) makeLocked() {
	l := b.later
	b.index.later = 0
	var w write // no literal: see begin
	w.k, w.v, w.h, w.reason = l.key(), l.value(), l.hash, EvictReplaced
	w.measure()
	_ = b.setLocked(&w)
}
