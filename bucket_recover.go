package ringcache

import (
	"math"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/pack"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/snapshot"
)

// How a bucket enters what its rings have brought from a file into its index, which is made
// anew. Each record is looked at, from the tails to the heads. One that fails its checksum
// was being written when the process died, and is as good as never written.

// inFile has the bucket, the nth of all, keep its records in file f.
func (b *bucket) inFile(f *ringfile.Store, n int) {
	b.form = record.Checked
	for in := range b.inUse() {
		l := f.Rings.Ledger(n, int(in))
		if f.IsNew {
			l.SetSpan(0, 0)
		}
		b.ring(in).InFile(l, b.shared.seed[0])
	}
}

// recover enters the records of the bucket's rings into its index, but if they are not timed,
// none that has an expiry.
func (b *bucket) recover(timed bool) {
	b.lock()
	defer b.unlock()
	rec := recovery{timed: timed}
	oldestFirst := []policy.Ring{policy.Cold, policy.Queue, policy.Main, policy.Small}
	for _, in := range oldestFirst {
		if in >= b.inUse() {
			continue
		}
		r := b.ring(in)
		for _, c := range r.Chunks() {
			b.shared.file.ReadAhead(c)
		}
		for pos := r.Tail; pos != r.Head(); {
			hd, ok := r.Header(pos)
			if !ok { // where the next record begins, nobody knows
				b.shared.recovered.discarded.Add(1)
				r.CutOff(pos)
				break
			}
			b.recoverRecordLocked(&rec, in, pos, hd)
			pos = (pos + uint64(hd.Total())) & r.Mask
		}
	}
	if b.cold.on {
		b.cold.begun = b.cold.held() > 0
	}
	n, bytes := b.liveLocked(), b.liveBytesLocked()
	b.shared.recovered.entries.Add(uint64(b.entriesLocked()))
	b.shared.recovered.bytes.Add(uint64(bytes))
	b.shared.arrive(arrival{n, bytes}, b.large)
	b.removals = nil // OnRemove is not told of what is removed here
	b.learnLocked()
}

// recovery is what the recovery of a bucket's records goes by.
type recovery struct {
	timed bool   // expiries mean something: the clock goes on from where it was
	key   []byte // a buffer
}

// recoverRecordLocked enters the record at pos of a ring, unless it is dead, torn or
// expired.
func (b *bucket) recoverRecordLocked(
	rec *recovery, in policy.Ring, pos uint64, hd record.Header,
) {
	r := b.ring(in)
	if hd.Dead {
		r.DeadBytes += hd.Total()
		return
	}
	if hd.HasExpiry {
		b.noteExpiry(math.MaxUint32) // there is one with room for an expiry
	}
	rec.key, _ = r.Read(rec.key[:0], pos+uint64(hd.Size), hd.KeyLen)
	key := rec.key
	h := b.shared.hash(key)
	r.Count(1, hd.Total(), hd.HasExpiry)
	if hd.Kind == record.Internal {
		b.internal++
	}
	if b.large {
		b.shared.largeKeysOf(h).Add(1)
	}
	b.noteExpiry(hd.Expiry)
	b.cold.count(r, pos, hd, 1)
	switch {
	case !r.IsWhole(pos), hd.Kind == record.Packed && !b.canUnpack(in, pos, hd):
		b.killLocked(r, pos, hd, h, unsaid)
		b.shared.recovered.discarded.Add(1)
	case !rec.timed && hd.Expiry != 0 && hd.Expiry != clock.Never:
		b.killLocked(r, pos, hd, h, unsaid)
		b.shared.recovered.discarded.Add(1)
	case b.shared.Expired(hd.Expiry):
		b.killLocked(r, pos, hd, h, unsaid)
	default:
		b.enterLocked(in, pos, hd.Kind, key, h)
		b.shared.recoveredKey(key, hd.Kind)
	}
}

// canUnpack reports whether a packed record that is whole can be unpacked.
func (b *bucket) canUnpack(in policy.Ring, pos uint64, hd record.Header) bool {
	if in != policy.Cold {
		return false
	}
	var prefix [pack.MostPrefix]byte
	from := pos + uint64(hd.Size+hd.KeyLen)
	packed, _ := b.ring(in).Read(prefix[:0], from, min(hd.ValueLen, len(prefix)))
	return b.shared.compression.recovers(packed)
}

// enterLocked enters the live record at pos of a ring into the index. There may be one of
// the same key if the process died while it moved the record: the older one goes.
func (b *bucket) enterLocked(
	in policy.Ring, pos uint64, kind record.Kind, key []byte, h uint64,
) {
	f := found{internal: kind == record.Internal}
	slot := index.Slot(h, in, pos)
	if b.findLocked(&f, key, h) {
		b.killLocked(f.ring, f.pos, f.Header, h, unsaid)
		b.index.Store(f.Place, slot)
		return
	}
	if b.index.Empty() || !b.index.Growing() && b.isCrowdedLocked() {
		// It was as large before, within the bound.
		_ = b.growIndexLocked(max(1, b.index.Pages()/growthPart))
	}
	b.moveHomesLocked()
	if b.index.Empty() { // no memory
		hd, _ := b.ring(in).Header(pos)
		b.killLocked(b.ring(in), pos, hd, h, unsaid)
		return
	}
	b.index.SetLatest(slot)
	if victim, forced := b.index.Insert(slot, index.Tag(h), b.windows()); forced {
		b.loseLocked(victim)
	}
}

// emptySmall moves what another policy has left in small to main.
func (b *bucket) emptySmall() {
	b.lock()
	defer b.unlock()
	small := &b.rings[policy.Small]
	for small.Size > 0 {
		hd, ok := small.Header(small.Tail)
		if !ok {
			small.Reset()
			break
		}
		p, there := b.index.Find(b.keyHash(small, small.Tail, hd), policy.Small, small.Tail)
		switch {
		case hd.Dead:
			small.ReleaseDead(hd)
		case !there:
			b.dropTailLocked(policy.Small, hd)
		default:
			work := b.setWork(hd.Total())
			b.promoteLocked(p, hd, &work)
		}
	}
	small.Trim()
	b.removals = nil // nor here
}

// placeRestoredLocked returns the ring that an entry of a rank goes to, where it has room
// for n bytes then, and how many chunks that may hold. One of the small ring goes where a
// new one would go.
func placeRestoredLocked(b *bucket, rank, n int) (to policy.Ring, limit int) {
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	if to = policy.Main; rank < snapshot.SmallRanks && b.policy.Kind != policy.FIFO {
		to = policy.Small
	}
	if b.rings[to].Left() >= n {
		return to, math.MaxInt // as nearly always: no chunk is taken
	}
	l := b.limitLocked()
	if to == policy.Small {
		to = b.policy.Admit(false, small.Fits(n, l.small), main.Fits(n, l.main))
	}
	return to, b.ownRoomLocked(to, n, l)
}
