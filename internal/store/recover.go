package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/ringfile"
)

// Recovery of a bucket from a file: its rings have records, and its index is made anew from them.
// Each record is examined, from the tails to the heads. One that fails its checksum was being
// written when the process died, and is treated as if it had not been written.

// inFile makes the bucket, which is the nth one, keep its records in the file.
func (b *Store) inFile(n int) {
	f := b.Shared.File
	b.Form = record.Checked
	for in := range b.inUse() {
		l := f.Rings.Ledger(n, int(in))
		if f.IsNew {
			l.SetSpan(0, 0)
		}
		b.Ring(in).InFile(l, b.Shared.Seed[0])
	}
}

// AdoptChunks is the first of three calls that bring a bucket back: it takes from chunks those that
// the bucket's rings held when the file was left. It returns how many they hold now, and the chunks
// that they do not use: all of the cold part, if the cache has none any more.
func (b *Store) AdoptChunks(
	chunks map[uint64][]ringfile.Chunk,
) (held int, unused []chunk.Ref) {
	for in := range policy.Ring(policy.Rings) {
		l := b.Shared.File.Rings.Ledger(int(b.Number), int(in))
		of, left, ok := chunks[l.ID()], []chunk.Ref(nil), true
		if in < b.inUse() {
			left, ok = b.Ring(in).Restore(of)
		} else {
			l.Empty()
			for _, ch := range of {
				ch.Drop()
				left, ok = append(left, ch.Ref), false
			}
		}
		if !ok { // records are lost
			b.Shared.Recovered.Discarded.Add(1)
		}
		held += len(of) - len(left)
		unused = append(unused, left...)
	}
	return held, unused
}

// EnterRecords is the second: it enters the records of the rings into the index. If timed is false,
// the time since they were written is unknown, and those that may have expired are dropped.
// Shared.Recovered counts those that are damaged.
func (b *Store) EnterRecords(timed bool) {
	var key []byte // a buffer
	b.sizeIndex()
	for _, in := range oldestFirst {
		if in >= b.inUse() {
			continue
		}
		r, at := b.Ring(in), uint64(0)
		if !b.each(in, &at, 0, func(pos uint64, hd record.Header) bool {
			key = b.recoverRecord(key, timed, in, pos, hd)
			return true
		}) { // without its length, the next record cannot be found
			b.Shared.Recovered.Discarded.Add(1)
			r.CutOff(at & r.Mask)
		}
	}
	if b.cold.on {
		b.cold.begun = b.cold.held() > 0
	}
	n, bytes := b.live(), b.liveBytes()
	b.Shared.CountArrival(Arrival{n, bytes}, b.Large)
	b.learn()
}

// sizeIndex gives the index the pages that the live records in the rings need.
func (b *Store) sizeIndex() {
	live := 0
	for in := range b.inUse() {
		b.each(in, new(uint64), 0, func(_ uint64, hd record.Header) bool {
			if !hd.Dead {
				live++
			}
			return true
		})
	}
	b.SizeIndex(live)
}

// SizeIndex gives an empty index the pages that so many live records need. One that grew with the
// records would move its homes several times, and end with up to an eighth more pages. If the
// system refuses them, it gets fewer.
func (b *Store) SizeIndex(live int) {
	if live == 0 || !b.Index.Empty() {
		return
	}
	n := b.Index.PagesFor(live * 16 / int(b.growAt))
	for n > 0 && b.growIndex(n) != nil {
		n /= 2
	}
}

// Settle is the third, when all buckets have done the second: it counts the entries, and sets the
// limits of the cold part, else the first Set would find no room in it. In a FIFO cache it moves
// what another policy has left in small to main.
func (b *Store) Settle() {
	b.Shared.Recovered.Entries.Add(uint64(b.live()))
	b.shapeCold()
	if b.policy.Kind.HasOneRing() {
		for b.Rings[policy.Small].Held() > 0 { // the cold part has room for what that drops
			work := policy.WorkFor(b.Longest, b.Shared.mostMoved)
			b.passTail(policy.Small, &work)
		}
	}
}

