package ringcache

import (
	"math"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ring"
)

// How much the rings of a bucket may hold, and how they give it up.

// reservation is how many chunks a ring will hold for the record that is under
// way: they are not for the moves that make room for it.
type reservation struct {
	ring   policy.Ring
	chunks int
}

// limits are how many chunks each ring may hold, both together, and the cold part. (Not an array:
// the compiler keeps those out of registers.)
type limits struct{ small, main, both, cold int }

// of returns the limit of one ring of the policy's.
func (l limits) of(r policy.Ring) int {
	if r == policy.Small {
		return l.small
	}
	return l.main
}

// limitLocked returns how many chunks each ring may hold now.
func (b *bucket) limitLocked() limits {
	s := b.shared
	quota := b.quota()
	pages := b.index.Pages() + b.wanted
	if most := b.maxPages(quota); pages > most {
		pages = most // shrinkIndexLocked will see to it
	}
	total := max(quota-pages*s.pool.PageSize(), 0) >> s.shift
	if held := b.chunksLocked(); total > held {
		// Other buckets may hold more than their share at the moment.
		total = min(total, held+b.spareLocked())
	}
	return b.divideLocked(total)
}

// spareLocked returns how many chunks the pool can still give, less those that are reserved.
func (b *bucket) spareLocked() int {
	spare := b.shared.pool.Spare() >> b.shared.shift
	if c := b.reserved; c.chunks > 0 {
		spare -= max(0, c.chunks-b.rings[c.ring].Held())
	}
	return max(spare, 0)
}

// learnLocked looks at how large records are, tells what the bucket has seen, and takes
// over what all have learned. It waits for nobody.
func (b *bucket) learnLocked() {
	b.hint = hintUnknown // limits may have changed
	live := b.liveLocked()
	hot := live - b.cold.entries()
	mean := (b.rings[policy.Small].EntryBytes + b.rings[policy.Main].EntryBytes) / max(hot, 1)
	b.mean = min(mean, math.MaxInt32)
	b.shapeLocked(mean)
	if b.watch++; b.watch%watchEach == 0 {
		b.watchMarksLocked()
	}
	if b.policy.Kind == policy.FIFO {
		return
	}
	l := b.shared.learner(b.large)
	if !l.mu.TryLock() {
		return // there is a next time
	}
	if b.followsLocked() {
		b.policy.Follow(&l.Learner, mean)
		l.mu.Unlock()
		return
	}
	for i := range b.sought { // by lookups
		n := b.sought[i].Swap(0)
		b.policy.GhostFound(policy.Ring(i), int(n), b.ghostsLocked(), true)
	}
	b.policy.Exchange(&l.Learner, live, mean)
	l.mu.Unlock()
}

// shapeLocked sets what depends on the mean size of records.
func (b *bucket) shapeLocked(mean int) {
	for i := range b.rings {
		b.rings[i].Expect(mean)
	}
	b.shapeColdLocked()
	b.growAt = growAt(b.policy.Kind, mean, b.evictedSmall+b.evictedMain > 0)
}

// hint is what a bucket knows of the next new record, so that it need not ask how
// much its rings may hold. That is asked again once a chunk was set (learnLocked).
type hint uint8

const (
	hintUnknown hint = iota
	hintFits         // its ring has a place for it, if it is no longer than what is left of a chunk
	hintFull         // its ring has all the chunks it may have, and only live records to give room
)

// hintLocked notes what is known of the next new record, when one of n bytes came
// to a ring of limit chunks. chosen: the policy was free to send it elsewhere.
func (b *bucket) hintLocked(to policy.Ring, n, limit int, chosen bool) {
	r := &b.rings[to]
	usual := b.policy.Dropping() && to == b.policy.Entry()
	b.entry, b.hint = to, hintUnknown
	_, worth := b.deadestLocked()
	switch {
	case worth || b.large || b.hasTTL || b.wanted != 0 || r.Held() > limit:
	case r.Left() >= n:
		if usual || chosen {
			b.hint = hintFits
		}
	case usual && r.Held() == limit && !r.Fits(n, limit):
		b.hint = hintFull
	}
}

// makeRoomEarlyLocked gives the ring that new records go to room for one of n bytes
// before the key is looked for: meanwhile the line of the index comes. An overwrite
// leaves the room for the next insert. It returns how many chunks the ring may hold
// (hintFull: those that it has); 0 if they are too few.
func (b *bucket) makeRoomEarlyLocked(n int) (room int) {
	b.hint = hintUnknown
	r := &b.rings[b.entry]
	if room = r.Held(); n > room<<b.shared.shift {
		return 0
	}
	b.reserved = reservation{b.entry, room}
	for work := b.setWork(n); !r.Fits(n, room); {
		b.evictTailLocked(b.entry, &work)
	}
	b.reserved = reservation{}
	return room
}

