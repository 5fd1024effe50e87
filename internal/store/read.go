package store

import (
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/torn"
)

// Methods that readers call while a writer may be at work. bucket.go in the root package states the
// rules that hold between the two loads of the bucket's sequence: no result is used before the
// second load, and every bound is checked against memory that is always mapped.
//
// The race detector would report torn reads, so these functions are marked norace; in a race build
// they are not inlined either.

// Outcome is the result of Candidate.
type Outcome uint8

const (
	Miss    Outcome = iota
	Hit             // a live slot has the hash; the record's key is still to be compared
	Unclear         // only Find can tell
)

// Presence is what a bucket has of a key. From Killed on, its slot leads to a record.
type Presence uint8

const (
	Absent  Presence = iota
	Ghost            // a stale slot of its hash
	Killed           // a record that the policy had dropped, killed since: to the policy a ghost
	Present          // its record
)

// Found is the result of Find: the record of the key, or on a miss its ghost. Once the lock is
// released, only the Header and the slot as it was read can be relied on: Ring, Pos and Rec may
// lead to another record.
type Found struct {
	Presence
	index.Place
	record.Header
	Ring *ring.Ring
	Pos  uint64
	Rec  []byte // the record; nil if it crosses the end of a chunk

	collisions, corruptions uint8 // records met in the search that have another key, or are damaged
}

// ValuePos returns the position of the value.
func (f *Found) ValuePos() uint64 { return f.Pos + uint64(f.Size+f.KeyLen) }

// IsPacked reports whether the value is to be unpacked. A header outside the cold part that
// says so is damaged.
func (f *Found) IsPacked() bool {
	return f.Kind.Base() == record.Packed && index.Ring(f.Slot) >= policy.Queue
}

// Candidate is the first half of the common lookup: it looks for a live slot of hash h in g, its
// home group, and returns the slot and the bytes from the record to the end of its chunk. If it
// returns Unclear, the caller must call Find. On a miss, slot is that of a ghost, or nil. Readers
// call it without the lock, after a prefetch of g: unlike a load, a prefetch does not wait for the
// last lookup's atomic operations.
//
//go:norace
func (b *Store) Candidate(
	g *index.Group, h uint64,
) (rec []byte, slot *atomic.Uint64, s uint64, got Outcome) {
	var ghost *atomic.Uint64
	for m := g.Matches(h); m != 0; m &= m - 1 {
		at := &g.Slots[index.FirstSlot(m)]
		s = at.Load()
		torn.Delay()
		if !index.SameHash(s, h) {
			continue
		}
		in := index.Ring(s)
		if in >= RingCount {
			return nil, nil, 0, Unclear
		}
		r := &b.Rings[in]
		if !r.Live(s) {
			ghost = at
			continue
		}
		if rec = r.Run(s); len(rec) < record.MaxHeader {
			return nil, nil, 0, Unclear
		}
		return rec, at, s, Hit
	}
	if g.Overflow(h) != 0 && b.Index.MayHavePassed(h) {
		return nil, nil, 0, Unclear
	}
	return nil, ghost, 0, Miss
}

// ValueIn is the second half: it returns the value and the expiry of the record at the beginning of
// rec, if that has a value as it was set and key k, and does not extend beyond rec. Readers call it
// without the lock.
//
//go:norace
func ValueIn(form record.Form, rec, k []byte) (value []byte, expiry uint32, ok bool) {
	torn.Delay()
	hd, ok := form.ParseShort(rec)
	if !ok {
		return valueInOther(form, rec, k)
	}
	// The value's place follows from len(k), not from the header, so that the processor fetches its
	// lines while it waits for that one.
	end, total := hd.Size+len(k), hd.Total()
	if hd.KeyLen != len(k) || total > len(rec) || !torn.Equal(rec[hd.Size:end], k) {
		return nil, 0, false
	}
	return rec[end:total], 0, true
}

// valueInOther is ValueIn for headers of all other forms: the common one needs no call.
//
//go:norace
func valueInOther(form record.Form, rec, k []byte) (value []byte, expiry uint32, ok bool) {
	hd, ok := form.ParseOther(rec)
	end, total := hd.Size+len(k), hd.Total()
	if !ok || hd.Kind.Base() != record.Value || hd.KeyLen != len(k) ||
		uint(total) > uint(len(rec)) || // torn lengths may exceed an int of 32 bits
		!torn.Equal(rec[hd.Size:end], k) {
		return nil, 0, false
	}
	return rec[end:total], hd.Expiry, true
}

// NoteGhostMiss counts a miss that has found a ghost in a slot, and notes each ghost once for the
// policy. A torn slot does little harm: at worst it marks a live entry. With FIFO, a
// ghost counts only if fewer bytes were released since than the bucket has: an older entry would
// have left a cache of twice the size too. Readers call it without the lock.
//
//go:norace
func (b *Store) NoteGhostMiss(slot *atomic.Uint64) {
	s := slot.Load()
	if b.Touches || b.Ring(index.Ring(s)).Gone(s) <= uint64(b.size()) {
		b.NearMisses.Add(1)
	}
	if b.Touches && b.isNear(s) && index.MarkSeen(slot, s) {
		b.sought[origin(s)].Add(1)
	}
}

