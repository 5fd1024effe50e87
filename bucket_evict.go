package ringcache

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
	shrinkStep    = 4 << 10
)

// mayShrinkLocked reports whether a Set that has evicted so many bytes may evict more than
// it needs itself: not while there are dead bytes, which the next Sets find.
func (b *bucket) mayShrinkLocked(bytes uint64, w *policy.Work) bool {
	if _, worth := b.deadestLocked(); worth {
		return false
	}
	step := min(max(shrinkRecords*b.mean, shrinkLeast), shrinkStep)
	return bytes < uint64(step) && (w.Records > 0 || b.policy.Dropping())
}

// setWork returns the moves that the policy may make for the Set of a record of n bytes.
func (b *bucket) setWork(n int) policy.Work { return b.boundWork(policy.SetWork(n)) }

// boundWork cuts work so that sweep can keep up with the positions that it uses (I5).
func (b *bucket) boundWork(w policy.Work) policy.Work {
	w.Bytes = min(w.Bytes, 1<<min(b.shared.posBits-4, 30))
	return w
}

// ownRoomLocked gives a ring room for a new record of n bytes, and returns how
// many chunks it may hold.
func (b *bucket) ownRoomLocked(to policy.Ring, n int, l limits) int {
	r := &b.rings[to]
	need := b.chunksFor(n)
	has, over := max(l.of(to), need), b.isOverLocked(l)
	full := over || !r.Fits(n, has) && !(to == policy.Small && b.hasFreeLocked(l))
	if full || b.isNearlyFullLocked(l) {
		if full {
			b.searchLocked()
		}
		behind := b.compactLocked(to, n)
		more := b.chunksFor(int(r.Size)+n) - r.Held()
		if behind && b.isIdle(more, behindIdle) {
			return r.Held() + max(more, 0) // the next Sets go on compacting
		}
		l = b.limitLocked()
	}
	limit := max(l.of(to), need)
	if b.cold.on {
		b.giveColdLocked(func() bool { return b.withinReachLocked(r) < need })
	}
	if limit > b.withinReachLocked(r) || b.isOverLocked(l) {
		b.takeFromLocked(1-to, l, r, limit, need)
		limit = max(min(limit, b.withinReachLocked(r)), need)
	}
	b.reserved = reservation{to, limit}
	work := b.setWork(n)
	b.makeRoomLocked(to, n, limit, &work)
	b.reserved = reservation{}
	return limit
}

// makeRoomLocked gives a ring of limit chunks room for n more bytes. A ring
// that holds more chunks than that shrinks bit by bit.
func (b *bucket) makeRoomLocked(in policy.Ring, n, limit int, w *policy.Work) {
	r := &b.rings[in]
	soft := uint64(limit) << b.shared.shift
	from := r.Size
	for {
		// Each step may take a chunk away, and room with it.
		must := !r.Fits(n, limit)
		should := r.Size > 0 && r.Size+uint64(n) > soft && b.mayShrinkLocked(from-r.Size, w)
		if !must && !should {
			return
		}
		b.evictTailLocked(in, w)
	}
}

// takeFromLocked has a ring give up chunks, that another may hold limit of, and
// needs some of for the record that is to come: what the giver holds above its
// own limit bit by bit, what is needed at once.
func (b *bucket) takeFromLocked(giver policy.Ring, l limits, r *ring.Ring, limit, need int) {
	g, keep := &b.rings[giver], l.of(giver)
	from, work := g.Size, b.setWork(need<<b.shared.shift)
	for g.Held() > 0 {
		reach := b.withinReachLocked(r)
		must := reach < need
		over := (reach < limit || b.isOverLocked(l)) && g.Held() > keep
		should := over && b.mayShrinkLocked(from-g.Size, &work)
		if !must && !should {
			return
		}
		if g.Size == 0 {
			g.Trim()
			return
		}
		b.evictTailLocked(giver, &work)
	}
}

