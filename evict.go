package ringcache

import (
	"slices"
	"sync"

	"github.com/ringcache/ringcache/internal/policy"
)

// How a bucket makes room: it asks the policy what becomes of the records at
// the tails of its rings, and moves or drops them.

// expected is the record that is at a tail next, and its hash.
type expected struct {
	known bool
	ring  policy.Ring
	pos   uint64
	hash  uint64
}

// claim is how many chunks a ring will hold for the record that is under way:
// they are not for the moves that make room for it.
type claim struct {
	ring   policy.Ring
	chunks int32
}

// limits are how many chunks each ring may hold. (Not an array: the compiler keeps
// those out of registers.)
type limits struct{ small, main int }

// of returns the limit of one ring.
func (l limits) of(ring policy.Ring) int {
	if ring == policy.Small {
		return l.small
	}
	return l.main
}

// limitLocked returns how many chunks each ring may hold now.
func (b *bucket) limitLocked() limits {
	s := b.shared
	quota := b.quota()
	pages := len(b.index.pages) + int(b.pending)
	if most := b.mostPages(quota); pages > most {
		pages = most // compactLocked will see to it
	}
	total := max(quota-pages*s.pool.pageSize, 0) >> s.shift
	if held := b.chunksLocked(); total > held {
		// Other buckets may hold more than their share at the moment.
		spare := s.pool.spare() >> s.shift
		if c := b.claim; c.chunks > 0 {
			spare -= max(0, int(c.chunks)-b.rings[c.ring].held())
		}
		total = min(total, held+max(spare, 0))
	}
	return b.divideLocked(total)
}

// divideLocked returns how many of total chunks each ring may hold.
func (b *bucket) divideLocked(total int) limits {
	total = min(total, b.shared.mostChunks)
	small := b.policy.SmallLimit(total, b.rings[policy.Main].held(), 1+2*int(b.mean)>>b.shared.shift)
	// A record may have needed more of small than that.
	return limits{small: small, main: max(0, total-max(small, b.rings[policy.Small].held()))}
}

// chunksLocked returns how many chunks the rings hold.
func (b *bucket) chunksLocked() int {
	return b.rings[policy.Small].held() + b.rings[policy.Main].held()
}

// quota returns the bytes that rings and index may hold together. Small
// buckets have the same quota, but each cuts it to whole chunks at another
// point, so that all together use all of it.
func (b *bucket) quota() int {
	if b.large {
		// Small swings of the balance move nothing.
		quota := b.shared.largeTarget() / largeBuckets
		return max(quota, min(b.heldLocked(), quota+quota/swing))
	}
	return int(b.shared.quota.Load()) + int(b.dither)
}

// setWork returns the moves that the Set of a record of n bytes may make: of so
// few bytes that sweep can keep up with the positions that they use (I5).
func (b *bucket) setWork(n int) policy.Work {
	w := policy.SetWork(n)
	w.Bytes = min(w.Bytes, 1<<min(b.shared.posBits-4, 30))
	return w
}

// fits reports whether a ring of limit chunks has room for n more bytes.
func (r *ring) fits(n, limit int) bool { return r.size+uint64(n) <= r.room(limit) }

// shrinkStep bounds the bytes that a Set evicts beyond what it needs itself,
// when a ring has to become smaller.
const shrinkStep = 4 << 10

// makeRoomLocked gives a ring of limit chunks room for n more bytes. A ring
// that holds more chunks than that shrinks bit by bit.
func (b *bucket) makeRoomLocked(ring policy.Ring, n, limit int, w *policy.Work) {
	r := &b.rings[ring]
	soft := uint64(limit) << r.shift
	from := r.size
	for {
		// Each step may take a chunk away, and room with it.
		must := !r.fits(n, limit)
		should := r.size > 0 && r.size+uint64(n) > soft && from-r.size < shrinkStep
		if !must && !should {
			return
		}
		b.evictTailLocked(ring, w)
	}
}

// ownRoomLocked gives a ring room for a new record of n bytes, and returns how
// many chunks it may hold.
func (b *bucket) ownRoomLocked(ring policy.Ring, n int, l limits) int {
	if b.mortal {
		b.tidyLocked(ring, n)
		l = b.limitLocked()
	}
	r := &b.rings[ring]
	need := (n + 1<<r.shift - 1) >> r.shift
	limit := max(l.of(ring), need)
	if limit > b.withinReachLocked(r) || b.isOverLocked(l) {
		b.takeFromLocked(1-ring, l, r, limit, need)
		limit = max(min(limit, b.withinReachLocked(r)), need)
	}
	b.claim = claim{ring, int32(limit)}
	work := b.setWork(n)
	b.makeRoomLocked(ring, n, limit, &work)
	b.claim = claim{}
	return limit
}

