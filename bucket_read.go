package ringcache

import (
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/torn"
)

// How a bucket is read: without its lock, beside whoever writes.
//
// seq is a sequence lock. A reader loads it, looks the key up, copies the value, and loads
// it again: if it is the same even number, nobody has written meanwhile, and what was read
// is conclusive. Else it was torn, is forgotten, and the reader retries. So these rules
// hold between the two loads:
//
//   - Loads may be torn or stale: nothing is believed, and every bound is checked against
//     what is always mapped. Tables only become longer; memory stays mapped as long as the
//     Cache can be reached, and an index page is never anything else.
//   - Nothing is changed but the frequency, by compare-and-swap of a slot that was read: at
//     worst, another entry's is raised.
//   - Before the second load stands a fence.
//
// Speed depends on how much of the next lookup the processor begins while it waits for a
// record. So the common lookup has two halves (candidate, valueIn): what need not wait for
// the record, the two atomic operations above all, is done before its first use. (A
// prefetch of the record in between makes it slower by a fifth: it waits until the address
// is translated, and what follows waits for it.)
//
// The race detector would report what is torn, so the functions that a reader goes through
// are marked norace; in a race build they are not inlined either.

// lookupMode says what a lookup is to do.
type lookupMode uint8

const (
	withValue  lookupMode = 1 << iota // append the value
	counted                           // in Stats, as a near miss too if it is one
	touching                          // raise the frequency
	orStale                           // take what is expired and kept (Options.StaleIfError) too
	toMain                            // have what is in the cold part go to main
	internal                          // it is of the cache's own; Cache.lookupAny only
	precounted                        // it was counted, as a hit

	getMode = withValue | counted | touching
)

// unhashed stands for a hash that lookup has to compute. A key that has it is hashed twice.
const unhashed = 0

// outcome is what a lookup has found out.
type outcome uint8

const (
	miss      outcome = iota
	hit               // the value is there
	negative          // a load found that the key has none: a miss to all others
	elsewhere         // not here, but perhaps in a large bucket
	inCold            // in the cold part: Cache.lookupCold knows how to read it
	retry             // torn: somebody wrote meanwhile
	uncommon          // not for probe to find out
)

// readTries is how often a reader looks before it takes the lock: longer than most Sets.
const readTries = 4

// found is what find has found: the record of the key, or on a miss its ghost.
type found struct {
	index.Place
	record.Header
	ring  *ring.Ring
	pos   uint64
	rec   []byte // the record; nil if it crosses the end of a chunk
	ghost bool   // a miss, and Place is that of the key's ghost
	dead  bool   // the record was killed since: its bytes may be another's

	internal bool // what is looked for: a record of the cache's own, or of users

	collisions, corruptions uint8 // records on the way that were another key's, or none
}

// valuePos returns the position of the value.
func (f *found) valuePos() uint64 { return f.pos + uint64(f.Size+f.KeyLen) }

// isPacked reports whether the value is to be unpacked. A header outside the cold part that
// says so is damaged.
func (f *found) isPacked() bool {
	return f.Kind == record.Packed && index.Ring(f.Slot).IsCold()
}

// candidate is the first half of the common lookup: it looks for a live slot of hash h in
// its home group, and returns the slot and the rest of the record's chunk. What is uncommon
// it leaves to find. On a miss, slot is that of a ghost, or nil.
//
//go:norace
func (b *bucket) candidate(h uint64) (rec []byte, slot *atomic.Uint64, s uint64, got outcome) {
	if b.index.Empty() {
		return nil, nil, 0, miss
	}
	g := b.index.Group(b.index.Home(h))
	g.Prefetch() // no atomic operation of the lookup before holds this up
	var ghost *atomic.Uint64
	for m := g.Matches(index.Tag(h)); m != 0; m &= m - 1 {
		at := g.At(index.FirstSlot(m))
		s = at.Load()
		delay.Point()
		if !index.SameHash(s, h) {
			continue
		}
		in := index.Ring(s)
		if in >= ringCount {
			return nil, nil, 0, uncommon
		}
		r := &b.rings[in]
		if !r.Live(s) {
			ghost = at
			continue
		}
		if rec = r.Run(s); len(rec) < record.MaxShort {
			return nil, nil, 0, uncommon
		}
		return rec, at, s, hit
	}
	if g.Passed(h) != 0 {
		return nil, nil, 0, uncommon
	}
	return nil, ghost, 0, miss
}