// admitLocked returns the ring that a record of n bytes goes to: a replaced one keeps its
// standing, a new one is for the policy to decide.
func (b *bucket) admitLocked(f *found, replace bool, n int, l limits) policy.Ring {
	if replace {
		return min(index.Ring(f.Slot), policy.Main) // of the cold part, to main
	}
	if b.policy.Kind == policy.FIFO {
		return policy.Main
	}
	if f.ghost {
		b.ghostHits++
		if !index.OnTrial(f.Slot) { // else a lookup has found it before
			b.policy.GhostFound(origin(f.Slot), 1, b.ghostsLocked(), b.isNear(f.Slot))
		}
	}
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	return b.policy.Admit(f.ghost, small.Fits(n, l.small), main.Fits(n, l.main))
}

// ghostsLocked returns how many ghosts there are of each ring: a live entry has one slot
// (I7), and all others are stale (I9).
func (b *bucket) ghostsLocked() [ringCount]int {
	used := b.index.Used()
	var n [ringCount]int
	for i := range n {
		n[i] = used[i] - b.rings[i].Entries
	}
	b.cold.addGhosts(&n, used[policy.Queue])
	return n
}

// evictTailLocked takes the oldest record from the tail of a ring: for good,
// or to the head of main. A dropped record's slot stays in the index, stale: it
// is the ghost.
func (b *bucket) evictTailLocked(in policy.Ring, w *policy.Work) {
	r := b.ring(in)
	hd, ok := r.Header(r.Tail)
	if !ok {
		// Without its length no record behind it can be found either.
		b.corruptions.Add(1)
		r.Reset()
		if in == policy.Cold {
			b.cold.uses = uses{}
		}
		return
	}
	if hd.Dead {
		r.ReleaseDead(hd)
		return
	}
	if b.shared.Expired(hd.Expiry) {
		b.expireAtLocked(in, r.Tail, hd)
		return // dead from now on
	}
	if b.isForgottenLocked(r, r.Tail, hd) {
		b.forgetAtLocked(in, r.Tail, hd)
		return // as well
	}
	needsNoSlot := b.policy.Kind == policy.FIFO && !r.WorthCompacting() && !b.cold.on
	if needsNoSlot || in.IsCold() || hd.Total() > b.longest {
		b.dropTailLocked(in, hd)
		return
	}
	p, ok := b.tailSlotLocked(in, hd)
	if !ok {
		b.corruptions.Add(1)
		b.dropTailLocked(in, hd)
		return
	}
	switch b.judgeTailLocked(in, &p, hd, w) {
	case policy.Promote:
		b.promoteLocked(p, hd, w)
	case policy.Reinsert:
		b.rotateLocked(in, p, hd)
	default:
		if !b.demoteLocked(in, p, hd) {
			b.dropTailLocked(in, hd)
		}
	}
}

// judgeTailLocked returns what becomes of the live record at the tail of a ring.
// A ring that is worth compacting keeps what is live.
func (b *bucket) judgeTailLocked(
	in policy.Ring, p *index.Place, hd record.Header, w *policy.Work,
) policy.Verdict {
	r, n, freq := &b.rings[in], hd.Total(), index.Freq(p.Slot)
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
		b.reinsertions++
	} else if trial {
		b.index.Store(*p, p.Slot) // nobody has found the ghost yet
	}
	return verdict
}

// tailSlotLocked finds the slot of the live record at the tail of a ring (I7).
func (b *bucket) tailSlotLocked(in policy.Ring, hd record.Header) (index.Place, bool) {
	r := b.ring(in)
	next := b.next
	b.next.known = false
	if !next.known || next.pos != r.Tail || next.ring != in {
		next.hash = b.keyHash(r, r.Tail, hd)
	}
	return b.index.Find(next.hash, in, r.Tail)
}