// readyLocked gives the ring that new records go to room for one of n bytes, before it is known
// whether the one that is to be set is new: meanwhile the line of the index comes that tells it. If it
// is not, the room is the next one's. It returns how many chunks the ring may hold, which are those that it
// has (tight); 0 if that is not enough.
func (b *bucket) readyLocked(n int) (room int) {
	b.outlook = unforeseen
	r := &b.rings[b.entry]
	if room = r.held(); n > room<<r.shift {
		return 0
	}
	b.claim = claim{b.entry, int32(room)}
	for work := b.setWork(n); !r.fits(n, room); {
		b.evictTailLocked(b.entry, &work)
	}
	b.claim = claim{}
	return room
}

// isOpenLocked reports whether it is known that the next new record has a place in a chunk that its ring has, if it is one
// of n bytes.
func (b *bucket) isOpenLocked(n int) bool {
	return b.outlook == open && b.rings[b.entry].left() >= n
}

// outlook is what a bucket knows of the next new record beforehand, so that it need not ask how much its rings may
// hold. Whether they may hold less by now is asked once a chunk has been set (reportLocked).
type outlook uint8

const (
	unforeseen outlook = iota
	open               // it goes to a ring that has a place for it, if it is no longer than what is left of a chunk
	tight              // it goes to a ring that has all the chunks it may hold, and nothing but live records to give room to it
)

// foreseeLocked notes what is known of the next new record, when one of n bytes has been appended to a ring that may
// hold limit chunks. chosen tells that the policy was free to send it elsewhere.
func (b *bucket) foreseeLocked(ring policy.Ring, n, limit int, chosen bool) {
	r := &b.rings[ring]
	usual := b.policy.Dropping() && ring == b.policy.Entry()
	b.entry, b.outlook = ring, unforeseen
	switch {
	case b.large || b.mortal || b.pending != 0 || r.held() > limit:
	case r.left() >= n:
		if usual || chosen {
			b.outlook = open
		}
	case usual && r.held() == limit && !r.fits(n, limit):
		b.outlook = tight
	}
}

// roomLocked gives a ring room for a new record, unless readyLocked has, and returns how
// many chunks it may hold.
func (b *bucket) roomLocked(ring policy.Ring, w *write, l limits) int {
	if w.room > 0 {
		if ring == b.entry {
			return w.room
		}
		l = b.limitLocked()
	}
	return b.ownRoomLocked(ring, w.n, l)
}

// withinReachLocked returns how many chunks a ring has or can get.
func (b *bucket) withinReachLocked(r *ring) int {
	return r.held() + max(b.shared.pool.spare(), 0)>>r.shift
}

// isOverLocked reports whether the rings hold more chunks than they may: the index
// waits for them, or another bucket.
func (b *bucket) isOverLocked(l limits) bool { return b.chunksLocked() > l.small+l.main }

// takeFromLocked has a ring give up chunks, that another may hold limit of, and
// needs some of for the record that is to come: what the giver holds above its
// own limit bit by bit, what is needed at once.
func (b *bucket) takeFromLocked(giver policy.Ring, l limits, r *ring, limit, need int) {
	g, keep := &b.rings[giver], l.of(giver)
	from, work := g.size, b.setWork(need<<g.shift)
	for g.held() > 0 {
		reach := b.withinReachLocked(r)
		must := reach < need
		should := (reach < limit || b.isOverLocked(l)) && g.held() > keep && from-g.size < shrinkStep
		if !must && !should {
			return
		}
		if g.size == 0 {
			g.trim()
			return
		}
		b.evictTailLocked(giver, &work)
	}
}

// shrinkMost bounds the bytes that a bucket gives up at once for a record of
// less.
const shrinkMost = 256 << 10

// shrinkLocked drops records until no ring holds more chunks than it may, or n
// bytes of chunks have been given up.
func (b *bucket) shrinkLocked(n int) {
	l, from := b.limitLocked(), b.heldLocked()
	for i := range b.rings {
		r, limit, work := &b.rings[i], l.of(policy.Ring(i)), b.setWork(0)
		for r.size > 0 && r.held() > limit {
			if from-b.heldLocked() >= n {
				return
			}
			b.evictTailLocked(policy.Ring(i), &work)
		}
		if r.size == 0 && r.held() > limit {
			r.trim()
		}
	}
	b.compactLocked()
}

// evictTailLocked takes the oldest record from the tail of a ring: for good,
// or to the head of main. A dropped record's slot stays in the index, stale: it
// is the ghost.
func (b *bucket) evictTailLocked(ring policy.Ring, w *policy.Work) {
	r := &b.rings[ring]
	h, ok := r.header(r.tail)
	if !ok {
		// Without its length no record behind it can be found either.
		b.corruptions.Add(1)
		r.reset()
		return
	}
	if h.dead {
		r.releaseDead(h)
		return
	}
	if b.shared.expired(h) {
		b.expireAtLocked(ring, r.tail, h)
		return // dead from now on
	}
	if b.policy.Kind == policy.FIFO && !r.porous() || h.total() > b.most {
		b.dropTailLocked(ring, h)
		return
	}
	p, ok := b.tailSlotLocked(ring, h)
	if !ok {
		b.corruptions.Add(1)
		b.dropTailLocked(ring, h)
		return
	}
	if ring == policy.Main && r.porous() && w.Spend(h.total()) {
		b.rotateLocked(ring, p, h)
		return
	}
	verdict := policy.Drop
	if ring == policy.Small {
		verdict = b.policy.SmallTail(slotFreq(p.slot), h.total(), w)
		if verdict == policy.Drop && r.porous() && w.Spend(h.total()) {
			b.rotateLocked(ring, p, h)
			return
		}
	} else {
		if p.slot&slotTrialBit != 0 {
			b.policy.Judge(slotFreq(p.slot) > 0)
			p.slot &^= slotTrialBit
		}
		verdict = b.policy.MainTail(slotFreq(p.slot), h.total(), w)
	}
	switch verdict {
	case policy.Promote:
		b.promoteLocked(p, h, w)
	case policy.Reinsert:
		p.slot -= slotFreqOne
		b.reinsertions++
		b.rotateLocked(policy.Main, p, h)
	default:
		b.dropTailLocked(ring, h)
	}
}

