package store

import (
	"slices"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/torn"
)

// passCost is the work that the release of a dead record counts as, in bytes.
const passCost = 16

// passTail passes the oldest record of a ring: it drops it, or moves it to the head of the same
// ring or of another one. A dropped record's slot stays in the index, stale: it is the ghost. An
// empty ring gives its chunk back.
func (b *Store) passTail(in policy.Ring, w *policy.Work) {
	r := b.Ring(in)
	if r.Size == 0 {
		r.Trim()
		return
	}
	hd, ok := r.Header(r.Tail)
	if !ok {
		b.dropRing(r)
		return
	}
	switch {
	case hd.Dead:
		r.ReleaseDead(hd)
	case hd.Expiry != 0 && b.Shared.Expired(hd.Expiry):
		b.dropAt(in, r.Tail, hd, Expired) // dead from now on
	case b.hasForgotten() && b.isForgotten(r, r.Tail, hd):
		b.dropAt(in, r.Tail, hd, Deleted) // as well
	default:
		b.passLive(in, r, &hd, w)
		return
	}
	if w.Compacts {
		w.Bytes -= passCost
	}
}

// dropRing drops all records of a ring, because the header at its tail is damaged. Without its
// length, only the index has the places of the live records behind it. The damaged record itself
// stays in the counts of its namespace.
func (b *Store) dropRing(r *ring.Ring) {
	b.Corruptions.Add(1)
	var kept [BucketCount]int64 // keys of the other ring, as in Shared.LargeKeys
	b.Index.Each(func(slot, _ uint64) {
		in, pos := b.Ring(index.Ring(slot)), index.Pos(slot)
		hd, ok := in.Header(pos)
		if !ok || hd.Dead || !in.Live(slot) {
			return
		}
		if in != r {
			h := b.largeHash(in, pos, &hd)
			kept[h&(BucketCount-1)] += LargeKey(h)
		} else if g, spaced := b.generationAt(r, pos, hd); spaced {
			b.Shared.Generations.Count(g, -1, -hd.Total())
		}
	})
	r.Reset()
	if !b.Large {
		return
	}
	at := (int(b.Number) - b.Shared.Buckets) * largeKeyBits
	for i, n := range kept { // by one Add each: no count is too low meanwhile
		c := &b.Shared.LargeKeys[i]
		c.Add(n - c.Load()>>at&(1<<largeKeyBits-1)<<at)
	}
}

// passLive is passTail of a live record of ring r. The first rule that applies decides:
//
//  1. A record of the queue, or one that is too long for the bucket by now, is dropped.
//  2. With FIFO, so is any other, without a look at the index, if there is nothing to compact.
//  3. The entry that the write is about stays while the work lasts (about).
//  4. While a ring is compacted (Work.Compacts), all stay.
//  5. In a ring that is worth compacting, what the policy would drop stays.
//  6. In the cold ring, an entry that was read there stays while the work lasts.
//  7. The policy decides. What it drops may go to the cold part instead.
func (b *Store) passLive(in policy.Ring, r *ring.Ring, hd *record.Header, w *policy.Work) {
	if in == policy.Queue || hd.Total() > b.Longest || in == policy.Main &&
		b.policy.Kind == policy.FIFO && !w.Compacts && !r.WorthCompacting() && !b.cold.on {
		b.dropTail(in, r, hd, Evicted)
		return
	}
	p, ok, own := b.tailSlot(in, r, hd)
	if !ok {
		b.Corruptions.Add(1)
		b.dropTail(in, r, hd, Unreported)
		return
	}
	if own && w.Spend(hd.Total()) {
		b.rotate(in, p, *hd)
		return
	}
	switch b.judgeTail(in, r, &p, hd, w) {
	case policy.Promote:
		b.promote(p, hd, w)
	case policy.Reinsert:
		b.rotate(in, p, *hd)
	default:
		if !b.cold.on || in == policy.Cold || !b.demote(in, p, *hd) {
			b.dropTail(in, r, hd, Evicted)
		}
	}
}

