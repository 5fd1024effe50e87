package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// How a bucket finds expired records. Buckets without expiries do nothing here
// (Store.hasTTL).
//
// Each Set looks at a few records, from tails to heads, while any may have expired,
// and marks these dead: compaction finds their room (room.go).
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

// walk visits the records that a bucket has when it begins, ring by ring. The order is that in
// which records move, so one that moves meanwhile is still ahead.
type walk struct {
	ring policy.Ring
	pos  uint64 // next record of the ring
	end  uint64 // where it ends there: at the head when it came
}

// newWalk begins a walk.
func (b *Store) newWalk() walk {
	small := &b.Rings[policy.Small]
	return walk{ring: policy.Small, pos: small.Tail, end: small.Head()}
}

// nextRecord returns the position of the next record in w.ring, or false at the end.
// What has moved to a head since then was looked at, at the tail.
func (b *Store) nextRecord(w *walk) (pos uint64, ok bool) {
	for {
		r := b.Ring(w.ring)
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
		r = b.Ring(w.ring)
		w.pos, w.end = r.Tail, r.Head()
	}
}

// step looks at up to n records, and drops and counts the expired ones, until OnRemove is to
// be called. It notes the soonest other expiry, and reports whether the walk has ended.
func (b *Store) step(w *walk, n int, soonest *uint32) (dropped int, done bool) {
	now := b.Shared.Now()
	for range n {
		if b.Removals.IsStep() {
			return dropped, false
		}
		pos, ok := b.nextRecord(w)
		if !ok {
			return dropped, true
		}
		hd, ok := b.Ring(w.ring).Header(pos)
		if !ok {
			b.Corruptions.Add(1)
			return dropped, true
		}
		switch end := b.Shared.KeptUntil(hd.Expiry); {
		case hd.Dead:
		case b.isForgotten(b.Ring(w.ring), pos, hd):
			b.forgetAt(w.ring, pos, hd)
		case hd.Expiry == 0:
		case now >= end:
			b.expireAt(w.ring, pos, hd)
			dropped++
		default:
			*soonest = min(*soonest, end)
		}
		w.pos = (pos + uint64(hd.Total())) & b.Ring(w.ring).Mask
	}
	return dropped, false
}

// noteExpiry notes that a record has an expiry, or has moved past a walk.
func (b *Store) noteExpiry(expiry uint32) {
	if expiry == 0 {
		return
	}
	e := &b.expirer
	if !b.hasTTL {
		b.hasTTL = true
		b.known = hintUnknown // what has expired goes first from now on
		b.Shared.Expiring.Store(true)
		*e = expirer{soonest: math.MaxUint32, later: math.MaxUint32}
		b.countExpiring()
	}
	end := b.Shared.KeptUntil(expiry)
	e.soonest, e.later = min(e.soonest, end), min(e.later, end)
}

// mortalShare: records are nearly all mortal if at most 1/mortalShare of them have no expiry.
const mortalShare = 16

// countExpiring returns the number of live records with room for an expiry, and tells lookups
// whether these are nearly all.
func (b *Store) countExpiring() (expiring int) {
	for in := range b.inUse() {
		expiring += b.Ring(in).Expiring
	}
	live := b.live()
	if mortal := expiring > 0 && live-expiring <= live/mortalShare; mortal != b.Mortal.Load() {
		b.Mortal.Store(mortal) // readers share its line
	}
	return expiring
}

// ExpireSome does a Set's share of the search for expired records, and reports whether it has found
// any.
func (b *Store) ExpireSome() bool {
	before := b.Expired
	if b.hasTTL && !b.Closed {
		b.expireSome()
	}
	return b.Expired > before
}

// expireSome does a Set's share of the search for records that have expired or belong
// to a forgotten generation.
func (b *Store) expireSome() {
	e, forgotten := &b.expirer, b.hasForgotten()
	if b.countExpiring() == 0 && !forgotten {
		b.hasTTL, e.walking = false, false
		return
	}
	if !e.walking {
		if !forgotten && b.Shared.Now() < e.soonest {
			return
		}
		e.walking, e.walk, e.later = true, b.newWalk(), math.MaxUint32
		e.forgotten = b.Shared.Generations.Buried()
	}
	if _, done := b.step(&e.walk, expireStep, &e.later); done {
		e.walking, e.soonest, b.searched = false, e.later, e.forgotten
	}
}

// Sweep is how far DeleteExpired has come in a bucket.
type Sweep struct {
	begun, Done bool
	walk        walk
}

// DeleteStep drops some of the records that were expired when s began, and
// returns how many.
func (b *Store) DeleteStep(s *Sweep) (dropped int) {
	if !s.begun {
		e := &b.expirer
		s.begun, s.walk = true, b.newWalk()
		b.sweeps++
		s.Done = !b.hasTTL || !e.walking && b.Shared.Now() < e.soonest
	}
	if !s.Done {
		ignored := uint32(math.MaxUint32)
		dropped, s.Done = b.step(&s.walk, deleteStep, &ignored)
	}
	if s.Done {
		b.sweeps--
	}
	return dropped
}

