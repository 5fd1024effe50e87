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
// While any record may have expired, each Set examines a few, from tails to heads, and marks those
// that have expired dead. Compaction reclaims their bytes (room.go).
//
// With Options.StaleIfError, this search leaves expired records for that time, since they are
// returned if a load fails (Cache.stale). But a tail that reaches an expired record drops it, and
// so does every write of its key.

const (
	expireStep = 8    // records that a Set examines
	deleteStep = 1024 // records that DeleteExpired examines under one lock
)

// expirer is the progress of a bucket's search for expired records.
type expirer struct {
	soonest uint32 // between walks: no record is to be removed earlier (I11)
	later   uint32 // during one: the same for the records that it has passed
	walking bool
	walk    walk

	forgotten uint64 // generations that had been forgotten when the walk began
}

// walk visits the records that a bucket has when it begins, ring by ring. The rings come in the
// order in which the policy moves records between them, so a record that moves meanwhile is still
// ahead. (A second hit moves a record from the cold part back to main. noteExpiry notes its expiry,
// and Promote drops it if its generation was forgotten.)
type walk struct {
	ring policy.Ring
	pos  uint64 // next record of the ring
	end  uint64 // the head of the ring when the walk came to it
}

// newWalk begins a walk.
func (b *Store) newWalk() walk {
	small := &b.Rings[policy.Small]
	return walk{ring: policy.Small, pos: small.Tail, end: small.Head()}
}

// nextRecord returns the position of the next record in w.ring, or false at the end. Records that
// have moved to the head of their ring since then were examined at its tail.
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

// step examines up to n records, fewer if OnRemove has to be called first. It drops those that have
// expired, which it counts, and those of forgotten generations. It lowers soonest to the earliest
// expiry of the others, and reports whether the walk has ended.
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

// noteExpiry notes the expiry of a record that was stored or changed, or has moved, perhaps to a
// place that a walk has passed.
func (b *Store) noteExpiry(expiry uint32) {
	if expiry == 0 {
		return
	}
	e := &b.expirer
	if !b.hasTTL {
		b.hasTTL = true
		b.known = hintUnknown // from now on expired records make room first
		b.Shared.Expiring.Store(true)
		*e = expirer{soonest: math.MaxUint32, later: math.MaxUint32}
		b.countExpiring()
	}
	end := b.Shared.KeptUntil(expiry)
	e.soonest, e.later = min(e.soonest, end), min(e.later, end)
}

// mortalShare: records are nearly all mortal if at most 1/mortalShare of them have no expiry.
const mortalShare = 16

// countExpiring returns the number of live records with room for an expiry, and sets Mortal for
// lookups.
func (b *Store) countExpiring() (expiring int) {
	for in := range b.inUse() {
		expiring += b.Ring(in).Expiring
	}
	live := b.live()
	if mortal := expiring > 0 && live-expiring <= live/mortalShare; mortal != b.Mortal.Load() {
		b.Mortal.Store(mortal) // not stored in vain: readers share its cache line
	}
	return expiring
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
		e.forgotten = b.Shared.Generations.Forgotten.Load()
	}
	if _, done := b.step(&e.walk, expireStep, &e.later); done {
		e.walking, e.soonest, b.searched = false, e.later, e.forgotten
	}
}

// Sweep is the progress of DeleteExpired in a bucket.
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

// Stop ends a sweep of bucket b that is not done, after OnRemove has panicked.
func (s *Sweep) Stop(b *Store) {
	if s.begun && !s.Done {
		s.Done = true
		b.sweeps--
	}
}

// Lookup is findCounting, but reports false for a record that has expired or is a negative entry.
func (b *Store) Lookup(f *Found, k []byte, h uint64) bool {
	return b.findCounting(f, k, h) && f.Kind.Base() != record.Negative && !b.Shared.Expired(f.Expiry)
}

// Holds reports whether the bucket has an entry of the key, negative or not. It removes an entry
// that has expired.
func (b *Store) Holds(w *Write) bool { return b.holds(w, new(Found)) }

// holds is Holds that also finds the key's ghost, if there is one.
func (b *Store) holds(w *Write, f *Found) bool {
	if !b.findCounting(f, w.Key, w.Hash) {
		return false
	}
	if b.Shared.Expired(f.Expiry) {
		b.expire(f, w.Hash)
		return false
	}
	return true
}

// Touch gives the record of the key the deadlines of the write, and reports whether the key is
// there. It changes nothing, and done is false, if the record has no room for them.
func (b *Store) Touch(w *Write) (there, done bool) {
	var f Found
	if !b.Lookup(&f, w.Key, w.Hash) {
		return false, true
	}
	w.Measure(b.Shared)
	t := w.Times
	if !f.Takes(t) {
		return true, false
	}
	b.setTimes(f.Ring, f.Pos, f.Header, t)
	return true, true
}

// setTimes changes the deadlines of a record that has room for them.
func (b *Store) setTimes(r *ring.Ring, pos uint64, hd record.Header, t record.Times) {
	if hd.HasExpiry() {
		r.SetTimes(pos, hd, t)
		r.WriteSum(pos)
		b.noteExpiry(t.Expiry)
	}
}

// With Options.ExpireAfterAccess each record of a user's value has two deadlines. The first is its
// expiry, as in all records. A read in the second half of the idle time postpones it, but not
// beyond the last deadline, which is that of the TTL. A read in the first half changes nothing.

// IsDue reports whether a read of the record f is to postpone its expiry. Readers call it without
// the lock.
//
//go:norace
func (b *Store) IsDue(f *Found) bool {
	return f.Deadlines == record.Idle && f.Expiry != 0 && !b.Shared.FreshAt(f.Expiry, 0) &&
		f.Expiry != f.Ring.Times(f.Pos, f.Header).Last
}

// PutOff postpones the expiry of the key's record after a read, if that is due, and reports whether
// the record is there.
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

// limitIdle applies the present idle time to a record from a file, which may have been stored with
// a longer one or with none.
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