// judgeTail decides about the live record at the tail of ring r. A ring that is worth compacting
// keeps its live records.
func (b *Store) judgeTail(
	in policy.Ring, r *ring.Ring, p *index.Place, hd *record.Header, w *policy.Work,
) policy.Verdict {
	n, freq := hd.Total(), index.Freq(p.Slot)
	if w.Compacts {
		w.Records, w.Bytes = w.Records-1, w.Bytes-n
		if w.Join && in == policy.Small {
			return policy.Promote
		}
		return policy.Reinsert
	}
	if in == policy.Small {
		verdict := b.policy.SmallTail(freq, n, w)
		if verdict == policy.Drop && r.WorthCompacting() && w.Spend(n) {
			return policy.Reinsert
		}
		if index.IsMarked(p.Slot) {
			p.Slot = index.WithoutMark(p.Slot)
			if verdict == policy.Drop { // the key had a ghost, and gets another one
				p.Slot = index.WithPast(p.Slot)
				b.Index.Store(*p, p.Slot)
			}
		}
		return verdict
	}
	if in == policy.Cold && index.WasRead(p.Slot) && w.Spend(n) {
		p.Slot = index.WithoutRead(p.Slot)
		return policy.Reinsert
	}
	if r.WorthCompacting() && w.Spend(n) {
		return policy.Reinsert
	}
	if in == policy.Cold {
		return policy.Drop
	}
	onProbation := index.IsMarked(p.Slot)
	if onProbation {
		b.policy.Judge(freq > 0)
		p.Slot = index.WithoutMark(p.Slot)
	}
	verdict := b.policy.MainTail(freq, n, w)
	if verdict == policy.Reinsert {
		p.Slot = index.Lower(p.Slot)
		b.Reinsertions++
	} else if onProbation {
		b.Index.Store(*p, p.Slot) // nobody has found the ghost yet
	}
	return verdict
}

// tailSlot finds the slot of the live record at the tail of a ring (I7). It reports own if that is
// the entry of the write under way.
func (b *Store) tailSlot(
	in policy.Ring, r *ring.Ring, hd *record.Header,
) (p index.Place, ok, own bool) {
	v := &b.victim
	if !v.known || v.pos != r.Tail || v.ring != in {
		v.hash = b.keyHash(r, r.Tail, *hd)
	}
	v.known = false
	p, ok = b.Index.Find(v.hash, in, r.Tail)
	return p, ok, v.hash == b.about
}

// nextVictim is the record that is at a tail next, and its hash.
type nextVictim struct {
	known bool
	ring  policy.Ring
	pos   uint64
	hash  uint64
}

// prepare prefetches what the bucket's next Set will touch: by then, some hundred Sets of other
// buckets later, the cache lines have arrived.
func (b *Store) prepare(to policy.Ring) {
	r := &b.Rings[to]
	r.PrefetchHead()
	if b.cold.begun {
		b.prefetchCold()
	}
	if to == policy.Main || !b.policy.Filled || r.Size == 0 {
		return
	}
	hd, ok := r.Header(r.Tail)
	if !ok || hd.Dead {
		return
	}
	hash := b.keyHash(r, r.Tail, hd)
	b.victim = nextVictim{known: true, ring: to, pos: r.Tail, hash: hash}
	b.Index.Prefetch(hash, 1)
}

// dropTail drops the live record at the tail of a ring: it is evicted, or, where why is Unreported,
// has no slot because its key is damaged.
func (b *Store) dropTail(in policy.Ring, r *ring.Ring, hd *record.Header, why Reason) {
	if b.Shared.Notifies {
		b.keepRemoved(r, r.Tail, *hd, why)
	}
	b.uncount(r, r.Tail, hd, b.largeHash(r, r.Tail, hd))
	r.Release(uint64(hd.Total()))
	if in < policy.Queue {
		b.policy.Dropped(in)
	}
	if why == Evicted {
		b.countEvicted(hd)
	}
}

// largeHash returns the hash of the key of the record at pos, if this is a large
// bucket; a small one does not count its keys and saves the effort.
func (b *Store) largeHash(r *ring.Ring, pos uint64, hd *record.Header) uint64 {
	if !b.Large {
		return 0
	}
	return b.keyHash(r, pos, *hd)
}

// countEvicted counts an entry that was evicted.
func (b *Store) countEvicted(hd *record.Header) {
	b.Evicted++
	b.EvictedBytes += uint64(hd.Total())
}

