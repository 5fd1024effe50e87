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
// returned if a load fails. But a tail that reaches an expired record drops it, and
// so does every write of its key.

const (
	expireStep = 8    // records that a Set examines
	deleteStep = 1024 // records that DeleteExpired examines under one lock
)

// expirer is the progress of a bucket's search for expired records. It goes through the rings in
// the order in which the policy moves records between them, so a record that moves meanwhile is
// still ahead. (A second hit moves a record from the cold part back to main. noteExpiry notes its
// expiry, and Promote drops it if its generation was forgotten.)
type expirer struct {
	soonest uint32 // between walks: no record is to be removed earlier (I11)
	later   uint32 // during one: the same for the records that it has passed
	walking bool
	ring    policy.Ring
	at      uint64 // the next record of the ring, as Ring.Unwrapped counts

	forgotten uint64 // generations that had been forgotten when the walk began
}

// beginWalk begins a walk.
func (b *Store) beginWalk() {
	e := &b.expirer
	e.walking, e.ring, e.at, e.later = true, policy.Small, 0, math.MaxUint32
	e.forgotten = b.Shared.Generations.Forgotten.Load()
}

// step examines up to n records, fewer if OnRemove has to be called first. It drops those that have
// expired, which it counts, and those of forgotten generations, and ends the walk behind the last
// one.
func (b *Store) step(n int) (dropped int) {
	e, now := &b.expirer, b.Shared.Now()
	for ; e.ring < b.inUse(); e.ring, e.at = e.ring+1, 0 {
		r, more := b.Ring(e.ring), false
		whole := b.each(e.ring, &e.at, 0, func(pos uint64, hd record.Header) bool {
			if n--; n < 0 || b.Removals.IsStep() {
				more = true
				return false
			}
			switch end := b.Shared.KeptUntil(hd.Expiry); {
			case hd.Dead:
			case b.isForgotten(r, pos, hd):
				b.dropAt(e.ring, pos, hd, Deleted)
			case hd.Expiry == 0:
			case now >= end:
				b.dropAt(e.ring, pos, hd, Expired)
				dropped++
			default:
				e.later = min(e.later, end)
			}
			return true
		})
		if more {
			return dropped
		}
		if !whole {
			b.Corruptions.Add(1)
		}
	}
	e.walking, e.soonest, b.searched = false, e.later, e.forgotten
	b.tellNeed()
	return dropped
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
		b.hint = hintUnknown // from now on expired records make room first
		b.Shared.Expiring.Store(true)
		*e = expirer{soonest: math.MaxUint32, later: math.MaxUint32}
		b.updateMortal()
	}
	end := b.Shared.KeptUntil(expiry)
	e.soonest, e.later = min(e.soonest, end), min(e.later, end)
}

// FindsInTime reports whether the search for expired records begins in time for one with room for
// an expiry (I11). It is for tests.
func (b *Store) FindsInTime(expiry uint32) bool {
	e := &b.expirer
	return b.hasTTL && (expiry == 0 || e.walking || b.Shared.KeptUntil(expiry) >= e.soonest)
}

// mortalShare: records are nearly all mortal if at most 1/mortalShare of them have no expiry.
const mortalShare = 16

// updateMortal sets Mortal for lookups, and returns the number of live records with room for an
// expiry.
func (b *Store) updateMortal() (expiring int) {
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
	if b.updateMortal() == 0 && !forgotten {
		b.hasTTL, e.walking = false, false
		return
	}
	if !e.walking {
		if !forgotten && b.Shared.Now() < e.soonest {
			return
		}
		b.beginWalk()
	}
	b.step(expireStep)
}

// DeleteStep drops some of the records that are expired when the first step begins, and returns how
// many, and some of the forgotten ones. Sets that come in between continue the same walk.
func (b *Store) DeleteStep(first bool) (dropped int, done bool) {
	if first && b.mayBeGone() {
		b.beginWalk()
	} else if first {
		return 0, true
	}
	if b.expirer.walking {
		dropped = b.step(deleteStep)
	}
	return dropped, !b.expirer.walking
}

// mayBeGone reports whether a walk may find records.
func (b *Store) mayBeGone() bool {
	e := &b.expirer
	return b.hasForgotten() || b.hasTTL && (e.walking || b.Shared.Now() >= e.soonest)
}

// Touch gives the record of the key the deadlines of the write, and reports whether the key is
// there. It changes nothing, and done is false, if the record has no room for them.
func (b *Store) Touch(w *Write) (there, done bool) {
	var f Found
	if !b.Lookup(&f, w.Key, w.Hash) {
		return false, true
	}
	w.Measure(b.Shared)
	if done = f.Takes(w.Times); done {
		b.setTimes(f.Ring, f.Pos, f.Header, w.Times)
	}
	return true, done
}

// setTimes changes the deadlines of a record that has room for them.
func (b *Store) setTimes(r *ring.Ring, pos uint64, hd record.Header, t record.Times) {
	if hd.Deadlines != record.Timeless {
		r.SetTimes(pos, hd, t)
		r.WriteSum(pos)
		b.noteExpiry(t.Expiry)
	}
}

// With Options.ExpireAfterAccess each record of a user's value has two deadlines. The first is its
// expiry, as in all records. A read in the second half of the idle time postpones it, but not
// beyond the last deadline, which is that of the TTL. A read in the first half changes nothing.

// CanPutOff reports whether a read of the record f postpones its expiry. Readers call it without
// the lock.
//
//go:norace
func (b *Store) CanPutOff(f *Found) bool {
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
	if b.Shared.Idles && b.CanPutOff(f) {
		t := f.Ring.Times(f.Pos, f.Header)
		t.Expiry = b.Shared.IdleEnd(t.Last)
		b.setTimes(f.Ring, f.Pos, f.Header, t)
	}
}

// limitIdle applies the present idle time to a record from a file, which may have been stored with
// a longer one or with none.
func (b *Store) limitIdle(r *ring.Ring, pos uint64, hd record.Header) {
	if hd.Deadlines != record.Idle || !b.Shared.Idles {
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
	if f.Deadlines == record.Idle && b.Shared.Idles {
		return f.Ring.Times(f.Pos, f.Header).Last
	}
	return f.Expiry
}

// Keep gives the write, which replaces the record f, its last deadline, and its expiry if the value
// stays the same.
func (b *Store) Keep(w *Write, f *Found) {
	if w.Last = b.lastOf(f); w.RewriteOnly {
		w.Until = f.Expiry
	}
	w.Measure(b.Shared)
}

// dropAt drops the live record at pos of a ring, which has expired or was forgotten, and its slot:
// no ghost is left.
func (b *Store) dropAt(in policy.Ring, pos uint64, hd record.Header, why Reason) {
	r := b.Ring(in)
	h := b.keyHash(r, pos, hd)
	if p, ok := b.Index.Find(h, in, pos); ok {
		b.Index.Remove(p)
	} else {
		b.Corruptions.Add(1)
	}
	b.kill(r, pos, hd, h, why)
}