// Stop ends a sweep of bucket b that is not done: OnRemove has panicked.
func (s *Sweep) Stop(b *Store) {
	if s.begun && !s.Done {
		s.Done = true
		b.sweeps--
	}
}

// Lookup is findCounting for what is neither expired nor a negative entry.
func (b *Store) Lookup(f *Found, k []byte, h uint64) bool {
	return b.findCounting(f, k, h) && f.Kind != record.Negative && !b.Shared.Expired(f.Expiry)
}

// Holds reports whether the bucket has the key, be it a negative entry. It removes an entry that
// has expired.
func (b *Store) Holds(w *Write) bool { return b.holds(w, new(Found)) }

// holds is Holds that also finds the key's ghost, if there is one.
func (b *Store) holds(w *Write, f *Found) bool {
	f.Internal = w.Internal
	if !b.findCounting(f, w.Key, w.Hash) {
		return false
	}
	if b.Shared.Expired(f.Expiry) {
		b.expire(f, w.Hash)
		return false
	}
	return true
}

// Touch gives the record of the key the write's expiry, and reports
// whether it is there. It is not done if the record has no room.
func (b *Store) Touch(w *Write) (there, done bool) {
	f := Found{Internal: w.Internal}
	if !b.Lookup(&f, w.Key, w.Hash) {
		return false, true
	}
	t := b.Shared.times(w)
	if !f.Takes(t) {
		return true, false
	}
	b.setTimes(f.Ring, f.Pos, f.Header, t)
	return true, true
}

// setTimes gives a record that takes them other deadlines.
func (b *Store) setTimes(r *ring.Ring, pos uint64, hd record.Header, t record.Times) {
	if hd.HasExpiry() {
		r.SetTimes(pos, hd, t)
		r.WriteSum(pos)
		b.noteExpiry(t.Expiry)
	}
}

// With Options.ExpireAfterAccess each record of a user's value has two deadlines. The first is its
// expiry, as in all records. A read in the second half of the idle time puts it off, but not beyond
// the last deadline, which is that of the TTL. A read in the first half only reads.

// IsDue reports whether a read of the record f is to put off its expiry. Readers call it without
// the lock.
//
//go:norace
func (b *Store) IsDue(f *Found) bool {
	return f.Deadlines == record.Idle && f.Expiry != 0 && !b.Shared.FreshAt(f.Expiry, 0) &&
		f.Expiry != f.Ring.Times(f.Pos, f.Header).Last
}

// PutOff has a read put off the expiry of the key's record, if it is due, and reports whether the
// record is there.
func (b *Store) PutOff(k []byte, h uint64) (there bool) {
	var f Found
	if there = b.Lookup(&f, k, h); there {
		b.putOff(&f)
	}
	return there
}

func (b *Store) putOff(f *Found) {
	if b.Shared.Idles() && b.IsDue(f) {
		t := f.Ring.Times(f.Pos, f.Header)
		if t.Expiry = b.Shared.IdleEnd(t.Last); t.Expiry != f.Expiry {
			b.setTimes(f.Ring, f.Pos, f.Header, t)
		}
	}
}

// limitIdle has a record from a file, which may have been of a longer idle time or of none, expire
// by the idle time that there is now.
func (b *Store) limitIdle(r *ring.Ring, pos uint64, hd record.Header) {
	if hd.Deadlines != record.Idle || !b.Shared.Idles() {
		return
	}
	t := r.Times(pos, hd)
	if end := clock.Earlier(t.Expiry, b.Shared.IdleEnd(t.Last)); end != t.Expiry {
		t.Expiry = end
		b.setTimes(r, pos, hd, t)
	}
}

// lastOf returns the last deadline that the record f keeps when it is written again.
func (b *Store) lastOf(f *Found) uint32 {
	if f.Deadlines == record.Idle && b.Shared.Idles() {
		return f.Ring.Times(f.Pos, f.Header).Last
	}
	return f.Expiry
}

// Keep gives the write, which replaces the record f, its last deadline.
func (b *Store) Keep(w *Write, f *Found) {
	w.Expiry = b.lastOf(f)
	w.Measure(b.Shared)
}

// expire drops the expired record f of hash h, and its slot: no ghost is left.
func (b *Store) expire(f *Found, h uint64) {
	b.Index.Remove(f.Place)
	b.killExpired(f.Ring, f.Pos, f.Header, h)
}

func (b *Store) killExpired(r *ring.Ring, pos uint64, hd record.Header, h uint64) {
	b.kill(r, pos, hd, h, Expired)
	b.Expired++
	b.ExpiredBytes += uint64(hd.Total())
}

// expireAt is expire for the record at pos of a ring.
func (b *Store) expireAt(in policy.Ring, pos uint64, hd record.Header) {
	r := b.Ring(in)
	h := b.keyHash(r, pos, hd)
	if p, ok := b.Index.Find(h, in, pos); ok {
		b.Index.Remove(p)
	} else {
		b.Corruptions.Add(1)
	}
	b.killExpired(r, pos, hd, h)
}
