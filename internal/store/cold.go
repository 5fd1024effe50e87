package store

import (
	"math"
	"time"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// The cold part of a bucket holds entries that the policy has dropped, compressed if that is worth
// it (Options.Compressor).
//
//	small, main --+--> [ queue ] --compressed--+--> [ cold ] --> evicted
//	              +----------as it is----------+
//
// A Set moves a victim to the head of the queue. The compressor's goroutine takes records from its
// tail, compresses them without the lock, and appends them to the cold ring. If the queue is full,
// the victim goes to the cold ring as it is: no Set waits. The goroutine never evicts: Sets keep
// room in the cold ring for all that waits. An entry that is hit a second time goes back to main
// (lookupCold). An entry that was hit once gets another round at the cold ring's tail: moving it at
// once would leave a dead record for each hit, and there are many.

const (
	// One bucket in scoutEach is a scout: it always has the full share, even if compression does not
	// pay, so that it is known when it does.
	scoutEach = 32

	// leastCold is the least number of chunks of a cold part that is not empty.
	leastCold = 4

	// queuePart: the queue may have 1/queuePart of the cold part's chunks.
	queuePart = 16

	// coldRounds is how many records of the cold ring that were read a Set moves at most.
	coldRounds = 4

	// coldCompacted is the same if the cold ring is worth compacting: among so many records one is
	// dead on average.
	coldCompacted = 16
)

// inUse returns the number of the bucket's rings, as the end of a loop over them.
func (b *Store) inUse() policy.Ring {
	if b.cold.on {
		return policy.Rings
	}
	return RingCount
}

// coldLimit returns how many of total chunks the cold part may hold: none as long as the
// policy has room for all.
func (b *Store) coldLimit(total int) int {
	c := b.cold
	isScout := b.Number%scoutEach == 0
	n := int(b.Shared.Compression.ShareOf(isScout) * float64(total))
	if !c.begun || n < leastCold {
		return 0
	}
	return n
}

// shapeCold sets the limits of the cold part.
func (b *Store) shapeCold() {
	c := b.cold
	if !c.on {
		return
	}
	c.queue.Expect(int(b.mean))
	c.ring.Expect(int(b.mean))
	c.most = b.limits().cold
	c.queueMost = max(1, c.most/queuePart, b.chunksFor(2*int(b.mean)))
	if sum := c.from[policy.Small] + c.from[policy.Main]; sum > 1<<16 {
		c.from[policy.Small] /= 2
		c.from[policy.Main] /= 2
	}
}

// demote moves the live record at the tail of small or main, whose slot is at p, to the cold part:
// to the queue, or uncompressed to the cold ring if the queue is full. It reports false if there is
// no room for the record, which the caller must drop then.
func (b *Store) demote(in policy.Ring, p index.Place, hd record.Header) bool {
	n := hd.Total()
	if !b.cold.on || hd.Kind.Base() != record.Value {
		return false
	}
	to, ok := b.makeColdRoom(n)
	if !ok {
		return false
	}
	c := b.cold
	b.move(in, to, p, index.WithOrigin(p.Slot, in), hd)
	b.policy.Dropped(in)
	c.from[in]++
	queueFull := to == policy.Cold
	if queueFull {
		b.QueueFull++
	}
	if !c.signalled && (queueFull || c.queue.Size<<1 >= uint64(c.queueMost)<<b.Shared.Shift) {
		c.signalled = b.Shared.Compression.Signal(int32(b.Number))
	}
	return true
}

// Sink moves the oldest live record of small or main to the cold part, as the policy would, and
// returns its length; 0 if none can go there. It is for tests, so that they need not fill a cache.
func (b *Store) Sink() int {
	b.cold.begun = true
	b.shapeCold()
	for in := range policy.Queue {
		hd, ok := b.waiting(in)
		if !ok {
			continue
		}
		r := b.Ring(in)
		p, _ := b.Index.Find(b.keyHash(r, r.Tail, hd), in, r.Tail)
		if b.demote(in, p, hd) {
			return hd.Total()
		}
	}
	return 0
}

// ColdBegun reports whether the cold part may hold anything. It is for tests.
func (b *Store) ColdBegun() bool { return b.cold.begun }

// makeColdRoom makes room for a record of n bytes at the head of the queue, or else of the cold
// ring, and returns that ring. It brings the cold part within its limit only bit by bit, so it may
// report that there is no room.
func (b *Store) makeColdRoom(n int) (to policy.Ring, ok bool) {
	c := b.cold
	c.begun = true // the limits include a cold part from the next computation on
	q, s, queueMost := &c.queue, &c.ring, max(c.queueMost, b.chunksFor(n))
	from, work := c.size(), policy.Work{Records: coldRounds, Bytes: math.MaxInt}
	if s.WorthCompacting() {
		work.Records = coldCompacted
	}
	b.vacate(&work, func() (policy.Ring, bool) {
		most, dropped := b.coldMost(queueMost), from-c.size()
		if c.size()+n <= most<<b.Shared.Shift && c.held() <= c.most {
			if ok = b.extend(q, n, queueMost); ok {
				to = policy.Queue
				return 0, false
			}
			// A queue without a chunk waits for one that the cold ring gives up.
			ok = (q.Held() > 0 || dropped >= shrinkStep) && b.extend(s, n, most)
			if ok {
				to = policy.Cold
				return 0, false
			}
		}
		if c.held() == 0 || dropped >= n+shrinkStep {
			return 0, false
		}
		return c.oldest(), true
	})
	return to, ok
}

// prefetchCold is prepare for the cold part: it prefetches the record that moves next, the place it
// moves to, and the record dropped for it.
func (b *Store) prefetchCold() {
	r, s := &b.Rings[b.policy.Entry()], &b.cold.ring
	r.Prefetch(r.Tail)
	b.cold.queue.PrefetchHead()
	s.Prefetch(s.Tail)
}

// coldMost returns how many chunks the cold ring may hold if the queue has queueMost chunks.
func (b *Store) coldMost(queueMost int) int {
	return max(0, b.cold.most-max(queueMost, b.cold.queue.Held()))
}

// extend makes n bytes behind the head of a ring of the cold part writable, which may hold most
// chunks, and reports whether there is room for them. It borrows the tail's chunk (I2) only if it
// can get no other, because a ring that borrows counts as full. The limits are computed anew, as
// they may have changed since the Set began.
func (b *Store) extend(r *ring.Ring, n, most int) bool {
	limit := r.Held()
	if limit < most && r.Left() < n {
		limit = min(most, limit+max(0, min(b.limits().cold-b.cold.held(), b.spare())))
	}
	return limit > 0 && r.Fits(n, limit) && r.Extend(uint64(n), limit) == nil
}

// ReadCold appends the value of the key to dst as it is stored, and reports whether it has expired,
// and whether the key is in the cold part. touch tells that the read counts for the policy;
// orStale, that an expired value that is kept may be returned.
func (b *Store) ReadCold(
	f *Found, dst, k []byte, h uint64, touch, orStale bool,
) (out []byte, expired, ok bool) {
	if !b.findCounting(f, k, h) || index.Ring(f.Slot) < policy.Queue {
		return dst, false, false
	}
	expired = b.Shared.Expired(f.Expiry)
	if expired && (!orStale || b.Shared.Now() >= b.Shared.KeptUntil(f.Expiry)) {
		return dst, false, false
	}
	dst, _ = f.Ring.Read(dst, f.ValuePos(), f.ValueLen)
	if touch && !index.WasRead(f.Slot) {
		index.MarkRead(&f.Group.Slots[f.I], f.Slot)
	}
	return dst, expired, true
}

// findAgain finds the record of the key, and reports whether it is the record was, in the same
// place.
func (b *Store) findAgain(f, was *Found, k []byte, h uint64) bool {
	return !b.Closed && b.findCounting(f, k, h) && index.Location(f.Slot) == index.Location(was.Slot)
}

// Promote moves the record that was found in the cold part to main, if it is still there. The write
// has its value. If the record's namespace was invalidated meanwhile, Promote removes the record.
// If the bucket has become too small for it, it stays in the cold part, unless it must not, and is
// evicted.
func (b *Store) Promote(was *Found, w *Write, must bool) {
	b.MoveHomes()
	var f Found
	if !b.findAgain(&f, was, w.Key, w.Hash) || b.Shared.Expired(f.Expiry) {
		return
	}
	w.Kind, w.Last, w.Until = f.Kind&record.Spaced, b.lastOf(&f), f.Expiry
	if b.IsForgotten(w) {
		b.remove(&f, w.Hash, Deleted) // in main, the walk that drops such records could miss it
		return
	}
	if w.Measure(b.Shared); w.Bytes > b.Longest || !must && b.Lack(w.Bytes) > 0 {
		if must {
			b.remove(&f, w.Hash, Evicted)
		}
		return
	}
	b.policy.GhostFound(origin(f.Slot), 1, b.ghosts(), b.isNear(f.Slot))
	if err := b.insert(&f, w); err != nil { // there is no memory for it
		_ = b.Fail(w, err)
	}
}

// DropDamaged removes a record whose value cannot be unpacked. It reports false if the record is no
// longer there: what the caller read may have been another one.
func (b *Store) DropDamaged(was *Found, k []byte, h uint64) bool {
	var f Found
	if !b.findAgain(&f, was, k, h) {
		return false
	}
	b.remove(&f, h, Unreported)
	b.Corruptions.Add(1)
	return true
}

// Waiting is a record of the queue on its way through the compressor. It is used again for the
// next one.
type Waiting struct {
	pos        uint64
	total      int
	kind       record.Kind
	key, value []byte
	Packed     []byte // empty: it stays as it is
}

// waiting returns the header of the live record at a ring's tail, if there is one. It releases dead
// ones there, and all records if the one there is damaged. No Set passes the queue's tail as long
// as the cold ring holds anything.
func (b *Store) waiting(in policy.Ring) (hd record.Header, ok bool) {
	for r := b.Ring(in); r.Size > 0 && !b.Closed; b.passTail(in, &policy.Work{}) {
		if hd, ok = r.Header(r.Tail); ok && !hd.Dead {
			return hd, true
		}
	}
	return hd, false
}

// TakeWaiting copies the record at the queue's tail. It reports false if there is none.
func (b *Store) TakeWaiting(w *Waiting) bool {
	b.cold.signalled = false
	q := &b.cold.queue
	hd, ok := b.waiting(policy.Queue)
	if !ok {
		return false
	}
	w.pos, w.total, w.kind = q.Tail, hd.Total(), hd.Kind
	at := q.Tail + uint64(hd.Size)
	w.key, _ = q.Read(w.key[:0], at, hd.KeyLen)
	w.value, _ = q.Read(w.value[:0], at+uint64(hd.KeyLen), hd.ValueLen)
	return true
}

// PackWaiting compresses the value. It is called without the lock.
func (b *Store) PackWaiting(w *Waiting) {
	begun, z := time.Now(), b.Shared.Compression
	w.Packed = z.Pack(w.value, w.total)
	z.Nanos.Add(uint64(time.Since(begun)))
}

// PutAway moves the record to the cold ring, if it is still at the queue's tail. It reports false
// if the cold ring has no room.
func (b *Store) PutAway(w *Waiting) bool {
	q, s := &b.cold.queue, &b.cold.ring
	hd, ok := b.waiting(policy.Queue)
	if !ok || q.Tail != w.pos {
		return true // it was dead, or evicted
	}
	p, ok := b.Index.Find(b.Shared.HashOf(w.key, w.kind), policy.Queue, w.pos)
	if !ok {
		b.Corruptions.Add(1)
		b.dropTail(policy.Queue, q, &hd, Unreported)
		return true
	}
	n, header := hd.Total(), []byte(nil)
	if len(w.Packed) > 0 {
		var buf [record.MaxHeader]byte
		kind := hd.Kind&record.Spaced | record.Packed
		header = b.Form.Put(&buf, kind, len(w.key), len(w.Packed), q.Times(q.Tail, hd))
		n = len(header) + len(w.key) + len(w.Packed)
	}
	switch {
	case !b.extend(s, n, b.coldMost(b.cold.queueMost)):
		return false
	case header != nil:
		pos := s.Append(header, w.key, w.Packed)
		b.moved(p, index.WithPos(p.Slot, policy.Cold, pos), q, s, hd, n)
	default:
		b.move(policy.Queue, policy.Cold, p, p.Slot, hd)
	}
	b.sweep()
	return true
}

// coldPart is a bucket's cold part. Large buckets, and those of a cache without a Compressor,
// have none: they share an empty one that never changes (Shared.noCold).
type coldPart struct {
	queue     ring.Ring // records that wait for the compressor
	ring      ring.Ring // the cold ring: its records were compressed, or left as they are
	on        bool
	begun     bool              // the policy has dropped something: memory is full
	signalled bool              // the goroutine has been told to look at the queue
	most      int               // chunks that the cold part may hold
	queueMost int               // chunks of these for the queue
	from      [RingCount]uint32 // records that came from small and main lately
}

// held returns how many chunks the rings have from the pool.
func (c *coldPart) held() int { return c.queue.Held() + c.ring.Held() }

//go:norace
func (c *coldPart) size() int { return int(c.queue.Size + c.ring.Size) }

// oldest returns the ring with the oldest records of the cold part.
func (c *coldPart) oldest() policy.Ring {
	if c.ring.Held() > 0 {
		return policy.Cold
	}
	return policy.Queue
}

// addGhosts adds the slots of the cold part, live or not, to the ghosts of the rings that
// its records came from: the policy has dropped them.
func (c *coldPart) addGhosts(n *[RingCount]int, slots int) {
	if sum := int(c.from[policy.Small]) + int(c.from[policy.Main]); sum > 0 {
		main := int(int64(slots) * int64(c.from[policy.Main]) / int64(sum))
		n[policy.Small] += slots - main
		n[policy.Main] += main
	}
}

// init makes the rings of a cold part ready for use.
func (c *coldPart) init(s *Shared) {
	c.queue.Init(s.Pool, s.Shift, s.PosBits)
	c.ring.Init(s.Pool, s.Shift, s.PosBits)
}