// valueIn is the second half: it returns the value in the record at the beginning of rec,
// if that has a short header, key k, and no more bytes than rec.
//
//go:norace
func valueIn(form record.Form, rec, k []byte) (value []byte, expiry uint32, ok bool) {
	delay.Point()
	hd, ok := form.ParseShort(rec)
	if !ok {
		hd, ok = form.ParseExpiring(rec)
	}
	end := hd.Size + len(k)
	if !ok || hd.KeyLen != len(k) || hd.Total() > len(rec) || !torn.Equal(rec[hd.Size:end], k) {
		return nil, 0, false
	}
	return rec[end:hd.Total()], hd.Expiry, true
}

// read looks k up, whose hash is h, and appends its value to dst, for records of every
// form. It takes no lock; who holds it gets no retry. The expiry is that of a hit.
//
//go:norace
func (b *bucket) read(
	dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	seq := b.seq.Load()
	if seq&1 != 0 {
		return dst, 0, retry
	}
	f := found{internal: mode&internal != 0}
	out = dst
	if b.find(&f, k, h) {
		switch {
		case b.shared.Expired(f.Expiry) && !b.isStale(&f, mode): // before the copy: k may lie in dst
		case f.Kind == record.Negative:
			got = negative
		case index.Ring(f.Slot).IsCold() && mode&(withValue|touching) != 0:
			return dst, 0, inCold // or torn: who comes there looks again
		default:
			got = hit
		}
		if got == hit && mode&withValue != 0 {
			var whole bool
			if out, whole = b.copyValue(&f, dst, seq); !whole {
				return dst, 0, retry
			}
		}
	}
	if got == miss && !b.large && b.shared.largeKeysOf(h).Load() != 0 {
		return dst, 0, elsewhere
	}
	delay.Point()
	torn.Fence()
	if b.seq.Load() != seq {
		return dst, 0, retry
	}
	countLookup(n, mode, got)
	b.countOddities(&f)
	if got == miss {
		if f.ghost && mode&counted != 0 {
			b.seek(f.Group.At(f.I))
		}
		return dst, 0, miss
	}
	if mode&touching != 0 && b.touches {
		index.Raise(f.Group.At(f.I), f.Slot)
	}
	runtime.KeepAlive(b) // and with it the Cache: its memory stays mapped until here
	return out, f.Expiry, got
}

// isStale reports whether the expired record f is what a lookup takes nonetheless.
//
//go:norace
func (b *bucket) isStale(f *found, mode lookupMode) bool {
	return mode&orStale != 0 && b.shared.Now() < b.shared.KeptUntil(f.Expiry)
}

// seek counts a miss that has found a ghost in a slot, and notes the ghost for the policy,
// once for each. What is torn does little harm: at worst a live entry is on trial. With FIFO
// what left more bytes ago than there are has gone from a larger cache too.
//
//go:norace
func (b *bucket) seek(slot *atomic.Uint64) {
	s := slot.Load()
	if b.touches || b.ring(index.Ring(s)).Gone(s) <= uint64(b.size()) {
		b.nearMisses.Add(1)
	}
	if b.touches && b.isNear(s) && index.Mark(slot, s) {
		b.sought[origin(s)].Add(1)
	}
}

// isNear reports whether a larger ring could still hold the entry of a ghost.
//
//go:norace
func (b *bucket) isNear(ghost uint64) bool {
	gone := b.ring(index.Ring(ghost)).Gone(ghost)
	if index.Ring(ghost).IsCold() { // gone from its ring when it came to the cold part
		gone = b.ring(index.Ring(ghost)).Age(ghost)
	}
	return policy.IsNear(origin(ghost), gone, b.rings[0].Size, b.rings[1].Size)
}

// origin returns the ring that the policy knows the entry of a slot in: one of the cold
// part came from there. A slot of the cold part has it in place of a frequency.
func origin(s uint64) policy.Ring {
	if in := index.Ring(s); !in.IsCold() {
		return in
	}
	return index.Origin(s)
}

// countLookup counts a lookup that has ended. No counter is ever taken back, as somebody may have
// seen it.
func countLookup(n *stripe.Counter, mode lookupMode, got outcome) {
	switch {
	case mode&counted == 0 || mode&precounted != 0 && got == hit:
	case mode&precounted != 0:
		n.Lost.Add(1)
	case got == hit:
		n.Hits.Add(1)
	default:
		n.Misses.Add(1)
	}
}

