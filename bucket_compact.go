package ringcache

import (
	"slices"

	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// How a bucket gets back the room of dead records before it evicts live ones.
//
// A record that was replaced, deleted or invalidated, or has expired, keeps its bytes until
// the tail passes it. A ring with enough dead bytes is compacted: live records move from its
// tail to its head, in their order, until a dead one comes to the tail. This is the cleaning
// of a log-structured file system (Rosenblum, Ousterhout: The Design and Implementation of a
// Log-Structured File System, SOSP 1991) in first-in first-out order.

const (
	// Compaction begins a little before a ring is full, so that dead records that lie behind many
	// live ones are reached in time: when room for 1/aheadShare of what the bucket holds is left. A
	// Set of n bytes then moves up to aheadShare*n bytes.
	aheadShare = 64

	// A Set that has no room moves up to so many records, and bytes or sixteen times its own
	// size. Then the policy evicts. That happens only where dead records appear in a full
	// ring, all of them behind so many live ones.
	compactRecords = 1024
	compactBytes   = 256 << 10

	// passCost is what the release of a dead record counts, in bytes.
	passCost = 16
)

// compactLocked compacts rings until ring to has room for n bytes more, and some to spare, and no
// ring holds more than it may, or no ring is worth it, or the work of one Set is done. It evicts
// nothing that is live. It reports whether the ring has no room though there is work left.
func (b *bucket) compactLocked(to policy.Ring, n int) (behind bool) {
	r, need := &b.rings[to], b.chunksFor(n)
	work := b.boundWork(policy.Work{Records: compactRecords, Bytes: max(compactBytes, 16*n)})
	least := work.Bytes - aheadShare*n // beyond that it moves only what it must
	held, limit, over, l := -1, 0, false, limits{}
	for {
		in, ok := b.deadestLocked()
		if !ok {
			return false
		}
		if now := b.chunksLocked(); now != held { // limits depend on it
			l = b.limitLocked()
			held, limit, over = now, max(l.of(to), need), b.isOverLocked(l)
		}
		if r.Fits(n, limit) && !over && (!b.isNearlyFullLocked(l) || work.Bytes < least) {
			return false
		}
		if !b.compactTailLocked(in, &work) {
			return !r.Fits(n, limit) || over
		}
	}
}

// isIdle reports whether the bucket can have so many chunks, and 1/part of all memory is left.
func (b *bucket) isIdle(chunks, part int) bool {
	return b.shared.idle(part) > chunks<<b.shared.shift &&
		b.chunksLocked()+chunks < b.shared.maxChunks // (I3)
}

// deadestLocked returns the ring that is most worth compacting, if there is one.
func (b *bucket) deadestLocked() (in policy.Ring, ok bool) {
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	switch {
	case !small.WorthCompacting():
		return policy.Main, main.WorthCompacting()
	case !main.WorthCompacting():
		return policy.Small, true
	case uint64(small.DeadBytes)*main.Size > uint64(main.DeadBytes)*small.Size:
		return policy.Small, true
	}
	return policy.Main, true
}

// compactTailLocked passes the record at the tail of a ring: a live one moves to the head. It
// reports false if there is no work left for that.
func (b *bucket) compactTailLocked(in policy.Ring, w *policy.Work) bool {
	r := &b.rings[in]
	hd, ok := r.Header(r.Tail)
	gone := hd.Dead || b.shared.Expired(hd.Expiry) || b.isForgottenLocked(r, r.Tail, hd)
	if !ok || gone || hd.Total() > b.longest {
		if w.Bytes <= 0 {
			return false
		}
		w.Bytes -= passCost
		b.evictTailLocked(in, w)
		return true
	}
	if !w.Begin(hd.Total()) {
		return false
	}
	p, ok := b.tailSlotLocked(in, hd)
	if !ok {
		b.corruptions.Add(1)
		b.dropTailLocked(in, hd)
		return true
	}
	b.rotateLocked(in, p, hd)
	return true
}

// rotateLocked moves the record at the tail of a ring, whose slot is at p, to its head.
func (b *bucket) rotateLocked(in policy.Ring, p index.Place, hd record.Header) {
	r, n := b.ring(in), hd.Total()
	limit := r.Held()
	if r.Left() < n && !in.IsCold() {
		// A head that borrows the tail's chunk makes the ring a full one.
		limit = max(limit, min(b.limitLocked().of(in), limit+b.spareLocked()))
	}
	if r.Fits(n, limit) && r.Extend(uint64(n), limit) == nil {
		// If the process dies in between, the file has it twice: none is lost.
		pos := r.CopyFrom(r, r.Tail, n)
		b.followLocked(p, index.WithPos(p.Slot, in, pos), hd, n)
		r.Release(uint64(n))
		return
	}
	var short [256]byte
	if n <= len(short) {
		b.rotateThroughLocked(short[:0], in, p, hd)
		return
	}
	long := scratches.Get().(*scratch)
	long.buf = b.rotateThroughLocked(long.buf[:0], in, p, hd)
	long.release()
}

// rotateThroughLocked is rotateLocked by way of a buffer, which it returns: in a ring that is
// full to the last byte, tail and head lie in the same bytes.
func (b *bucket) rotateThroughLocked(
	buf []byte, in policy.Ring, p index.Place, hd record.Header,
) []byte {
	r := b.ring(in)
	n := hd.Total()
	buf, _ = r.Read(buf, r.Tail, n)
	hash, held := b.largeHash(r, r.Tail, hd), r.Held()
	b.cold.count(r, r.Tail, hd, -1)
	r.Release(uint64(n))
	if err := r.Extend(uint64(n), held); err != nil {
		// The chunk that the tail left was not to be had again.
		b.uncountGoneLocked(r, hd, hash)
		b.countKeyLocked(buf[hd.Size:][:hd.KeyLen], -1, -n)
		b.countEvicted(in, hd)
		if b.shared.onRemove != nil && hd.Kind.IsUsers() {
			b.keepRemovalLocked(slices.Clone(buf[hd.Size:]), hd, RemovedEvicted)
		}
		return buf
	}
	pos := r.AppendRecord(buf)
	b.cold.count(r, pos, hd, 1)
	b.followLocked(p, index.WithPos(p.Slot, in, pos), hd, n)
	return buf
}

// movedLocked has index and counts follow a record from the tail of one ring to another, where
// it was written with n bytes. Its slot, at p, becomes slot.
func (b *bucket) movedLocked(
	p index.Place, slot uint64, from, to *ring.Ring, hd record.Header, n int,
) {
	if g, ok := b.generationAt(from, from.Tail, hd); ok && n != hd.Total() {
		b.countInLocked(g, 0, n-hd.Total())
	}
	b.followLocked(p, slot, hd, n)
	from.Release(uint64(hd.Total()))
	from.Count(-1, hd.Total(), hd.HasExpiry)
	to.Count(1, n, hd.HasExpiry)
}

// followLocked has the index follow a record that was written again with n bytes.
func (b *bucket) followLocked(p index.Place, slot uint64, hd record.Header, n int) {
	delay.Point()
	b.index.Store(p, slot)
	b.noteExpiry(hd.Expiry)
	b.appended += n
	b.movedBytes += uint64(n)
}
