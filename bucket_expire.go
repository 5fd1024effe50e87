package ringcache

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// How a bucket finds expired records. Buckets without expiries do nothing here
// (bucket.hasTTL).
//
// Each Set looks at a few records, from tails to heads, while any may have expired,
// and marks these dead: compaction finds their room (bucket_compact.go).
//
// With Options.StaleIfError, they are left until so long after their expiry, as a load
// that fails may have a use for them (Cache.stale). But a tail that comes to an expired
// record drops it, and every write of its key does.

const (
	expireStep = 8    // records that a Set looks at
	deleteStep = 1024 // records that DeleteExpired looks at under one lock
)

// expirer is how far a bucket's search for expired records has come.
type expirer struct {
	soonest uint32 // between walks: no record is to be removed earlier (I11)
	later   uint32 // during one: the same for the records that it has passed
	walking bool
	walk    walk

	forgotten uint64 // generations that had been forgotten when it began
}

// walk goes over the records that a bucket has when it begins. Ring by ring, as they move:
// what the goroutine has moved meanwhile is in the ring to come.
type walk struct {
	ring policy.Ring
	pos  uint64 // next record of the ring
	end  uint64 // where it ends there: at the head when it came
}

// walkLocked begins a walk.
func (b *bucket) walkLocked() walk {
	small := &b.rings[policy.Small]
	return walk{ring: policy.Small, pos: small.Tail, end: small.Head()}
}

// nextLocked returns the position of the next record in w.ring, or false at the end.
// What has moved to a head since then was looked at, at the tail.
func (b *bucket) nextLocked(w *walk) (pos uint64, ok bool) {
	for {
		r := b.ring(w.ring)
		pos, end := (w.pos-r.Tail)&r.Mask, (w.end-r.Tail)&r.Mask
		if pos > end {
			w.pos, pos = r.Tail, 0 // the tail has overtaken it
		}
		if end <= r.Size && pos < end {
			return w.pos, true
		}
		if w.ring == b.inUse()-1 {
			return 0, false
		}
		w.ring++
		r = b.ring(w.ring)
		w.pos, w.end = r.Tail, r.Head()
	}
}

// stepLocked looks at up to n records, and drops and counts the expired ones, until OnRemove is to
// be called. It notes the soonest other expiry, and reports whether the walk has ended.
func (b *bucket) stepLocked(w *walk, n int, soonest *uint32) (dropped int, done bool) {
	now := b.shared.Now()
	for range n {
		if b.removals.isStep() {
			return dropped, false
		}
		pos, ok := b.nextLocked(w)
		if !ok {
			return dropped, true
		}
		hd, ok := b.ring(w.ring).Header(pos)
		if !ok {
			b.corruptions.Add(1)
			return dropped, true
		}
		switch end := b.shared.KeptUntil(hd.Expiry); {
		case hd.Dead:
		case b.isForgottenLocked(b.ring(w.ring), pos, hd):
			b.forgetAtLocked(w.ring, pos, hd)
		case hd.Expiry == 0:
		case now >= end:
			b.expireAtLocked(w.ring, pos, hd)
			dropped++
		default:
			*soonest = min(*soonest, end)
		}
		w.pos = (pos + uint64(hd.Total())) & b.ring(w.ring).Mask
	}
	return dropped, false
}

// noteExpiry notes that a record has an expiry, or has moved past a walk.
func (b *bucket) noteExpiry(expiry uint32) {
	if expiry == 0 {
		return
	}
	e := &b.expirer
	if !b.hasTTL {
		b.hasTTL = true
		b.hint = hintUnknown // what has expired goes first from now on
		b.shared.expiring.Store(true)
		*e = expirer{soonest: math.MaxUint32, later: math.MaxUint32}
	}
	end := b.shared.KeptUntil(expiry)
	e.soonest, e.later = min(e.soonest, end), min(e.later, end)
}

