package store

import (
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// How a bucket makes room: it asks the policy what becomes of the records at
// the tails of its rings, and moves or drops them. bucket_limit.go says how much
// a ring may hold.

// nextVictim is the record that is at a tail next, and its hash.
type nextVictim struct {
	known bool
	ring  policy.Ring
	pos   uint64
	hash  uint64
}

// A Set evicts so many records of the mean size beyond what it needs itself, and so many
// bytes at least and at most, when a ring has to become smaller. The learner makes that
// happen all the time: with more, it is the Sets at p99 that pay.
const (
	shrinkRecords = 4
	shrinkLeast   = 512
	ShrinkStep    = 4 << 10
)

// mayShrink reports whether a Set that has evicted so many bytes may evict more than
// it needs itself: not while there are dead bytes, which the next Sets find.
func (b *Store) mayShrink(bytes uint64, w *policy.Work) bool {
	if _, worth := b.deadest(); worth {
		return false
	}
	step := min(max(shrinkRecords*b.mean, shrinkLeast), ShrinkStep)
	return bytes < uint64(step) && (w.Records > 0 || b.policy.Dropping())
}

// setWork returns the moves that the policy may make for the Set of a record of n bytes.
func (b *Store) setWork(n int) policy.Work { return b.boundWork(policy.SetWork(n)) }

// boundWork cuts work so that sweep can keep up with the positions that it uses (I5).
func (b *Store) boundWork(w policy.Work) policy.Work {
	w.Bytes = min(w.Bytes, 1<<min(b.Shared.PosBits-4, 30))
	return w
}

// ownRoom gives a ring room for a new record of n bytes, and returns how
// many chunks it may hold.
func (b *Store) ownRoom(to policy.Ring, n int, l limits) int {
	r := &b.Rings[to]
	need := b.chunksFor(n)
	has, over := max(l.of(to), need), b.isOver(l)
	full := over || !r.Fits(n, has) && !(to == policy.Small && b.hasFree(l))
	if full || b.isNearlyFull(l) {
		if full {
			b.search()
		}
		behind := b.compact(to, n)
		more := b.chunksFor(int(r.Size)+n) - r.Held()
		if behind && b.isIdle(more, behindIdle) {
			return r.Held() + max(more, 0) // the next Sets go on compacting
		}
		l = b.limit()
	}
	limit := max(l.of(to), need)
	if b.Cold.On {
		b.giveCold(func() bool { return b.withinReach(r) < need })
	}
	if limit > b.withinReach(r) || b.isOver(l) {
		b.takeFrom(1-to, l, r, limit, need)
		limit = max(min(limit, b.withinReach(r)), need)
	}
	b.reserved = reservation{to, limit}
	work := b.setWork(n)
	b.makeRoom(to, n, limit, &work)
	b.reserved = reservation{}
	return limit
}

// makeRoom gives a ring of limit chunks room for n more bytes. A ring
// that holds more chunks than that shrinks bit by bit.
func (b *Store) makeRoom(in policy.Ring, n, limit int, w *policy.Work) {
	r := &b.Rings[in]
	soft := uint64(limit) << b.Shared.Shift
	from := r.Size
	for {
		// Each step may take a chunk away, and room with it.
		must := !r.Fits(n, limit)
		should := r.Size > 0 && r.Size+uint64(n) > soft && b.mayShrink(from-r.Size, w)
		if !must && !should {
			return
		}
		b.EvictTail(in, w)
	}
}

// takeFrom has a ring give up chunks, that another may hold limit of, and
// needs some of for the record that is to come: what the giver holds above its
// own limit bit by bit, what is needed at once.
func (b *Store) takeFrom(giver policy.Ring, l limits, r *ring.Ring, limit, need int) {
	g, keep := &b.Rings[giver], l.of(giver)
	from, work := g.Size, b.setWork(need<<b.Shared.Shift)
	for g.Held() > 0 {
		reach := b.withinReach(r)
		must := reach < need
		over := (reach < limit || b.isOver(l)) && g.Held() > keep
		should := over && b.mayShrink(from-g.Size, &work)
		if !must && !should {
			return
		}
		if g.Size == 0 {
			g.Trim()
			return
		}
		b.EvictTail(giver, &work)
	}
}

// admit returns the ring that a record goes to: one that is replaced or restored keeps its
// standing, a new one is for the policy to decide.
func (b *Store) admit(f *Found, replace bool, w *Write, l limits) policy.Ring {
	small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]
	switch {
	case replace:
		return min(index.Ring(f.Slot), policy.Main) // of the cold part, to main
	case b.policy.Kind == policy.FIFO || w.restored && w.ring == policy.Main:
		return policy.Main
	case w.restored:
		return b.policy.Admit(false, small.Fits(w.Bytes, l.small), main.Fits(w.Bytes, l.main))
	case f.Ghost:
		b.GhostHits++
		if !index.OnTrial(f.Slot) { // else a lookup has found it before
			b.policy.GhostFound(origin(f.Slot), 1, b.Ghosts(), b.IsNear(f.Slot))
		}
	}
	return b.policy.Admit(f.Ghost, small.Fits(w.Bytes, l.small), main.Fits(w.Bytes, l.main))
}

// Ghosts returns how many ghosts there are of each ring: a live entry has one slot
// (I7), and all others are stale (I9).
func (b *Store) Ghosts() [RingCount]int {
	used := b.Index.Used()
	var n [RingCount]int
	for i := range n {
		n[i] = used[i] - b.Rings[i].Entries
	}
	b.Cold.addGhosts(&n, used[policy.Queue])
	return n
}