// copyValue appends the value of f to dst. It reports false if it is torn.
//
//go:norace
func (b *bucket) copyValue(f *found, dst []byte, seq uint64) ([]byte, bool) {
	if f.rec != nil {
		return torn.Append(dst, f.rec[f.Size+f.KeyLen:]), true
	}
	if cap(dst)-len(dst) < f.ValueLen {
		torn.Fence()
		if b.seq.Load() != seq { // no memory on the word of a length that may be torn
			return dst, false
		}
		dst = slices.Grow(dst, f.ValueLen)
	}
	return f.ring.Read(dst, f.valuePos(), f.ValueLen)
}

// find looks for the record of key k, whose hash is h. On a miss it tells whether there is
// a ghost of the hash. Readers call it without the lock.
//
//go:norace
func (b *bucket) find(f *found, k []byte, h uint64) bool {
	if b.index.Empty() {
		return false
	}
	tag := index.Tag(h)
	for p := b.index.Path(h); ; p.Next() {
		g := b.index.Group(p.At)
		for m := g.Matches(tag); m != 0; m &= m - 1 {
			i := index.FirstSlot(m)
			s := g.Load(i)
			if !index.SameHash(s, h) {
				continue
			}
			delay.Point()
			r := b.ring(index.Ring(s))
			if !r.Live(s) {
				f.Place, f.ghost = index.Place{Group: g, Slot: s, At: p.At, I: i}, true
				continue
			}
			if f.match(r, index.Pos(s), k) {
				f.Place, f.ghost = index.Place{Group: g, Slot: s, At: p.At, I: i}, false
				return true
			}
		}
		if p.Left == 0 || g.Passed(h) == 0 {
			return false
		}
	}
}

// match reports whether the record at pos has key k, and fills in f but for its
// place. The common record, a short one in one chunk, is decoded here.
//
//go:norace
func (f *found) match(r *ring.Ring, pos uint64, k []byte) bool {
	rec := r.Run(pos)
	if len(rec) >= 4 {
		r.PrefetchRecord(rec)
		delay.Point()
		hd, ok := r.Form().ParseShort(rec)
		if ok && hd.Total() <= len(rec) {
			at := hd.Size
			if hd.KeyLen != len(k) || f.internal || !torn.Equal(rec[at:at+len(k)], k) {
				f.collisions++
				return false
			}
			f.Header, f.ring, f.pos, f.rec = hd, r, pos, rec[:hd.Total()]
			return true
		}
	}
	return f.matchAny(r, pos, rec, k)
}

// matchAny is match for records of every form. rec is what its chunk has of it.
//
//go:norace
func (f *found) matchAny(r *ring.Ring, pos uint64, rec, k []byte) bool {
	hd, ok := r.AnyHeader(pos)
	if !ok {
		f.corruptions++
		return false
	}
	isOther := (hd.Kind == record.Internal) != f.internal
	if hd.KeyLen != len(k) || isOther || !r.Equal(pos+uint64(hd.Size), k) {
		f.collisions++
		return false
	}
	f.Header, f.ring, f.pos, f.rec = hd, r, pos, nil
	if hd.Total() <= len(rec) {
		f.rec = rec[:hd.Total()]
	}
	return true
}

// findLocked is find under the lock.
func (b *bucket) findLocked(f *found, k []byte, h uint64) bool {
	ok := b.find(f, k, h)
	b.countOddities(f)
	return ok
}

// countOddities adds what find has seen on the way to the counters.
func (b *bucket) countOddities(f *found) {
	if f.collisions|f.corruptions != 0 {
		b.collisions.Add(uint64(f.collisions))
		b.corruptions.Add(uint64(f.corruptions))
	}
}

// overlaps reports whether k lies in the array of dst, even in part: a value that
// turns out to be torn would have destroyed it.
func overlaps(dst, k []byte) bool {
	// Sound: the addresses are compared as numbers. k ends behind where dst begins,
	// and no more than both lengths behind: d is from 1 to less than their sum.
	d := uintptr(unsafe.Pointer(unsafe.SliceData(k))) - uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	return cap(dst) > 0 && d+uintptr(len(k))-1 < uintptr(cap(dst)+len(k)-1)
}
