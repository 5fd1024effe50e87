package store

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

// limit returns how many chunks each ring may hold now.
func (b *Store) limit() limits {
	s := b.Shared
	quota := b.Quota()
	pages := b.Index.Pages() + b.Wanted
	if most := b.maxPages(quota); pages > most {
		pages = most // ShrinkIndex will see to it
	}
	total := max(quota-pages*s.Pool.PageSize(), 0) >> s.Shift
	if held := b.Chunks(); total > held {
		// Other buckets may hold more than their share at the moment.
		total = min(total, held+b.spare())
	}
	return b.divide(total)
}

// spare returns how many chunks the pool can still give, less those that are reserved.
func (b *Store) spare() int {
	spare := b.Shared.Pool.Spare() >> b.Shared.Shift
	if c := b.reserved; c.chunks > 0 {
		spare -= max(0, c.chunks-b.Rings[c.ring].Held())
	}
	return max(spare, 0)
}

// Learn looks at how large records are, tells what the bucket has seen, and takes
// over what all have learned. It waits for nobody.
func (b *Store) Learn() {
	b.Hint = hintUnknown // limits may have changed
	live := b.Live()
	hot := live - b.Cold.Entries()
	mean := (b.Rings[policy.Small].EntryBytes + b.Rings[policy.Main].EntryBytes) / max(hot, 1)
	b.mean = min(mean, math.MaxInt32)
	b.shape(mean)
	if b.watch++; b.watch%watchEach == 0 {
		b.watchMarks()
	}
	if b.policy.Kind == policy.FIFO {
		return
	}
	l := b.Shared.learner(b.Large)
	if !l.mu.TryLock() {
		return // there is a next time
	}
	if b.follows() {
		b.policy.Follow(&l.Learner, mean)
		l.mu.Unlock()
		return
	}
	for i := range b.Sought { // by lookups
		n := b.Sought[i].Swap(0)
		b.policy.GhostFound(policy.Ring(i), int(n), b.Ghosts(), true)
	}
	b.policy.Exchange(&l.Learner, live, mean)
	l.mu.Unlock()
}

// shape sets what depends on the mean size of records.
func (b *Store) shape(mean int) {
	for i := range b.Rings {
		b.Rings[i].Expect(mean)
	}
	b.ShapeCold()
	b.GrowAt = GrowAt(b.policy.Kind, mean, b.EvictedSmall+b.EvictedMain > 0)
}

// hint is what a bucket knows of the next new record, so that it need not ask how
// much its rings may hold. That is asked again once a chunk was set (Learn).
type hint uint8

const (
	hintUnknown hint = iota
	HintFits         // its ring has a place for it, if it is no longer than what is left of a chunk
	HintFull         // its ring has all the chunks it may have, and only live records to give room
)

// hint notes what is known of the next new record, when one of n bytes came
// to a ring of limit chunks. chosen: the policy was free to send it elsewhere.
func (b *Store) hint(to policy.Ring, n, limit int, chosen bool) {
	r := &b.Rings[to]
	usual := b.policy.Dropping() && to == b.policy.Entry()
	b.entry, b.Hint = to, hintUnknown
	_, worth := b.deadest()
	switch {
	case worth || b.Large || b.HasTTL || b.Wanted != 0 || r.Held() > limit:
	case r.Left() >= n:
		if usual || chosen {
			b.Hint = HintFits
		}
	case usual && r.Held() == limit && !r.Fits(n, limit):
		b.Hint = HintFull
	}
}

// makeRoomEarly gives the ring that new records go to room for one of n bytes
// before the key is looked for: meanwhile the line of the index comes. An overwrite
// leaves the room for the next insert. It returns how many chunks the ring may hold
// (HintFull: those that it has); 0 if they are too few.
func (b *Store) makeRoomEarly(n int) (room int) {
	b.Hint = hintUnknown
	r := &b.Rings[b.entry]
	if room = r.Held(); n > room<<b.Shared.Shift {
		return 0
	}
	b.reserved = reservation{b.entry, room}
	for work := b.setWork(n); !r.Fits(n, room); {
		b.EvictTail(b.entry, &work)
	}
	b.reserved = reservation{}
	return room
}

// place returns the ring that a record goes to, where it has room then, and
// how many chunks that may hold. room is what makeRoomEarly has returned.
func (b *Store) place(f *Found, replace bool, w *Write, room int) (to policy.Ring, limit int) {
	isNew := !replace && !f.Ghost && !w.restored
	if isNew && b.Hint == HintFits && b.Rings[b.entry].Left() >= w.Bytes {
		return b.entry, math.MaxInt // nobody has asked, and no chunk is taken
	}
	if w.restored && b.Rings[w.ring].Left() >= w.Bytes {
		return w.ring, math.MaxInt // as nearly always
	}
	var l limits
	if room == 0 {
		l = b.limit() // else not asked for: a full policy admits without them
	}
	to = b.admit(f, replace, w, l)
	switch {
	case room > 0 && to == b.entry:
		return to, room
	case room > 0:
		l = b.limit()
	}
	return to, b.ownRoom(to, w.Bytes, l)
}