// EvictTail takes the oldest record from the tail of a ring: for good,
// or to the head of main. A dropped record's slot stays in the index, stale: it
// is the ghost.
func (b *Store) EvictTail(in policy.Ring, w *policy.Work) {
	r := b.Ring(in)
	hd, ok := r.Header(r.Tail)
	if !ok {
		// Without its length no record behind it can be found either.
		b.Corruptions.Add(1)
		r.Reset()
		if in == policy.Cold {
			b.Cold.Uses = Uses{}
		}
		return
	}
	if hd.Dead {
		r.ReleaseDead(hd)
		return
	}
	if b.Shared.Expired(hd.Expiry) {
		b.expireAt(in, r.Tail, hd)
		return // dead from now on
	}
	if b.isForgotten(r, r.Tail, hd) {
		b.forgetAt(in, r.Tail, hd)
		return // as well
	}
	needsNoSlot := b.policy.Kind == policy.FIFO && !r.WorthCompacting() && !b.Cold.On
	if needsNoSlot || in.IsCold() || hd.Total() > b.Longest {
		b.dropTail(in, hd)
		return
	}
	p, ok := b.tailSlot(in, hd)
	if !ok {
		b.Corruptions.Add(1)
		b.dropTail(in, hd)
		return
	}
	switch b.judgeTail(in, &p, hd, w) {
	case policy.Promote:
		b.promote(p, hd, w)
	case policy.Reinsert:
		b.rotate(in, p, hd)
	default:
		if !b.Demote(in, p, hd) {
			b.dropTail(in, hd)
		}
	}
}

// judgeTail returns what becomes of the live record at the tail of a ring.
// A ring that is worth compacting keeps what is live.
func (b *Store) judgeTail(
	in policy.Ring, p *index.Place, hd record.Header, w *policy.Work,
) policy.Verdict {
	r, n, freq := &b.Rings[in], hd.Total(), index.Freq(p.Slot)
	if in == policy.Small {
		verdict := b.policy.SmallTail(freq, n, w)
		if verdict == policy.Drop && r.WorthCompacting() && w.Spend(n) {
			return policy.Reinsert
		}
		return verdict
	}
	if r.WorthCompacting() && w.Spend(n) {
		return policy.Reinsert
	}
	trial := index.OnTrial(p.Slot)
	if trial {
		b.policy.Judge(freq > 0)
		p.Slot = index.WithoutTrial(p.Slot)
	}
	verdict := b.policy.MainTail(freq, n, w)
	if verdict == policy.Reinsert {
		p.Slot = index.Lower(p.Slot)
		b.Reinsertions++
	} else if trial {
		b.Index.Store(*p, p.Slot) // nobody has found the ghost yet
	}
	return verdict
}

// tailSlot finds the slot of the live record at the tail of a ring (I7).
func (b *Store) tailSlot(in policy.Ring, hd record.Header) (index.Place, bool) {
	r := b.Ring(in)
	next := b.victim
	b.victim.known = false
	if !next.known || next.pos != r.Tail || next.ring != in {
		next.hash = b.KeyHash(r, r.Tail, hd)
	}
	return b.Index.Find(next.hash, in, r.Tail)
}

// dropTail evicts the live record at the tail of a ring.
func (b *Store) dropTail(in policy.Ring, hd record.Header) {
	r := b.Ring(in)
	if b.Shared.Notifies {
		b.keepRemoved(r, r.Tail, hd, Evicted)
	}
	b.uncount(r, r.Tail, hd, b.largeHash(r, r.Tail, hd))
	r.Release(uint64(hd.Total()))
	if !in.IsCold() {
		b.policy.Dropped(in)
	}
	b.CountEvicted(in, hd)
}

// largeHash returns the hash of the key of the record at pos, if this is a large
// bucket; a small one does not count its keys and saves the effort.
func (b *Store) largeHash(r *ring.Ring, pos uint64, hd record.Header) uint64 {
	if !b.Large {
		return 0
	}
	return b.KeyHash(r, pos, hd)
}

func (b *Store) CountEvicted(in policy.Ring, hd record.Header) {
	b.EvictedBytes += uint64(hd.Total())
	switch in {
	case policy.Small:
		b.EvictedSmall++
	case policy.Main:
		b.EvictedMain++
	default:
		b.EvictedCold++
	}
}

// promote moves the record at the tail of small to the head of main. Its
// frequency begins anew.
func (b *Store) promote(p index.Place, hd record.Header, w *policy.Work) {
	n := hd.Total()
	small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]
	limit := b.limit().main
	if n > limit<<b.Shared.Shift {
		b.dropTail(policy.Small, hd)
		return
	}
	b.makeRoom(policy.Main, n, limit, w)
	if err := main.Extend(uint64(n), limit); err != nil {
		b.dropTail(policy.Small, hd)
		return
	}
	slot := index.WithoutFreq(p.Slot)
	if index.Freq(p.Slot) == 1 {
		slot = index.WithTrial(slot)
	}
	pos := main.CopyFrom(small, small.Tail, n)
	b.moved(p, index.WithPos(slot, policy.Main, pos), small, main, hd, n)
	b.Promotions++
}

// prepare prefetches what the bucket's next Set will touch: by then, some
// hundred Sets later, the lines have come.
func (b *Store) prepare(to policy.Ring) {
	r := &b.Rings[to]
	r.PrefetchHead()
	if b.Cold.Begun {
		b.prefetchCold()
	}
	if to == policy.Main || !b.policy.Full() || r.Size == 0 {
		return
	}
	hd, ok := r.Header(r.Tail)
	if !ok || hd.Dead {
		return
	}
	hash := b.KeyHash(r, r.Tail, hd)
	b.victim = nextVictim{known: true, ring: to, pos: r.Tail, hash: hash}
	b.Index.Prefetch(hash, 1)
}