// isNear reports whether a larger ring could still hold the entry of a ghost.
//
//go:norace
func (b *Store) isNear(ghost uint64) bool {
	return policy.IsNear(origin(ghost), b.gone(ghost), b.Rings[0].Size, b.Rings[1].Size)
}

// gone returns how many bytes its ring has dropped since it dropped the entry of a ghost.
//
//go:norace
func (b *Store) gone(ghost uint64) uint64 {
	r := b.Ring(index.Ring(ghost))
	if index.Ring(ghost) >= policy.Queue { // gone from its ring when it came to the cold part
		return r.Age(ghost)
	}
	return r.Gone(ghost)
}

// origin returns the ring in which the policy had the entry of a slot. An entry of the cold part
// came from that ring, which its slot holds in place of a frequency.
func origin(s uint64) policy.Ring {
	if in := index.Ring(s); in < policy.Queue {
		return in
	}
	return index.Origin(s)
}

// Find looks for the record of key k, whose hash is h. On a miss it tells whether there is
// a ghost of the hash. Readers call it without the lock.
//
//go:norace
func (b *Store) Find(f *Found, k []byte, h uint64) bool {
	for p := b.Index.Geometry(h).Path(h); ; p.Next() {
		g := b.Index.Group(p.At)
		for m := g.Matches(h); m != 0; m &= m - 1 {
			i := index.FirstSlot(m)
			s := g.Slots[i].Load()
			if !index.SameHash(s, h) {
				continue
			}
			torn.Delay()
			r := b.Ring(index.Ring(s))
			if !r.Live(s) {
				f.Place, f.Presence = index.Place{Group: g, Slot: s, At: p.At, I: i}, Ghost
				continue
			}
			if f.match(r, index.Pos(s), k) {
				f.Place, f.Presence = index.Place{Group: g, Slot: s, At: p.At, I: i}, Present
				return true
			}
		}
		if p.Left == 0 || g.Overflow(h) == 0 {
			return false
		}
	}
}

// match reports whether the record at pos has key k, and fills in f except for its place. The
// common record, a short one in one chunk, is decoded here.
//
//go:norace
func (f *Found) match(r *ring.Ring, pos uint64, k []byte) bool {
	rec := r.Run(pos)
	if len(rec) >= 4 {
		r.PrefetchRecord(rec)
		torn.Delay()
		hd, ok := r.Form().ParseShort(rec)
		if ok && hd.Total() <= len(rec) {
			at := hd.Size
			if hd.KeyLen != len(k) || !torn.Equal(rec[at:at+len(k)], k) {
				f.collisions++
				return false
			}
			f.Header, f.Ring, f.Pos, f.Rec = hd, r, pos, rec[:hd.Total()]
			return true
		}
	}
	return f.matchAny(r, pos, rec, k)
}

// matchAny is match for records of every form. rec is the rest of the chunk, from the record on.
//
//go:norace
func (f *Found) matchAny(r *ring.Ring, pos uint64, rec, k []byte) bool {
	hd, ok := r.AnyHeader(pos)
	if !ok {
		f.corruptions++
		return false
	}
	if hd.KeyLen != len(k) || !r.Equal(pos+uint64(hd.Size), k) {
		f.collisions++
		return false
	}
	f.Header, f.Ring, f.Pos, f.Rec = hd, r, pos, nil
	if hd.Total() <= len(rec) {
		f.Rec = rec[:hd.Total()]
	}
	return true
}

// findCounting is Find under the lock, followed by CountOddities.
func (b *Store) findCounting(f *Found, k []byte, h uint64) bool {
	ok := b.Find(f, k, h)
	b.CountOddities(f)
	return ok
}

// Lookup is findCounting, but reports false for a record that has expired or is a negative entry.
func (b *Store) Lookup(f *Found, k []byte, h uint64) bool {
	return b.findCounting(f, k, h) && f.Kind.Base() != record.Negative && !b.Shared.Expired(f.Expiry)
}

// FindOrExpire is findCounting that removes an entry that has expired. The entry may be a negative
// one.
func (b *Store) FindOrExpire(w *Write, f *Found) bool {
	if !b.findCounting(f, w.Key, w.Hash) {
		return false
	}
	if f.Expiry != 0 && b.Shared.Expired(f.Expiry) {
		b.remove(f, w.Hash, Expired)
		f.Presence = Absent // no ghost is left
		return false
	}
	return true
}

// CountOddities adds the collisions and corruptions that Find has met to the counters. Readers call
// it without the lock, once they know that nothing was torn.
func (b *Store) CountOddities(f *Found) {
	if f.collisions|f.corruptions != 0 {
		b.Collisions.Add(uint64(f.collisions))
		b.Corruptions.Add(uint64(f.corruptions))
	}
}

// NoteRead counts the read of the record f by a write as if it were a lookup: it raises the
// frequency, and postpones the expiry if that is due.
func (b *Store) NoteRead(f *Found) {
	b.putOff(f)
	switch slot := &f.Group.Slots[f.I]; {
	case index.Ring(f.Slot) < policy.Queue:
		if b.Touches {
			index.Raise(slot, f.Slot)
		}
	case !index.WasRead(f.Slot):
		index.MarkRead(slot, f.Slot)
	}
}

// Holds reports whether the value of the record is v.
func (f *Found) Holds(v []byte) bool {
	return f.ValueLen == len(v) && f.Ring.Equal(f.ValuePos(), v)
}