// divide returns how many of total chunks each ring may hold.
func (b *Store) divide(total int) limits {
	total = min(total, b.Shared.maxChunks)
	cold := 0
	if b.Cold.On {
		cold = b.coldLimit(total)
		total = max(0, total-max(cold, b.Cold.Held()))
	}
	hasSmall, hasMain := b.Rings[policy.Small].Held(), b.Rings[policy.Main].Held()
	room := 1 + 2*b.mean>>b.Shared.Shift
	small, main := b.policy.Limits(total, hasSmall, hasMain, room)
	return limits{small: small, main: main, both: total, cold: cold}
}

// chunksFor returns how many chunks n bytes take.
func (b *Store) chunksFor(n int) int { return (n + 1<<b.Shared.Shift - 1) >> b.Shared.Shift }

// Chunks returns how many chunks the rings hold.
func (b *Store) Chunks() int {
	return b.Rings[policy.Small].Held() + b.Rings[policy.Main].Held() + b.Cold.Held()
}

// Held returns the bytes that rings and index hold.
func (b *Store) Held() int {
	return b.Index.Pages()*b.Shared.Pool.PageSize() + b.Chunks()<<b.Shared.Shift
}

// Size returns the bytes in all rings, of the dead too. Readers call it without the lock.
//
//go:norace
func (b *Store) Size() int {
	return int(b.Rings[policy.Small].Size+b.Rings[policy.Main].Size) + b.Cold.Size()
}

// Quota returns the bytes that rings and index may hold together if others take theirs. Each
// small bucket cuts the same to whole chunks at another point, so that together they use all.
func (b *Store) Quota() int {
	if b.Large {
		// Small changes of the balance move nothing.
		share := b.Shared.LargeTarget() / LargeBuckets
		return max(share, min(b.Held(), share+share/Hysteresis))
	}
	return b.Shared.smallQuota() + b.stagger
}

// withinReach returns how many chunks a ring has or can get.
func (b *Store) withinReach(r *ring.Ring) int {
	return r.Held() + max(b.Shared.Pool.Spare(), 0)>>b.Shared.Shift
}

// free returns how many chunks more small and main may hold together.
func (b *Store) free(l limits) int {
	return l.both - b.Rings[policy.Small].Held() - b.Rings[policy.Main].Held()
}

// hasFree reports whether main, which has never been full, has room for any record at the
// tail of small out of free chunks: nothing need be compacted then.
func (b *Store) hasFree(l limits) bool {
	return !b.policy.Full() && b.free(l)<<b.Shared.Shift > 2*b.Longest
}

// isOver reports whether small and main hold more chunks than they may.
func (b *Store) isOver(l limits) bool { return b.free(l) < 0 }

// isNearlyFull reports whether small and main have less room than compaction keeps free.
func (b *Store) isNearlyFull(l limits) bool {
	size := b.Rings[policy.Small].Size + b.Rings[policy.Main].Size
	return size+size/aheadShare > uint64(l.both)<<b.Shared.Shift
}

// ShrinkMost bounds the bytes that a bucket gives up at once for a record of less.
const ShrinkMost = 256 << 10

// Shrink drops records until no ring holds more chunks than it may, or n
// bytes of chunks have been given up. It reports false if that is more than a step.
func (b *Store) Shrink(n int) (done bool) {
	from := b.Held()
	b.giveCold(func() bool {
		return b.Cold.Held() > b.limit().cold && from-b.Held() < n
	})
	l := b.limit()
	for i := range b.Rings {
		in := policy.Ring(i)
		r, limit, work := &b.Rings[i], l.of(in), b.setWork(0)
		for r.Size > 0 && r.Held() > limit {
			if from-b.Held() >= n {
				return true
			}
			if b.Removals.IsStep() {
				return false
			}
			b.EvictTail(in, &work)
		}
		if r.Size == 0 && r.Held() > limit {
			r.Trim()
		}
	}
	b.ShrinkIndex()
	return true
}