// tailSlotLocked finds the slot of the live record at the tail of a ring (I7).
func (b *bucket) tailSlotLocked(ring policy.Ring, h header) (place, bool) {
	r := &b.rings[ring]
	next := b.next
	b.next.known = false
	if !next.known || next.pos != r.tail || next.ring != ring {
		next.hash = b.keyHash(r, r.tail, h)
	}
	return b.index.at(next.hash, ring, r.tail)
}

// dropTailLocked evicts the live record at the tail of a ring.
func (b *bucket) dropTailLocked(ring policy.Ring, h header) {
	r := &b.rings[ring]
	b.partLocked(r, r.tail, h, EvictCapacity)
	b.uncountLocked(r, h, b.strayHash(r, r.tail, h))
	r.release(uint64(h.total()))
	b.policy.Dropped(ring)
	b.countEvicted(ring, h)
}

func (b *bucket) countEvicted(ring policy.Ring, h header) {
	b.evictedBytes += uint64(h.total())
	if ring == policy.Small {
		b.evictedSmall++
	} else {
		b.evictedMain++
	}
}

// promoteLocked moves the record at the tail of small to the head of main. Its
// frequency begins anew.
func (b *bucket) promoteLocked(p place, h header, w *policy.Work) {
	n := h.total()
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	limit := b.limitLocked().main
	if n > limit<<main.shift {
		b.dropTailLocked(policy.Small, h)
		return
	}
	b.makeRoomLocked(policy.Main, n, limit, w)
	if err := main.extend(uint64(n), limit); err != nil {
		b.dropTailLocked(policy.Small, h)
		return
	}
	pos := main.head()
	main.copyFrom(small, small.tail, n)
	b.index.store(p, withPos(p.slot&^slotFreqMask, policy.Main, pos))
	small.release(uint64(n))
	small.count(-1, n, h.timed)
	main.count(1, n, h.timed)
	b.noteExpiry(h.expiry)
	b.appended += n
	b.promotions++
}

// rotateLocked moves the record at the tail of a ring to its head.
func (b *bucket) rotateLocked(ring policy.Ring, p place, h header) {
	var short [256]byte
	if h.total() <= len(short) {
		b.rotateThroughLocked(short[:0], ring, p, h)
		return
	}
	long := copyBuffers.Get().(*[]byte)
	*long = b.rotateThroughLocked((*long)[:0], ring, p, h)
	copyBuffers.Put(long)
}

// rotateThroughLocked is rotateLocked by way of a buffer, which it returns: in a
// full ring, tail and head lie in the same bytes.
func (b *bucket) rotateThroughLocked(buf []byte, ring policy.Ring, p place, h header) []byte {
	r := &b.rings[ring]
	n := h.total()
	buf = r.read(buf, r.tail, n)
	hash, held := b.strayHash(r, r.tail, h), r.held()
	r.release(uint64(n))
	if err := r.extend(uint64(n), held); err != nil {
		// The chunk that the tail left was not to be had again.
		b.uncountLocked(r, h, hash)
		b.countEvicted(ring, h)
		if b.shared.onEvict != nil && !h.absent {
			b.keepLocked(slices.Clone(buf[h.size:]), h.klen, EvictCapacity)
		}
		return buf
	}
	pos := r.head()
	r.write(pos, buf)
	r.size += uint64(n)
	b.index.store(p, withPos(p.slot, ring, pos))
	b.noteExpiry(h.expiry)
	b.appended += n
	return buf
}

// copyBuffers hold records and values on their way from one place of the cache
// to another.
var copyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// prepareLocked does what a bucket's next Set will be glad of: by then, some
// hundred Sets later, the lines that it asks for have come.
func (b *bucket) prepareLocked(ring policy.Ring) {
	r := &b.rings[ring]
	r.prefetchHead()
	if ring == policy.Main || !b.policy.Full() || r.size == 0 {
		return
	}
	h, ok := r.header(r.tail)
	if !ok || h.dead {
		return
	}
	b.next = expected{known: true, ring: ring, pos: r.tail, hash: b.keyHash(r, r.tail, h)}
	b.index.prefetchHome(b.next.hash)
}