// dropTailLocked evicts the live record at the tail of a ring.
func (b *bucket) dropTailLocked(in policy.Ring, hd record.Header) {
	r := b.ring(in)
	if b.shared.onRemove != nil {
		b.keepRemovedLocked(r, r.Tail, hd, RemovedEvicted)
	}
	b.uncountLocked(r, r.Tail, hd, b.largeHash(r, r.Tail, hd))
	r.Release(uint64(hd.Total()))
	if !in.IsCold() {
		b.policy.Dropped(in)
	}
	b.countEvicted(in, hd)
}

// largeHash returns the hash of the key of the record at pos, if this is a large
// bucket; a small one does not count its keys and saves the effort.
func (b *bucket) largeHash(r *ring.Ring, pos uint64, hd record.Header) uint64 {
	if !b.large {
		return 0
	}
	return b.keyHash(r, pos, hd)
}

func (b *bucket) countEvicted(in policy.Ring, hd record.Header) {
	b.evictedBytes += uint64(hd.Total())
	switch in {
	case policy.Small:
		b.evictedSmall++
	case policy.Main:
		b.evictedMain++
	default:
		b.evictedCold++
	}
}

// promoteLocked moves the record at the tail of small to the head of main. Its
// frequency begins anew.
func (b *bucket) promoteLocked(p index.Place, hd record.Header, w *policy.Work) {
	n := hd.Total()
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	limit := b.limitLocked().main
	if n > limit<<b.shared.shift {
		b.dropTailLocked(policy.Small, hd)
		return
	}
	b.makeRoomLocked(policy.Main, n, limit, w)
	if err := main.Extend(uint64(n), limit); err != nil {
		b.dropTailLocked(policy.Small, hd)
		return
	}
	slot := index.WithoutFreq(p.Slot)
	if index.Freq(p.Slot) == 1 {
		slot = index.WithTrial(slot)
	}
	pos := main.CopyFrom(small, small.Tail, n)
	b.movedLocked(p, index.WithPos(slot, policy.Main, pos), small, main, hd, n)
	b.promotions++
}

// mark is a place in a ring that was its head once. When the tail has passed it, it is known
// how long entries stay in the ring, for five words of a bucket and nothing of an entry.
type mark struct {
	pos  uint64 // with markSet, unless there is none
	at   span   // the time when it was the head
	life span   // of the mark before; sets is 0 if there was none
}

// markSet tells that there is a mark: no position has that bit.
const markSet = 1 << 63

// watchEach is for how many chunks of records stored there is one look at the marks. (Above
// 1: recover learns once, when not all buckets have counted their records.)
const watchEach = 4

// watchMarksLocked looks whether the tails have passed their marks. What a tail has moved
// beyond its mark by now is taken off, as if both moved evenly.
func (b *bucket) watchMarksLocked() {
	for i := range b.rings {
		r, m := &b.rings[i], &b.marks[i]
		beyond := r.Gone(m.pos)
		if m.pos&markSet != 0 && (beyond == 0 || beyond > r.Mask/2) {
			continue // the head, or live
		}
		now := b.shared.spanNow()
		if m.pos&markSet != 0 {
			part := float64(r.Size) / float64(r.Size+beyond)
			life := now.since(m.at)
			life.ticks = uint32(part*float64(life.ticks) + 0.5)
			life.sets = max(1, uint64(part*float64(life.sets)+0.5))
			m.life = life
		}
		m.pos, m.at = r.Head()|markSet, now
	}
}

// prepareLocked prefetches what the bucket's next Set will touch: by then, some
// hundred Sets later, the lines have come.
func (b *bucket) prepareLocked(to policy.Ring) {
	r := &b.rings[to]
	r.PrefetchHead()
	if b.cold.begun {
		b.prefetchColdLocked()
	}
	if to == policy.Main || !b.policy.Full() || r.Size == 0 {
		return
	}
	hd, ok := r.Header(r.Tail)
	if !ok || hd.Dead {
		return
	}
	hash := b.keyHash(r, r.Tail, hd)
	b.next = nextVictim{known: true, ring: to, pos: r.Tail, hash: hash}
	b.index.Prefetch(hash, 1)
}