// expireSomeLocked does a Set's share of the search for records that have expired or belong
// to a forgotten generation.
func (b *bucket) expireSomeLocked() {
	e, expiring, forgotten := &b.expirer, 0, b.hasForgotten()
	for in := range b.inUse() {
		expiring += b.ring(in).Expiring
	}
	if expiring == 0 && !forgotten {
		b.hasTTL, e.walking = false, false
		return
	}
	if !e.walking {
		if !forgotten && b.shared.Now() < e.soonest {
			return
		}
		e.walking, e.walk, e.later = true, b.walkLocked(), math.MaxUint32
		e.forgotten = b.shared.generations.Buried()
	}
	if _, done := b.stepLocked(&e.walk, expireStep, &e.later); done {
		e.walking, e.soonest, b.searched = false, e.later, e.forgotten
	}
}

// sweep is how far DeleteExpired has come in a bucket.
type sweep struct {
	begun, done bool
	walk        walk
}

// deleteStepLocked drops some of the records that were expired when s began, and
// returns how many.
func (b *bucket) deleteStepLocked(s *sweep) (dropped int) {
	if !s.begun {
		e := &b.expirer
		s.begun, s.walk = true, b.walkLocked()
		b.sweeps++
		s.done = !b.hasTTL || !e.walking && b.shared.Now() < e.soonest
	}
	if !s.done {
		ignored := uint32(math.MaxUint32)
		dropped, s.done = b.stepLocked(&s.walk, deleteStep, &ignored)
	}
	if s.done {
		b.sweeps--
	}
	return dropped
}

// lookupLocked is findLocked for what is neither expired nor a negative entry.
func (b *bucket) lookupLocked(f *found, k []byte, h uint64) bool {
	return b.findLocked(f, k, h) && f.Kind != record.Negative && !b.shared.Expired(f.Expiry)
}

// holdsLocked reports whether b has the key, be it a negative entry. Otherwise it does
// not have it expired either, and f is the key's ghost, if there is one.
func holdsLocked(b *bucket, w *write, f *found) bool {
	f.internal = w.internal
	if !b.findLocked(f, w.k, w.h) {
		return false
	}
	if b.shared.Expired(f.Expiry) {
		b.expireLocked(f, w.h)
		return false
	}
	return true
}

// touchLocked gives the record of the key the write's expiry, and reports
// whether it is there. It is not done if the record has no room.
func (b *bucket) touchLocked(w *write) (there, done bool) {
	f := found{internal: w.internal}
	if !b.lookupLocked(&f, w.k, w.h) {
		return false, true
	}
	if !f.Takes(w.expiry) {
		return true, false
	}
	b.renewLocked(&f, w.expiry)
	return true, true
}

// renewLocked gives a record that takes it another expiry.
func (b *bucket) renewLocked(f *found, expiry uint32) {
	if f.HasExpiry {
		f.ring.SetExpiry(f.pos, f.Header, expiry)
		f.ring.Seal(f.pos)
		b.noteExpiry(expiry)
	}
}

// expireLocked drops the expired record f of hash h, and its slot: no ghost is left.
func (b *bucket) expireLocked(f *found, h uint64) {
	b.index.Remove(f.Place)
	b.killExpiredLocked(f.ring, f.pos, f.Header, h)
}

func (b *bucket) killExpiredLocked(r *ring.Ring, pos uint64, hd record.Header, h uint64) {
	b.killLocked(r, pos, hd, h, RemovedExpired)
	b.expired++
	b.expiredBytes += uint64(hd.Total())
}

// expireAtLocked is expireLocked for the record at pos of a ring.
func (b *bucket) expireAtLocked(in policy.Ring, pos uint64, hd record.Header) {
	r := b.ring(in)
	h := b.keyHash(r, pos, hd)
	if p, ok := b.index.Find(h, in, pos); ok {
		b.index.Remove(p)
	} else {
		b.corruptions.Add(1)
	}
	b.killExpiredLocked(r, pos, hd, h)
}