// promote moves the record at the tail of small to the head of main. Its frequency begins anew. If
// main would have to drop others for it, it stays in small as long as that is worth compacting. If
// main has no room at all, it stays in small while its reads and the work last.
func (b *Store) promote(p index.Place, hd *record.Header, w *policy.Work) {
	n := hd.Total()
	small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]
	limit := main.Held()
	fits, stays := main.Fits(n, limit), w.Compacts
	if !w.Compacts {
		if has := b.limitsFor(n).main; b.policy.Filled || !fits {
			limit = has
		} else {
			limit = max(limit, has)
		}
		stays = !main.Fits(n, limit) && small.WorthCompacting() && w.Spend(n)
		fits = n <= limit<<b.Shared.Shift && !stays
	}
	if fits {
		b.passFor(policy.Main, n, limit, w)
		fits = main.Extend(uint64(n), limit) == nil
	}
	if !fits {
		switch {
		case stays:
			b.rotate(policy.Small, p, *hd)
		case index.Freq(p.Slot) > 0 && w.Spend(n):
			p.Slot = index.Lower(p.Slot)
			b.rotate(policy.Small, p, *hd)
		default:
			b.dropTail(policy.Small, small, hd, Evicted)
		}
		return
	}
	slot := p.Slot
	if !w.Compacts {
		if slot = index.WithFreq(slot, 0); index.Freq(p.Slot) == 1 {
			slot = index.WithMark(slot)
		}
	}
	b.move(policy.Small, policy.Main, p, slot, *hd)
	b.Promotions++
}

// rotate moves the record at the tail of a ring, whose slot is at p, to its head.
func (b *Store) rotate(in policy.Ring, p index.Place, hd record.Header) {
	r, n := b.Ring(in), hd.Total()
	limit := r.Held()
	if r.Left() < n && in < policy.Queue {
		// A head that borrows the tail's chunk makes the ring a full one.
		limit = max(limit, min(b.limits().of(in), limit+b.spare()))
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

// rotateThrough is rotate by way of a buffer, which it returns. A ring without room for a second
// copy of the record needs it: the new place overlaps the old one.
func (b *Store) rotateThrough(
	buf []byte, in policy.Ring, p index.Place, hd record.Header,
) []byte {
	r := b.Ring(in)
	n := hd.Total()
	buf, _ = r.Read(buf, r.Tail, n)
	hash, held := b.largeHash(r, r.Tail, &hd), r.Held()
	r.Release(uint64(n))
	if err := r.Extend(uint64(n), held); err != nil {
		// The chunk that the tail has left could not be taken again.
		b.uncountGone(r, &hd, hash)
		if hd.Kind&record.Spaced != 0 {
			b.Shared.Generations.Count(generation.Of(buf[hd.Size:]), -1, -n)
		}
		b.countEvicted(&hd)
		if b.Shared.Notifies && hd.Kind.IsUsers() {
			b.keepRemoval(slices.Clone(buf[hd.Size:]), hd, Evicted)
		}
		return buf
	}
	pos := r.Append(buf, nil, nil)
	b.follow(p, index.WithPos(p.Slot, in, pos), hd, n)
	return buf
}

// move writes the record at the tail of ring in again at the head of ring to, which has room for
// it. Its slot, at p, becomes slot. If the process dies in between, the file has the record twice,
// and not less than once.
func (b *Store) move(in, to policy.Ring, p index.Place, slot uint64, hd record.Header) {
	from, r := b.Ring(in), b.Ring(to)
	pos := r.CopyFrom(from, from.Tail, hd.Total())
	b.moved(p, index.WithPos(slot, to, pos), from, r, hd, hd.Total())
}

// moved updates the index and the counts for the record at the tail of a ring, which was written
// again, to another ring or the same, with n bytes. Its slot, at p, becomes slot.
func (b *Store) moved(
	p index.Place, slot uint64, from, to *ring.Ring, hd record.Header, n int,
) {
	if n != hd.Total() {
		if g, ok := b.generationAt(from, from.Tail, hd); ok {
			b.Shared.Generations.Count(g, 0, n-hd.Total())
		}
	}
	b.follow(p, slot, hd, n)
	from.Release(uint64(hd.Total()))
	from.Count(-1, hd.Total(), hd.Deadlines != record.Timeless)
	to.Count(1, n, hd.Deadlines != record.Timeless)
}

// follow makes the index refer to a record that was written again with n bytes.
func (b *Store) follow(p index.Place, slot uint64, hd record.Header, n int) {
	torn.Delay()
	b.Index.Store(p, slot)
	if hd.Expiry != 0 {
		b.noteExpiry(hd.Expiry)
	}
	b.appended += n
	b.MovedBytes += uint64(n)
}