// placeLocked returns the ring that a record goes to, where it has room then, and
// how many chunks that may hold. room is what makeRoomEarlyLocked has returned.
func (b *bucket) placeLocked(f *found, replace bool, n, room int) (to policy.Ring, limit int) {
	if b.hint == hintFits && !replace && !f.ghost && b.rings[b.entry].Left() >= n {
		return b.entry, math.MaxInt // nobody has asked, and no chunk is taken
	}
	var l limits
	if room == 0 {
		l = b.limitLocked() // else not asked for: a full policy admits without them
	}
	to = b.admitLocked(f, replace, n, l)
	switch {
	case room > 0 && to == b.entry:
		return to, room
	case room > 0:
		l = b.limitLocked()
	}
	return to, b.ownRoomLocked(to, n, l)
}

// divideLocked returns how many of total chunks each ring may hold.
func (b *bucket) divideLocked(total int) limits {
	total = min(total, b.shared.maxChunks)
	cold := 0
	if b.cold.on {
		cold = b.coldLimit(total)
		total = max(0, total-max(cold, b.cold.held()))
	}
	hasSmall, hasMain := b.rings[policy.Small].Held(), b.rings[policy.Main].Held()
	room := 1 + 2*b.mean>>b.shared.shift
	small, main := b.policy.Limits(total, hasSmall, hasMain, room)
	return limits{small: small, main: main, both: total, cold: cold}
}

// chunksFor returns how many chunks n bytes take.
func (b *bucket) chunksFor(n int) int { return (n + 1<<b.shared.shift - 1) >> b.shared.shift }

// chunksLocked returns how many chunks the rings hold.
func (b *bucket) chunksLocked() int {
	return b.rings[policy.Small].Held() + b.rings[policy.Main].Held() + b.cold.held()
}

// heldLocked returns the bytes that rings and index hold.
func (b *bucket) heldLocked() int {
	return b.index.Pages()*b.shared.pool.PageSize() + b.chunksLocked()<<b.shared.shift
}

// size returns the bytes in all rings, of the dead too. Readers call it without the lock.
//
//go:norace
func (b *bucket) size() int {
	return int(b.rings[policy.Small].Size+b.rings[policy.Main].Size) + b.cold.size()
}

// quota returns the bytes that rings and index may hold together if others take theirs. Each
// small bucket cuts the same to whole chunks at another point, so that together they use all.
func (b *bucket) quota() int {
	if b.large {
		// Small changes of the balance move nothing.
		share := b.shared.largeTarget() / largeBuckets
		return max(share, min(b.heldLocked(), share+share/hysteresis))
	}
	return b.shared.smallQuota() + b.stagger
}

// withinReachLocked returns how many chunks a ring has or can get.
func (b *bucket) withinReachLocked(r *ring.Ring) int {
	return r.Held() + max(b.shared.pool.Spare(), 0)>>b.shared.shift
}

// freeLocked returns how many chunks more small and main may hold together.
func (b *bucket) freeLocked(l limits) int {
	return l.both - b.rings[policy.Small].Held() - b.rings[policy.Main].Held()
}

// hasFreeLocked reports whether main, which has never been full, has room for any record at the
// tail of small out of free chunks: nothing need be compacted then.
func (b *bucket) hasFreeLocked(l limits) bool {
	return !b.policy.Full() && b.freeLocked(l)<<b.shared.shift > 2*b.longest
}

// isOverLocked reports whether small and main hold more chunks than they may.
func (b *bucket) isOverLocked(l limits) bool { return b.freeLocked(l) < 0 }

// isNearlyFullLocked reports whether small and main have less room than compaction keeps free.
func (b *bucket) isNearlyFullLocked(l limits) bool {
	size := b.rings[policy.Small].Size + b.rings[policy.Main].Size
	return size+size/aheadShare > uint64(l.both)<<b.shared.shift
}

// isAtLimit reports whether the bucket holds nearly all that it may.
func (b *bucket) isAtLimit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heldLocked()+b.shared.pool.ChunkSize()*2 > b.quota()
}

// shrinkMost bounds the bytes that a bucket gives up at once for a record of less.
const shrinkMost = 256 << 10

// shrinkLocked drops records until no ring holds more chunks than it may, or n
// bytes of chunks have been given up. It reports false if that is more than a step.
func (b *bucket) shrinkLocked(n int) (done bool) {
	from := b.heldLocked()
	b.giveColdLocked(func() bool {
		return b.cold.held() > b.limitLocked().cold && from-b.heldLocked() < n
	})
	l := b.limitLocked()
	for i := range b.rings {
		in := policy.Ring(i)
		r, limit, work := &b.rings[i], l.of(in), b.setWork(0)
		for r.Size > 0 && r.Held() > limit {
			if from-b.heldLocked() >= n {
				return true
			}
			if b.removals.isStep() {
				return false
			}
			b.evictTailLocked(in, &work)
		}
		if r.Size == 0 && r.Held() > limit {
			r.Trim()
		}
	}
	b.shrinkIndexLocked()
	return true
}

