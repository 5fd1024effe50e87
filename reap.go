package ringcache

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
)

// How a bucket finds the records that are expired, and gets their space back
// before it drops what is alive. Nothing here is done for a bucket that has no
// record with room for an expiry (bucket.mortal).
//
// Each Set looks at a few records, from the tails to the heads, while there may
// be an expired one among them, and marks it dead. Of a ring with many dead
// records, live ones at the tail are moved to the head instead of being
// dropped, until a dead one comes.

const (
	// reapStep is how many records a Set looks at.
	reapStep = 8

	// sweepStep is how many DeleteExpired looks at before it lets others have
	// the lock.
	sweepStep = 1024

	// porousShare: the dead bytes of a ring are worth moving the others if they
	// are 1/porousShare of it.
	porousShare = 8
)

// reaper is how far a bucket's search for expired records has come.
type reaper struct {
	soonest uint32 // between walks: no record expires earlier (I11)
	later   uint32 // during one: the same for the records that it has passed
	walking bool
	walk    walk
}

// walk goes over the records that a bucket has when it begins.
type walk struct {
	ring policy.Ring
	pos  uint64            // next record of the ring
	ends [ringCount]uint64 // where it ends in each ring
}

// walkLocked begins a walk.
func (b *bucket) walkLocked() walk {
	w := walk{ring: policy.Small, pos: b.rings[policy.Small].tail}
	for i := range b.rings {
		w.ends[i] = b.rings[i].head()
	}
	return w
}

// nextLocked returns the ring and position of the next record, or false at the
// end. What has been moved to a head since has been looked at, if at the tail.
func (b *bucket) nextLocked(w *walk) (pos uint64, ok bool) {
	for {
		r := &b.rings[w.ring]
		pos, end := (w.pos-r.tail)&r.mask, (w.ends[w.ring]-r.tail)&r.mask
		if pos > end {
			w.pos, pos = r.tail, 0 // the tail has overtaken it
		}
		if end <= r.size && pos < end {
			return w.pos, true
		}
		if w.ring == policy.Main {
			return 0, false
		}
		w.ring = policy.Main
		w.pos = b.rings[policy.Main].tail
	}
}

// stepLocked looks at up to n records, drops the expired ones and counts them.
// It notes the soonest of the other expiries in soonest, and reports whether
// the walk is at its end.
func (b *bucket) stepLocked(w *walk, n int, soonest *uint32) (dropped int, done bool) {
	now := b.shared.tick()
	for range n {
		pos, ok := b.nextLocked(w)
		if !ok {
			return dropped, true
		}
		h, ok := b.rings[w.ring].header(pos)
		if !ok {
			b.corruptions.Add(1)
			return dropped, true
		}
		switch {
		case h.dead || h.expiry == 0:
		case now >= h.expiry:
			b.expireAtLocked(w.ring, pos, h)
			dropped++
		default:
			*soonest = min(*soonest, h.expiry)
		}
		w.pos = (pos + uint64(h.total())) & b.rings[w.ring].mask
	}
	return dropped, false
}

// noteExpiry notes that a record has an expiry from now on, or has come to a
// place where a walk may not find it.
func (b *bucket) noteExpiry(expiry uint32) {
	if expiry == 0 {
		return
	}
	r := &b.reaper
	if !b.mortal {
		b.mortal = true
		b.outlook = unforeseen // what has expired goes first from now on
		*r = reaper{soonest: math.MaxUint32, later: math.MaxUint32}
	}
	r.soonest = min(r.soonest, expiry)
	r.later = min(r.later, expiry)
}

// reapLocked does a Set's share of the search for expired records.
func (b *bucket) reapLocked() {
	small, main, r := &b.rings[policy.Small], &b.rings[policy.Main], &b.reaper
	if small.timed+main.timed == 0 {
		b.mortal = small.spent+main.spent > 0
		r.walking = false
		return
	}
	if !r.walking {
		if b.shared.tick() < r.soonest {
			return
		}
		r.walking, r.walk, r.later = true, b.walkLocked(), math.MaxUint32
	}
	if _, done := b.stepLocked(&r.walk, reapStep, &r.later); done {
		r.walking, r.soonest = false, r.later
	}
}

// deleteExpired drops all records that are expired when it begins, and returns
// how many.
func (c *Cache) deleteExpired(b *bucket) int {
	var at walk
	var w write
	dropped, n := 0, 0
	for begun, done := false, false; !done; begun = true {
		b.lock()
		if !begun {
			at = b.walkLocked()
			done = !b.mortal || !b.reaper.walking && b.shared.tick() < b.reaper.soonest
		}
		if !done {
			ignored := uint32(math.MaxUint32)
			n, done = b.stepLocked(&at, sweepStep, &ignored)
			dropped += n
		}
		b.unlock(&w)
		c.announce(&w)
	}
	return dropped
}

// porous reports whether dead records that had room for an expiry are so large
// a part of the ring that it is worth getting at them.
func (r *ring) porous() bool {
	return r.spent > 0 && uint64(r.spent)*porousShare >= r.size
}

// tidyLocked gets dead records out of one ring when the other is about to drop
// live ones for a record of n bytes.
func (b *bucket) tidyLocked(ring policy.Ring, n int) {
	other := 1 - ring
	r := &b.rings[other]
	work := b.setWork(n)
	for r.porous() && !b.rings[ring].fits(n, b.limitLocked().of(ring)) {
		h, ok := r.header(r.tail)
		if !ok || !h.dead && (work.Records == 0 || work.Bytes < h.total()) {
			return // it would be dropped
		}
		b.evictTailLocked(other, &work)
	}
}

// takes reports whether the record can have that expiry where it lies.
func (h header) takes(expiry uint32) bool { return h.timed || expiry == 0 }

// lookup is find for what is neither expired nor a mark.
func (b *bucket) lookup(f *found, k []byte, h uint64) bool {
	return b.find(f, k, h) && !f.absent && !b.shared.expired(f.header)
}

// touchLocked gives the record of the key the write's expiry, and reports
// whether it is there. It is not done if the record has no room.
func (b *bucket) touchLocked(w *write) (there, done bool) {
	var f found
	if !b.lookup(&f, w.k, w.h) {
		return false, true
	}
	if !f.takes(w.expiry) {
		return true, false
	}
	b.renewLocked(&f, w.expiry)
	return true, true
}

// renewLocked gives a record that takes it another expiry.
func (b *bucket) renewLocked(f *found, expiry uint32) {
	if f.timed {
		f.ring.setExpiry(f.pos, f.header, expiry)
		b.noteExpiry(expiry)
	}
}

// expireLocked drops the expired record f of hash h, and its slot: what has
// outlived its time leaves no ghost.
func (b *bucket) expireLocked(f *found, h uint64) {
	b.index.remove(h, f.place)
	b.killExpiredLocked(f.ring, f.pos, f.header)
}

func (b *bucket) killExpiredLocked(r *ring, pos uint64, h header) {
	b.killLocked(r, pos, h, EvictExpired)
	b.expired++
	b.expiredBytes += uint64(h.total())
}

// expireAtLocked is expireLocked for the record at pos of a ring.
func (b *bucket) expireAtLocked(ring policy.Ring, pos uint64, h header) {
	r := &b.rings[ring]
	hash := b.keyHash(r, pos, h)
	if p, ok := b.index.at(hash, ring, pos); ok {
		b.index.remove(hash, p)
	} else {
		b.corruptions.Add(1)
	}
	b.killExpiredLocked(r, pos, h)
}
