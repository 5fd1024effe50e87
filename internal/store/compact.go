package store

import (
	"slices"

	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/scratch"
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

// compact compacts rings until ring to has room for n bytes more, and some to spare, and no
// ring holds more than it may, or no ring is worth it, or the work of one Set is done. It evicts
// nothing that is live. It reports whether the ring has no room though there is work left.
func (b *Store) compact(to policy.Ring, n int) (behind bool) {
	r, need := &b.Rings[to], b.chunksFor(n)
	work := b.boundWork(policy.Work{Records: compactRecords, Bytes: max(compactBytes, 16*n)})
	least := work.Bytes - aheadShare*n // beyond that it moves only what it must
	held, limit, over, l := -1, 0, false, limits{}
	for {
		in, ok := b.deadest()
		if !ok {
			return false
		}
		if now := b.Chunks(); now != held { // limits depend on it
			l = b.limit()
			held, limit, over = now, max(l.of(to), need), b.isOver(l)
		}
		if r.Fits(n, limit) && !over && (!b.isNearlyFull(l) || work.Bytes < least) {
			return false
		}
		if !b.compactTail(in, &work) {
			return !r.Fits(n, limit) || over
		}
	}
}

// isIdle reports whether the bucket can have so many chunks, and 1/part of all memory is left.
func (b *Store) isIdle(chunks, part int) bool {
	return b.Shared.idle(part) > chunks<<b.Shared.Shift &&
		b.Chunks()+chunks < b.Shared.maxChunks // (I3)
}

// deadest returns the ring that is most worth compacting, if there is one.
func (b *Store) deadest() (in policy.Ring, ok bool) {
	small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]
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

// compactTail passes the record at the tail of a ring: a live one moves to the head. It
// reports false if there is no work left for that.
func (b *Store) compactTail(in policy.Ring, w *policy.Work) bool {
	r := &b.Rings[in]
	hd, ok := r.Header(r.Tail)
	gone := hd.Dead || b.Shared.Expired(hd.Expiry) || b.isForgotten(r, r.Tail, hd)
	if !ok || gone || hd.Total() > b.Longest {
		if w.Bytes <= 0 {
			return false
		}
		w.Bytes -= passCost
		b.EvictTail(in, w)
		return true
	}
	if !w.Begin(hd.Total()) {
		return false
	}
	p, ok := b.tailSlot(in, hd)
	if !ok {
		b.Corruptions.Add(1)
		b.dropTail(in, hd)
		return true
	}
	b.rotate(in, p, hd)
	return true
}

// rotate moves the record at the tail of a ring, whose slot is at p, to its head.
func (b *Store) rotate(in policy.Ring, p index.Place, hd record.Header) {
	r, n := b.Ring(in), hd.Total()
	limit := r.Held()
	if r.Left() < n && !in.IsCold() {
		// A head that borrows the tail's chunk makes the ring a full one.
		limit = max(limit, min(b.limit().of(in), limit+b.spare()))
	}
	if r.Fits(n, limit) && r.Extend(uint64(n), limit) == nil {
		b.move(in, in, p, p.Slot, hd)
		return
	}
	var short [256]byte
	if n <= len(short) {
		b.rotateThrough(short[:0], in, p, hd)
		return
	}
	long := scratch.Get()
	long.Bytes = b.rotateThrough(long.Bytes[:0], in, p, hd)
	long.Release()
}

// rotateThrough is rotate by way of a buffer, which it returns: in a ring that is
// full to the last byte, tail and head lie in the same bytes.
func (b *Store) rotateThrough(
	buf []byte, in policy.Ring, p index.Place, hd record.Header,
) []byte {
	r := b.Ring(in)
	n := hd.Total()
	buf, _ = r.Read(buf, r.Tail, n)
	hash, held := b.largeHash(r, r.Tail, hd), r.Held()
	b.Cold.count(r, r.Tail, hd, -1)
	r.Release(uint64(n))
	if err := r.Extend(uint64(n), held); err != nil {
		// The chunk that the tail left was not to be had again.
		b.uncountGone(r, hd, hash)
		b.countKey(buf[hd.Size:][:hd.KeyLen], -1, -n)
		b.CountEvicted(in, hd)
		if b.Shared.Notifies && hd.Kind.IsUsers() {
			b.keepRemoval(slices.Clone(buf[hd.Size:]), hd, Evicted)
		}
		return buf
	}
	pos := r.AppendRecord(buf)
	b.Cold.count(r, pos, hd, 1)
	b.follow(p, index.WithPos(p.Slot, in, pos), hd, n)
	return buf
}

// move writes the record at the tail of ring in once more at the head of ring to, which has room for
// it. Its slot, at p, becomes slot. If the process dies in between, the file has the record twice:
// none is lost.
func (b *Store) move(in, to policy.Ring, p index.Place, slot uint64, hd record.Header) {
	from, r := b.Ring(in), b.Ring(to)
	pos := r.CopyFrom(from, from.Tail, hd.Total())
	b.moved(p, index.WithPos(slot, to, pos), from, r, hd, hd.Total())
}

// moved has index and counts follow the record at the tail of a ring, which was written to another
// one, or to the same, with n bytes. Its slot, at p, becomes slot.
func (b *Store) moved(
	p index.Place, slot uint64, from, to *ring.Ring, hd record.Header, n int,
) {
	if n != hd.Total() {
		if g, ok := b.generationAt(from, from.Tail, hd); ok {
			b.countIn(g, 0, n-hd.Total())
		}
	}
	b.follow(p, slot, hd, n)
	from.Release(uint64(hd.Total()))
	from.Count(-1, hd.Total(), hd.HasExpiry)
	to.Count(1, n, hd.HasExpiry)
}

// follow has the index follow a record that was written again with n bytes.
func (b *Store) follow(p index.Place, slot uint64, hd record.Header, n int) {
	delay.Point()
	b.Index.Store(p, slot)
	b.noteExpiry(hd.Expiry)
	b.appended += n
	b.MovedBytes += uint64(n)
}