// giveLocked evicts until n bytes of chunks are given back, or the bucket holds
// no more than keep. It returns the bytes that are missing after a step, or 0.
func (b *bucket) giveLocked(n, keep int) (missing int) {
	from := b.heldLocked()
	b.giveColdLocked(func() bool { return b.heldLocked() > keep && from-b.heldLocked() < n })
	for _, in := range []policy.Ring{policy.Main, policy.Small} {
		r, work := &b.rings[in], b.setWork(n)
		for r.Size > 0 && b.heldLocked() > keep && from-b.heldLocked() < n {
			if b.removals.isStep() {
				return n - (from - b.heldLocked())
			}
			b.evictTailLocked(in, &work)
		}
		if r.Size == 0 && from-b.heldLocked() < n {
			r.Trim()
		}
	}
	return 0
}

// makeWayLocked evicts what a record would push out of a large bucket, or a step of it, and
// reports false if there is more. What room is made is not kept for the record.
func (b *bucket) makeWayLocked(w *write) (done bool) {
	if !b.policy.Dropping() {
		return true
	}
	var f found
	to := b.policy.Entry()
	if b.findLocked(&f, w.k, w.h) {
		if f.ValueLen == len(w.v) {
			return true // it is overwritten where it lies
		}
		to = min(index.Ring(f.Slot), policy.Main)
	}
	l, need := b.limitLocked(), b.chunksFor(w.n)
	r, limit, work := &b.rings[to], max(l.of(to), need), b.setWork(w.n)
	for other := &b.rings[1-to]; !b.removals.isStep(); {
		switch reach := b.withinReachLocked(r); {
		case reach < need && other.Size > 0:
			b.evictTailLocked(1-to, &work)
		case r.Size > 0 && !r.Fits(w.n, min(limit, max(reach, need))):
			b.evictTailLocked(to, &work)
		default:
			return true
		}
	}
	return false
}

// isShort reports whether a small bucket has not the memory for a record of n
// bytes, whatever it evicts: the large buckets have all but a little.
func (b *bucket) isShort(n int) bool {
	s := b.shared
	spare := s.pool.Spare()
	if spare > n+3*s.pool.ChunkSize() {
		return false // as nearly always
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	lack := b.lackLocked(n)
	if b.index.Empty() && s.file != nil {
		lack++ // the page counts as a chunk, wherever it comes from
	}
	return lack > 0
}

// lackLocked returns how many chunks a bucket lacks for a record of n bytes, whatever it
// evicts.
func (b *bucket) lackLocked(n int) int {
	need := b.chunksFor(n)
	if b.index.Empty() && b.shared.file == nil { // else its pages are no chunks
		need++
	}
	return need - b.chunksLocked() - max(b.shared.pool.Spare(), 0)>>b.shared.shift
}

// demand returns the bytes of new chunks and pages that a large bucket takes at
// most for a record of n bytes.
func (b *bucket) demand(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.shared.pool.ChunkSize()
	need := (n/size + 2) * size
	grow := min(b.quota()-b.heldLocked(), 2*need+policy.SetWork(n).Bytes)
	for i := range b.rings {
		// Whatever the quota, this record has to fit into either ring.
		grow = max(grow, need-b.rings[i].Held()*size)
	}
	return max(grow, 0) + b.shared.pool.PageSize()*(1+b.index.Pages()/growthPart)
}

// A step drops at most this much before OnRemove is called. One of Resize drops or moves as much.
const (
	stepRecords = 256
	stepBytes   = 64 << 10
)

// dropStepLocked drops a step's records, or all if no bytes are left to drop in steps,
// and reports whether none is left. Without OnRemove and
// namespaces, a small bucket is dropped without a look at its records.
func (b *bucket) dropStepLocked(left *int) (done bool) {
	if !b.large && b.shared.onRemove == nil && !b.shared.generations.InUse() {
		return true
	}
	records, bytes := 0, 0
	defer func() { *left -= bytes }()
	inSteps := b.shared.onRemove != nil && *left > 0
	for in := range b.inUse() {
		r := b.ring(in)
		for r.Size > 0 {
			if inSteps && (records >= stepRecords || bytes >= stepBytes) {
				return false
			}
			hd, ok := r.Header(r.Tail)
			if !ok {
				b.corruptions.Add(1)
				r.Reset()
				break
			}
			records++
			bytes += hd.Total()
			if hd.Dead {
				r.ReleaseDead(hd)
				continue
			}
			if b.shared.onRemove != nil {
				b.keepRemovedLocked(r, r.Tail, hd, RemovedReset)
			}
			b.uncountLocked(r, r.Tail, hd, b.largeHash(r, r.Tail, hd))
			r.Release(uint64(hd.Total()))
		}
	}
	return true
}