// recoverRecord enters the record at pos of a ring, unless it is dead, torn, misplaced, expired or
// of no namespace that the file knows, and kills another live record of the same key. Writes kill
// before they append, so only a move leaves two, and those have the same value. key is a buffer,
// which it returns.
func (b *Store) recoverRecord(
	key []byte, timed bool, in policy.Ring, pos uint64, hd record.Header,
) []byte {
	r := b.Ring(in)
	if hd.Dead {
		r.DeadBytes += hd.Total()
		return key
	}
	key, _ = r.Read(key[:0], pos+uint64(hd.Size), hd.KeyLen)
	h := b.Shared.HashOf(key, hd.Kind)
	w := Write{Key: key, Hash: h, Kind: hd.Kind, Bytes: hd.Total(), Times: r.Times(pos, hd)}
	switch {
	case !r.IsWhole(pos, hd), hd.Kind&record.Spaced != 0 && hd.KeyLen < generation.Size,
		hd.Kind&record.Spaced != 0 && !b.Shared.Generations.InUse.Load(), // their file is missing
		!b.Large && int(h)&(b.Shared.Buckets-1) != int(b.Number),         // a chunk of another bucket
		b.Large && int(h>>BucketBits%LargeBuckets)+b.Shared.Buckets != int(b.Number),
		hd.Kind.Base() == record.Packed && !b.canUnpack(in, pos, hd),
		!timed && hd.Expiry != 0 && hd.Expiry != clock.Never:
		b.Shared.Recovered.Discarded.Add(1)
		fallthrough
	case b.Shared.Expired(hd.Expiry), b.IsForgotten(&w), b.Index.Empty(): // if there is no memory
		r.Kill(pos)
		r.DeadBytes += hd.Total()
		return key
	}
	b.count(r, &w)
	if hd.Deadlines != record.Timeless {
		b.noteExpiry(math.MaxUint32) // the record has room for an expiry, even if it has none
	}
	b.limitIdle(r, pos, hd)
	var f Found
	if b.findCounting(&f, key, h) {
		b.kill(f.Ring, f.Pos, f.Header, h, Unreported)
	}
	b.enter(&f, index.Slot(h, in, pos), h)
	return key
}

// canUnpack reports whether a packed record that is whole can be unpacked.
func (b *Store) canUnpack(in policy.Ring, pos uint64, hd record.Header) bool {
	var prefix [cold.MostPrefix]byte
	from := pos + uint64(hd.Size+hd.KeyLen)
	packed, _ := b.Ring(in).Read(prefix[:0], from, min(hd.ValueLen, len(prefix)))
	return in == policy.Cold && b.Shared.Compression.Recovers(packed, b.Shared.Bound())
}

// Restore does for a record of a snapshot what nearly always suffices: it appends the record as it
// is, with one deadline or none, and enters it into the index. It reports whether the entry is an
// additional one, and false for ok if it has done nothing because Set is needed. Of two records of
// a key, the later one stays if replace is set, else the one that is there.
func (b *Store) Restore(w *Write, rec []byte, replace bool) (added, ok bool) {
	r := &b.Rings[w.Ring]
	if len(rec) > b.Longest || b.Index.Empty() ||
		len(rec) > r.Left() && !b.extendTo(r, len(rec), w.Strict || !replace) {
		return false, false
	}
	b.MoveHomes()
	if w.Kind&record.Spaced != 0 && b.IsForgotten(w) {
		return false, true
	}
	slot := index.Slot(w.Hash, w.Ring, r.Head())
	if b.Touches {
		slot = index.WithFreq(slot, w.Freq)
	}
	if added = b.Index.Add(slot, w.Hash); !added {
		var f Found
		there := b.FindOrExpire(w, &f)
		if there && !replace {
			return false, true
		}
		if there {
			b.kill(f.Ring, f.Pos, f.Header, w.Hash, Unreported)
			f.Presence = Killed
		}
		b.enter(&f, slot, w.Hash)
		added = !there
	}
	r.AppendPlain(rec)
	w.Bytes, w.Times = len(rec), record.Times{Expiry: w.Last}
	if w.Last != 0 {
		w.Times.Deadlines = record.Timed
	}
	b.count(r, w)
	b.hint = hintUnknown
	if b.appended += len(rec); b.appended > 1<<b.Shared.Shift {
		b.sweep()
	}
	b.tendIndex()
	return added, true
}

// extendTo makes n bytes after the head of a ring writable, for Restore. As long as there are free
// chunks, a record goes to the ring that it was in, however much of the bucket that ring may have
// (but for I3). If strict is set, because dead bytes are to be reclaimed first, or not all records
// fit, the bucket does not exceed its quota.
func (b *Store) extendTo(r *ring.Ring, n int, strict bool) bool {
	more := b.chunksFor(n - r.Left())
	return !r.Borrows() && r.Held()+more <= min(b.withinReach(r), b.Shared.maxChunks) &&
		(!strict || b.held()+more<<b.Shared.Shift <= b.quota()) &&
		r.Extend(uint64(n), math.MaxInt) == nil
}