// Give evicts until n bytes of chunks are given back, or the bucket holds
// no more than keep. It returns the bytes that are missing after a step, or 0.
func (b *Store) Give(n, keep int) (missing int) {
	from := b.Held()
	b.giveCold(func() bool { return b.Held() > keep && from-b.Held() < n })
	for _, in := range []policy.Ring{policy.Main, policy.Small} {
		r, work := &b.Rings[in], b.setWork(n)
		for r.Size > 0 && b.Held() > keep && from-b.Held() < n {
			if b.Removals.IsStep() {
				return n - (from - b.Held())
			}
			b.EvictTail(in, &work)
		}
		if r.Size == 0 && from-b.Held() < n {
			r.Trim()
		}
	}
	return 0
}

// MakeWay evicts what a record would push out of a large bucket, or a step of it, and
// reports false if there is more. What room is made is not kept for the record.
func (b *Store) MakeWay(w *Write) (done bool) {
	if !b.policy.Dropping() {
		return true
	}
	var f Found
	to := b.policy.Entry()
	if b.FindCounting(&f, w.Key, w.Hash) {
		if f.ValueLen == len(w.Value) {
			return true // it is overwritten where it lies
		}
		to = min(index.Ring(f.Slot), policy.Main)
	}
	l, need := b.limit(), b.chunksFor(w.Bytes)
	r, limit, work := &b.Rings[to], max(l.of(to), need), b.setWork(w.Bytes)
	for other := &b.Rings[1-to]; !b.Removals.IsStep(); {
		switch reach := b.withinReach(r); {
		case reach < need && other.Size > 0:
			b.EvictTail(1-to, &work)
		case r.Size > 0 && !r.Fits(w.Bytes, min(limit, max(reach, need))):
			b.EvictTail(to, &work)
		default:
			return true
		}
	}
	return false
}

// IsAtLimit reports whether the bucket holds nearly all that it may.
func (b *Store) IsAtLimit() bool {
	return b.Held()+b.Shared.Pool.ChunkSize()*2 > b.Quota()
}

// HasSpareFor reports whether there is memory for a record of n bytes, wherever it goes.
func (s *Shared) HasSpareFor(n int) bool { return s.Pool.Spare() > n+3*s.Pool.ChunkSize() }

// IsShort reports whether the bucket has not the memory for a record of n bytes, whatever it
// evicts.
func (b *Store) IsShort(n int) bool {
	lack := b.Lack(n)
	if b.Index.Empty() && b.Shared.File != nil {
		lack++ // the page counts as a chunk, wherever it comes from
	}
	return lack > 0
}

// Lack returns how many chunks a bucket lacks for a record of n bytes, whatever it
// evicts.
func (b *Store) Lack(n int) int {
	need := b.chunksFor(n)
	if b.Index.Empty() && b.Shared.File == nil { // else its pages are no chunks
		need++
	}
	return need - b.Chunks() - max(b.Shared.Pool.Spare(), 0)>>b.Shared.Shift
}

// Demand returns the bytes of new chunks and pages that a large bucket takes at
// most for a record of n bytes.
func (b *Store) Demand(n int) int {
	size := b.Shared.Pool.ChunkSize()
	need := (n/size + 2) * size
	grow := min(b.Quota()-b.Held(), 2*need+policy.SetWork(n).Bytes)
	for i := range b.Rings {
		// Whatever the quota, this record has to fit into either ring.
		grow = max(grow, need-b.Rings[i].Held()*size)
	}
	return max(grow, 0) + b.Shared.Pool.PageSize()*(1+b.Index.Pages()/GrowthPart)
}

// A step drops at most this much before OnRemove is called. One of Resize drops or moves as much.
const (
	StepRecords = 256
	StepBytes   = 64 << 10
)

// DropStep drops a step's records, or all if no bytes are left to drop in steps,
// and reports whether none is left. Without OnRemove and
// namespaces, a small bucket is dropped without a look at its records.
func (b *Store) DropStep(left *int) (done bool) {
	if !b.Large && !b.Shared.Notifies && !b.Shared.Generations.InUse() {
		return true
	}
	records, bytes := 0, 0
	defer func() { *left -= bytes }()
	inSteps := b.Shared.Notifies && *left > 0
	for in := range b.InUse() {
		r := b.Ring(in)
		for r.Size > 0 {
			if inSteps && (records >= StepRecords || bytes >= StepBytes) {
				return false
			}
			hd, ok := r.Header(r.Tail)
			if !ok {
				b.Corruptions.Add(1)
				r.Reset()
				break
			}
			records++
			bytes += hd.Total()
			if hd.Dead {
				r.ReleaseDead(hd)
				continue
			}
			if b.Shared.Notifies {
				b.keepRemoved(r, r.Tail, hd, Dropped)
			}
			b.uncount(r, r.Tail, hd, b.largeHash(r, r.Tail, hd))
			r.Release(uint64(hd.Total()))
		}
	}
	return true
}
