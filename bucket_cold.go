package ringcache

import (
	"time"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// The cold part of a bucket holds what the policy has dropped, compressed where that is
// worth it (Options.Compressor).
//
//	small, main --+--> [ queue ] --compressed--+--> [ cold ] --> evicted
//	              +----------as it is----------+
//
// A Set moves a victim to the head of the queue. The compressor's goroutine takes records
// from its tail, compresses them without the lock, and appends them to the cold ring. If
// the queue is full, the victim goes to the cold ring as it is: no Set waits. The goroutine
// never evicts: Sets see to it that the cold ring has room for all that waits. What is hit a
// second time goes back to main (Cache.lookupCold). What was hit once is given another round at
// the cold ring's tail: going back at once would leave a hole for each hit, of which there are
// many.

const (
	// One bucket in scoutEach is a scout, and one is a baseline.
	scoutEach = 32

	// leastCold is how many chunks a cold part has, or none.
	leastCold = 4

	// queuePart: the queue may have 1/queuePart of the cold part's chunks.
	queuePart = 16

	// coldRounds is how many records that were read a Set moves for each that it evicts.
	coldRounds = 4

	// coldCompacted is the same where the cold ring is worth compacting: among so many records
	// one is dead on average.
	coldCompacted = 16

	// A batch of the goroutine is so many records, or bytes, under one lock.
	coldBatchRecords = 16
	coldBatchBytes   = 8 << 10
)

// addColdPart gives a small bucket a cold part.
func (b *bucket) addColdPart(number int) {
	b.cold = &coldPart{on: true, number: int32(number), role: roleOf(number)}
	b.cold.init(b.shared)
}

// roleOf returns what the cold part of the nth bucket is for.
func roleOf(number int) coldRole {
	switch number % scoutEach {
	case 0:
		return scout
	case scoutEach / 2:
		return baseline
	}
	return learns
}

// followsLocked reports whether the bucket's policy follows that of the baseline: what it
// drops, and what comes back to it, tell of the cold part and not of the policy.
func (b *bucket) followsLocked() bool {
	return b.cold.on && b.cold.role != baseline && b.shared.buckets > scoutEach/2
}

// inUse returns the end of the bucket's rings.
func (b *bucket) inUse() policy.Ring {
	if b.cold.on {
		return policy.Rings
	}
	return ringCount
}

// coldLimit returns how many of total chunks the cold part may hold: none as long as the
// policy has room for all.
func (b *bucket) coldLimit(total int) int {
	c := b.cold
	if !c.begun {
		return 0
	}
	n := int(b.shared.compression.shareFor(c.role) * float64(total))
	if n < leastCold {
		return 0
	}
	return n
}

// shapeColdLocked sets the limits of the cold part.
func (b *bucket) shapeColdLocked() {
	c := b.cold
	if !c.on {
		return
	}
	for i := range c.rings {
		c.rings[i].Expect(b.mean)
	}
	c.most = b.limitLocked().cold
	c.queueMost = max(1, c.most/queuePart, b.chunksFor(2*b.mean))
	if sum := c.from[policy.Small] + c.from[policy.Main]; sum > 1<<16 {
		c.from[policy.Small] /= 2
		c.from[policy.Main] /= 2
	}
}

// demoteLocked moves the live record at the tail of small or main, whose slot is at p, to
// the cold part: to the queue, or as it is to the cold ring if the queue is full. It reports
// false if there is no room for it: then it is to be dropped.
func (b *bucket) demoteLocked(in policy.Ring, p index.Place, hd record.Header) bool {
	n := hd.Total()
	if !b.cold.on || hd.Kind != record.Value {
		return false
	}
	to, ok := b.makeColdRoomLocked(n)
	if !ok {
		return false
	}
	c, from, r := b.cold, &b.rings[in], b.ring(to)
	pos := r.CopyFrom(from, from.Tail, n)
	b.movedLocked(p, index.WithPos(index.WithOrigin(p.Slot, in), to, pos), from, r, hd, n)
	b.policy.Dropped(in)
	c.from[in]++
	queueFull := to == policy.Cold
	if queueFull {
		c.behind++
	}
	if !c.signalled && (queueFull || c.queue().Size<<1 >= uint64(c.queueMost)<<b.shared.shift) {
		c.signalled = b.shared.compression.signal(c.number)
	}
	return true
}

// makeColdRoomLocked makes room for a record of n bytes at the head of the queue, else of
// the cold ring, which it returns, and keeps the cold part within its limit: bit by bit, so
// there may be none.
func (b *bucket) makeColdRoomLocked(n int) (to policy.Ring, ok bool) {
	c := b.cold
	c.begun = true // from the next look at the limits on, there is room
	q, s, queueMost := c.queue(), c.store(), max(c.queueMost, b.chunksFor(n))
	for from := c.size(); ; b.evictOldestLocked() {
		storeMost, dropped := b.storeMostLocked(queueMost), from-c.size()
		if c.size()+n <= storeMost<<b.shared.shift && c.held() <= c.most {
			if b.extendLocked(q, n, queueMost) {
				return policy.Queue, true
			}
			// A queue without a chunk waits for one that the cold ring gives up.
			if (q.Held() > 0 || dropped >= shrinkStep) && b.extendLocked(s, n, storeMost) {
				return policy.Cold, true
			}
		}
		if c.held() == 0 || dropped >= n+shrinkStep {
			return 0, false
		}
	}
}

// storeMostLocked returns how many chunks the cold ring may hold beside a queue of so many,
// and has or can get.
func (b *bucket) storeMostLocked(queueMost int) int {
	held, most := b.cold.store().Held(), b.coldMost(queueMost)
	if held >= most {
		return most
	}
	forQueue := max(0, queueMost-b.cold.queue().Held())
	return min(most, held+max(0, b.moreColdLocked()-forQueue))
}

// prefetchColdLocked is what prepareLocked does for the cold part: it asks for what is moved
// next, where to, and what is dropped for it.
func (b *bucket) prefetchColdLocked() {
	r, s := &b.rings[b.policy.Entry()], b.cold.store()
	r.Prefetch(r.Tail)
	b.cold.queue().PrefetchHead()
	s.Prefetch(s.Tail)
}

// coldMost returns how many chunks the cold ring may hold beside a queue of so many.
func (b *bucket) coldMost(queueMost int) int {
	return max(0, b.cold.most-max(queueMost, b.cold.queue().Held()))
}

// reachLocked returns how many of most chunks a ring of the cold part has or can get for n
// bytes more. It borrows the tail's chunk (I2) only if it can get no other: as long as it does,
// it has no room for more.
func (b *bucket) reachLocked(r *ring.Ring, n, most int) int {
	held := r.Held()
	if held >= most || r.Left() >= n {
		return held
	}
	return min(most, held+b.moreColdLocked())
}

// moreColdLocked returns how many chunks more the cold part can get now. The limits are asked
// for anew, as they may have changed since the Set began.
func (b *bucket) moreColdLocked() int {
	return max(0, min(b.limitLocked().cold-b.cold.held(), b.spareLocked()))
}

// evictOldestLocked evicts the oldest record of the cold part that was not read there, and
// gives some of those that were another round. As long as there are enough dead records, all
// live ones get one.
func (b *bucket) evictOldestLocked() {
	rounds := coldRounds
	if b.cold.store().WorthCompacting() {
		rounds = coldCompacted
	}
	for range rounds {
		if b.cold.oldest() != policy.Cold || !b.rotateColdLocked() {
			break
		}
	}
	b.dropOldestLocked()
}

// rotateColdLocked moves the record at the cold ring's tail to its head if it was read. It
// reports false if the tail is to be dropped, or passed.
func (b *bucket) rotateColdLocked() bool {
	s := b.cold.store()
	if s.Size == 0 {
		return false
	}
	hd, ok := s.Header(s.Tail)
	if !ok || hd.Dead || b.shared.Expired(hd.Expiry) || b.isForgottenLocked(s, s.Tail, hd) {
		return false
	}
	p, ok := b.index.Find(b.keyHash(s, s.Tail, hd), policy.Cold, s.Tail)
	if !ok || !index.WasRead(p.Slot) && !s.WorthCompacting() {
		return false
	}
	p.Slot = index.WithoutRead(p.Slot)
	b.rotateLocked(policy.Cold, p, hd)
	return true
}

// dropOldestLocked evicts the oldest record of the cold part, or gives up an idle chunk.
func (b *bucket) dropOldestLocked() {
	in := b.cold.oldest()
	if r := b.ring(in); r.Size == 0 {
		r.Trim()
	} else {
		b.evictTailLocked(in, nil)
	}
}

// giveColdLocked drops what the cold part holds for as long as more says so, but no more than
// a step.
func (b *bucket) giveColdLocked(more func() bool) {
	for b.cold.held() > 0 && !b.removals.isStep() && more() {
		b.dropOldestLocked()
	}
}

// extendLocked makes n bytes behind the head of a ring of the cold part writable, which may
// hold most chunks, and reports whether there is room for them.
func (b *bucket) extendLocked(r *ring.Ring, n, most int) bool {
	limit := b.reachLocked(r, n, most)
	return limit > 0 && r.Fits(n, limit) && r.Extend(uint64(n), limit) == nil
}

// storeAsIsLocked moves the record at the queue's tail, whose slot is at p, to the cold
// ring, where there is room for it.
func (b *bucket) storeAsIsLocked(p index.Place, hd record.Header) {
	q, s, n := b.cold.queue(), b.cold.store(), hd.Total()
	pos := s.CopyFrom(q, q.Tail, n)
	b.movedLocked(p, index.WithPos(p.Slot, policy.Cold, pos), q, s, hd, n)
}

// storePackedLocked is storeAsIsLocked with its value packed.
func (b *bucket) storePackedLocked(p index.Place, hd record.Header, key, packed []byte) {
	var buf [record.MaxHeader]byte
	header := b.form.PutPacked(&buf, len(key), len(packed), hd.HasExpiry, hd.Expiry)
	q, s := b.cold.queue(), b.cold.store()
	pos := s.Append(header, key, packed)
	b.cold.uses[packed[0]]++ // (I16)
	n := len(header) + len(key) + len(packed)
	b.movedLocked(p, index.WithPos(p.Slot, policy.Cold, pos), q, s, hd, n)
}

// promoteColdLocked moves the record f of the cold part to main, as the write w has it.
func (b *bucket) promoteColdLocked(f *found, w *write) {
	b.policy.GhostFound(origin(f.Slot), 1, b.ghostsLocked(), b.isNear(f.Slot))
	if b.insertLocked(f, true, w, 0) != nil { // there is no memory for it
		b.countEvicted(policy.Cold, f.Header)
	}
}

// waiting is a record of the queue on its way through the compressor.
type waiting struct {
	pos    uint64
	key    []byte
	value  []byte
	hash   uint64
	total  int
	packed []byte // nil: it stays as it is
}

// coldBatch is what the goroutine takes from a queue at once.
type coldBatch struct {
	records []waiting
	taken   []byte // keys and values
	packed  []byte
}

// compressQueue compresses what waits in the bucket's queue. It is the goroutine's.
func (b *bucket) compressQueue(batch *coldBatch) {
	for b.takeWaiting(batch) {
		begun := time.Now()
		for i := range batch.records {
			w := &batch.records[i]
			from := len(batch.packed)
			batch.packed = b.shared.compression.pack(batch.packed, w.value, w.total)
			w.packed = batch.packed[from:len(batch.packed):len(batch.packed)]
		}
		b.shared.compression.nanos.Add(uint64(time.Since(begun)))
		for i := range batch.records {
			w := &batch.records[i]
			w.hash = b.shared.hash(w.key)
			b.index.Prefetch(w.hash, 1)
		}
		if !b.putAway(batch) {
			return
		}
	}
}

// takeWaiting copies records from the queue's tail on. It reports false if there are none.
func (b *bucket) takeWaiting(batch *coldBatch) bool {
	batch.records, batch.packed = batch.records[:0], batch.packed[:0]
	batch.taken = batch.taken[:0]
	b.lock()
	defer b.unlock()
	b.cold.signalled = false
	if b.closed {
		return false
	}
	b.passDeadLocked()
	q := b.cold.queue()
	for at := uint64(0); at < q.Size && at < coldBatchBytes && len(batch.records) < coldBatchRecords; {
		pos := (q.Tail + at) & q.Mask
		hd, ok := q.Header(pos)
		if !ok {
			break // it will be dropped when it is the tail
		}
		if w := (waiting{pos: pos, total: hd.Total()}); !hd.Dead {
			from := len(batch.taken)
			batch.taken, _ = q.Read(batch.taken, pos+uint64(hd.Size), hd.KeyLen+hd.ValueLen)
			w.key = batch.taken[from : from+hd.KeyLen] // of this array, if it grows later
			w.value = batch.taken[from+hd.KeyLen : len(batch.taken) : len(batch.taken)]
			batch.records = append(batch.records, w)
		}
		at += uint64(hd.Total())
	}
	return len(batch.records) > 0
}

// passDeadLocked releases the dead records at the queue's tail, and all if the one there is
// damaged: nobody else comes there as long as the cold ring holds anything.
func (b *bucket) passDeadLocked() {
	for q := b.cold.queue(); q.Size > 0; {
		if hd, ok := q.Header(q.Tail); ok && !hd.Dead {
			return
		}
		b.evictTailLocked(policy.Queue, nil)
	}
}

// putAway moves the batch's records that are still at the queue's tail to the cold ring.
// It reports false if that has no room.
func (b *bucket) putAway(batch *coldBatch) bool {
	b.lock()
	defer b.unlock()
	if b.closed {
		return false
	}
	q := b.cold.queue()
	for i := range batch.records {
		w := &batch.records[i]
		b.passDeadLocked()
		if q.Size == 0 || q.Tail != w.pos {
			continue // it was dead, or evicted
		}
		hd, _ := q.Header(w.pos) // passDeadLocked has seen it
		p, ok := b.index.Find(w.hash, policy.Queue, w.pos)
		if !ok {
			b.corruptions.Add(1)
			b.dropTailLocked(policy.Queue, hd)
			continue
		}
		n := hd.Total()
		if len(w.packed) > 0 {
			n = b.form.PackedSize(hd.HasExpiry) + len(w.key) + len(w.packed)
		}
		if !b.extendLocked(b.cold.store(), n, b.coldMost(b.cold.queueMost)) {
			return false
		}
		if len(w.packed) > 0 {
			b.storePackedLocked(p, hd, w.key, w.packed)
		} else {
			b.storeAsIsLocked(p, hd)
		}
	}
	b.sweepLocked()
	return true
}
