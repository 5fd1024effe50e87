package store

import (
	"slices"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// How the records of a bucket are walked: by position, when all of them are wanted, or by the hash
// of their keys.

// Walk is how far a walk by position has come. It goes through the rings in steps, from tail to
// head, and the lock is free in between. A record that moves meanwhile goes to the head of a ring,
// so the walk meets it there, perhaps for the second time. A walk that is late continues by hash.
// The zero value is a walk that has not begun.
type Walk struct {
	at     [policy.Rings]uint64 // the next record of each ring, as Ring.Unwrapped counts
	passed uint64               // bytes of the records so far
	cursor uint64               // of a late walk
	begun  bool
}

// Spot is a record that a walk has met.
type Spot struct {
	Ring policy.Ring
	Pos  uint64
	record.Header
	hash uint64 // of its key
}

// LongRecord is the number of bytes above which the bytes of a record do not count as those of a
// step, but only the bytes of its key.
const LongRecord = chunk.MaxSize

// stepLooks is how many records a step of a walk looks at.
const stepLooks = 1024

// oldestFirst is the order in which a walk goes through the rings.
var oldestFirst = [...]policy.Ring{policy.Cold, policy.Queue, policy.Main, policy.Small}

// Walk appends the next live records of up to StepBytes to spots, but not those that no lookup
// would find. It reports whether the walk has met all records now, but for those in the last part,
// left/of, of small and main. A step of a late walk appends about StepRecords records, or fewer if
// their keys have StepBytes; some may have expired. EndWalk must follow.
func (b *Store) Walk(w *Walk, left, of int, spots []Spot) (_ []Spot, done bool) {
	if !w.begun {
		w.begun = true
		b.walks++ // from now on no record takes the bytes of others that w.at may refer to
	}
	if b.IsLate(w) {
		w.cursor = b.byHash(new([]uint64), w.cursor, func(slot uint64, hd record.Header) int {
			in, pos := index.Ring(slot), index.Pos(slot)
			spots = append(spots, Spot{in, pos, hd, b.keyHash(b.Ring(in), pos, hd)})
			return hd.KeyLen
		})
		return spots, w.cursor == HashesEnd
	}
	now, looks, bytes := b.Shared.Now(), stepLooks, StepBytes
	for _, in := range oldestFirst {
		if in >= b.inUse() {
			continue
		}
		r, stay := b.Ring(in), uint64(0)
		if in < policy.Queue {
			stay = r.Size / uint64(of) * uint64(left)
		}
		more := true
		whole := b.each(in, &w.at[in], stay, func(pos uint64, hd record.Header) bool {
			n, isLive := hd.Total(), !hd.Dead && (hd.Expiry == 0 || now < hd.Expiry)
			if isLive = isLive && !b.isForgotten(r, pos, hd); !isLive {
				n = 0
			} else if n > LongRecord {
				n = hd.KeyLen
			}
			if looks, bytes = looks-1, bytes-n; looks < 0 || bytes < 0 {
				more = false
				return false
			}
			if isLive {
				h := b.keyHash(r, pos, hd)
				b.Index.Prefetch(h, 1) // for Freq
				spots = append(spots, Spot{in, pos, hd, h})
			}
			w.passed += uint64(hd.Total())
			return true
		})
		if !more {
			return spots, false
		}
		if !whole { // without its length, the records behind it cannot be found either
			b.Corruptions.Add(1)
			w.at[in] = r.Unwrapped(r.Tail) + r.Size
		}
	}
	return spots, true
}

// IsLate reports whether a walk has passed twice as many bytes as the rings have: records are
// stored as fast as it proceeds, so it might never reach the heads. By hash it ends.
func (b *Store) IsLate(w *Walk) bool {
	return w.passed > 2*uint64(b.size())
}

// EndWalk ends a walk.
func (b *Store) EndWalk(w *Walk) {
	if w.begun {
		w.begun = false
		b.walks--
	}
}

// each calls fn with the records of a ring, dead or not, from *at on, until fn returns false or the
// rest of the ring has at most the given bytes. It returns false if the header of a record is not
// valid.
func (b *Store) each(
	in policy.Ring, at *uint64, left uint64, fn func(pos uint64, hd record.Header) bool,
) (whole bool) {
	r := b.Ring(in)
	tail := r.Unwrapped(r.Tail)
	*at = max(*at, tail) // the tail may have overtaken the walk
	for end := tail + r.Size; *at+left < end; {
		pos := *at & r.Mask
		hd, ok := r.Header(pos)
		if !ok {
			return false
		}
		if !fn(pos, hd) {
			break
		}
		*at += uint64(hd.Total())
	}
	return true
}

// Long finds the records of small and main that are to be in a large bucket by now, in steps.
type Long struct {
	Done  bool
	Found []Write // that store the records of the last step again, without their values
	walk  Walk
	spots []Spot
}

// outgrown reports whether Resize moves a record of n bytes to a large bucket: in a sparse cache
// any of a bucket that would keep its chunks for a few short ones.
func (b *Store) outgrown(n int) bool {
	s := b.Shared
	return s.IsLarge(n) || s.Arrivals.sparse.Load() && b.liveBytes() <= 4<<s.Shift
}

// Next does one step. End must follow the last one.
func (l *Long) Next(b *Store) {
	l.Found, l.Done = l.Found[:0], true
	if b.Closed || !b.outgrown(int(b.seen)) {
		return
	}
	l.spots, l.Done = b.Walk(&l.walk, 0, 1, l.spots[:0])
	for i := range l.spots {
		s := &l.spots[i]
		freq, ok := b.Freq(s)
		if !ok || !b.outgrown(s.Total()) || s.Ring >= policy.Queue {
			continue
		}
		w := Write{Hash: s.hash, Kind: s.Kind & record.Spaced, Bytes: s.Total(), RewriteOnly: true,
			Restored: true, Ring: s.Ring, Freq: freq}
		w.Key, _ = b.Ring(s.Ring).Read(nil, s.Pos+uint64(s.Size), s.KeyLen)
		l.Found = append(l.Found, w)
	}
}

// End ends the walk.
func (l *Long) End(b *Store) { b.EndWalk(&l.walk) }

// Freq returns the frequency of a record that Walk has met under the same lock. It reports false if
// the index does not refer to it.
func (b *Store) Freq(s *Spot) (freq int, ok bool) {
	p, ok := b.Index.Find(s.hash, s.Ring, s.Pos)
	return FreqOf(p.Slot), ok
}

// FreqOf returns the frequency of a slot's entry.
func FreqOf(slot uint64) int {
	if index.Ring(slot) >= policy.Queue {
		return 0 // the slot has its origin there
	}
	return index.Freq(slot)
}

// By hash: the hash of an entry never changes, and the homes of an index are in hash order. So
// a step takes the entries of the next few homes, from a cursor on, the hash bits that slots
// remember. Moves of records between rings, or of the index to another geometry, do not move an
// entry to the other side of the cursor.

// stepHomes is how many homes a step takes. It ends earlier, with a home or where it must with a
// hash, once it has StepRecords keys or StepBytes of them.
const stepHomes = 256

// HashesEnd is the cursor behind all hashes.
const HashesEnd = 1 << index.HashBits

// byHash calls fn, which returns the bytes that it copies, with each live record of the next homes,
// from cursor at on, in the order of their hashes. It returns the cursor behind them. room is a
// buffer.
func (b *Store) byHash(
	room *[]uint64, at uint64, fn func(slot uint64, hd record.Header) (bytes int),
) (end uint64) {
	if b.Index.Pages() == 0 {
		return HashesEnd
	}
	slots, end := (*room)[:0], at
	for n := 0; end < HashesEnd && n < stepHomes && len(slots) < StepRecords; n++ {
		from := len(slots)
		slots, end = b.Index.TakeHome(slots, end, &b.windows)
		slices.Sort(slots[from:]) // by hash, with which a slot begins; homes are in that order
	}
	sameEntry := func(a, b uint64) bool { return index.Location(a) == index.Location(b) }
	slots = slices.CompactFunc(slots, sameEntry) // a path may visit a group twice
	for _, slot := range slots {
		b.Ring(index.Ring(slot)).Prefetch(index.Pos(slot))
	}
	*room = slots
	bytes := 0
	for i, slot := range slots {
		hash := index.HashOf(slot)
		if bytes >= StepBytes && hash != index.HashOf(slots[i-1]) {
			return hash
		}
		if hd, ok := b.Ring(index.Ring(slot)).Header(index.Pos(slot)); ok {
			bytes += fn(slot, hd)
		}
	}
	return end
}

// Keys are the keys that a step of a walk takes from a bucket: those of generation Of, or, if that
// is 0, those of no namespace.
type Keys struct {
	Of    uint64
	Bytes []byte // one behind the other
	Ends  []int  // where each ends
	slots []uint64
}

// Next copies the next keys of a bucket, from cursor at on, and returns the cursor behind them.
func (k *Keys) Next(b *Store, at uint64) (end uint64) {
	k.Bytes, k.Ends = k.Bytes[:0], k.Ends[:0]
	return b.byHash(&k.slots, at, func(slot uint64, hd record.Header) int {
		r, pos := b.Ring(index.Ring(slot)), index.Pos(slot)
		if g, _ := b.generationAt(r, pos, hd); g != k.Of {
			return 0
		}
		k.Bytes, _ = r.Read(k.Bytes, pos+uint64(hd.Size), hd.KeyLen)
		k.Ends = append(k.Ends, len(k.Bytes))
		return hd.KeyLen
	})
}
