package store

// How a bucket makes room: in one loop, vacate, which passes records at the tails of its rings. The
// policy says what becomes of each (tail.go); limit.go says how much a ring may hold.
//
// A record that was replaced, deleted or invalidated, or has expired, keeps its bytes until
// the tail passes it. A ring with enough dead bytes is compacted: live records move from its
// tail to its head, in their order, until a dead one comes to the tail. This is the cleaning
// of a log-structured file system (Rosenblum, Ousterhout: The Design and Implementation of a
// Log-Structured File System, SOSP 1991) in first-in first-out order.

import (
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ring"
)

// vacate passes records at the tails of rings, one after another, as long as next returns a ring to
// pass one of.
func (b *Store) vacate(w *policy.Work, next func() (in policy.Ring, more bool)) {
	for in, more := next(); more; in, more = next() {
		b.passTail(in, w)
	}
}

// While a ring is over its limit, each Set evicts a little more than it needs: 4 mean records,
// within 512 bytes to 4 KB. The learner moves the limits all the time; if more were evicted at
// once, the slowest hundredth of Sets would take longer.
const (
	shrinkRecords = 4
	shrinkLeast   = 512
	shrinkStep    = 4 << 10
)

// mayShrink reports whether a Set that has evicted so many bytes may evict more than it needs
// itself. It may not while a ring is worth compacting: the next Sets reclaim dead bytes instead.
func (b *Store) mayShrink(bytes uint64, w *policy.Work) bool {
	if _, worth := b.deadest(); worth {
		return false
	}
	step := min(max(shrinkRecords*int(b.mean), shrinkLeast), shrinkStep)
	return bytes < uint64(step) && (w.Records > 0 || b.policy.Filled)
}

const (
	// Compaction begins a little before a ring is full, when room for 1/aheadShare of what the
	// bucket holds is left, so that dead records behind many live ones are reached in time. A Set
	// of n bytes then moves up to aheadShare*n bytes.
	aheadShare = 64

	// A Set that has no room moves at most so many bytes, or sixteen times its own size: the dead ones
	// may be behind many short live records, which count as passCost at least. Then the policy evicts.
	// That happens only if dead records appear in a full ring, and all of them behind so many live
	// ones.
	compactBytes = 256 << 10
)

// roomFor chooses the ring that a record goes to, and makes room for it there. It returns the ring,
// and how many chunks it may hold.
func (b *Store) roomFor(f *Found, w *Write) (to policy.Ring, limit int) {
	to = b.entry
	r := &b.Rings[to]
	isNew := f.Presence == Absent && !w.Restored
	limit = r.Held()
	if isNew && b.hint != hintUnknown && r.Left() >= w.Bytes {
		return to, limit
	}
	full := b.hint == hintFull && w.Bytes <= limit<<b.Shared.Shift
	if full && !isNew {
		to = b.admit(f, w, limits{}) // a full policy admits without limits
	}
	if full && to == b.entry {
		b.makeRoom(to, w.Bytes, limit)
		return to, limit
	}
	b.hint = hintUnknown
	l := b.limits()
	if !full {
		to = b.admit(f, w, l)
	}
	return to, b.ownRoom(to, w.Bytes, l)
}

// admit returns the ring that a record goes to: one that is replaced or restored keeps its
// standing, a new one is for the policy to decide.
func (b *Store) admit(f *Found, w *Write, l limits) policy.Ring {
	small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]
	ghost := policy.NoGhost
	switch {
	case f.Presence == Present:
		return min(index.Ring(f.Slot), policy.Main) // of the cold part, to main
	case b.policy.Kind.HasOneRing() || w.Restored && w.Ring == policy.Main:
		return policy.Main
	case f.Presence != Absent && !w.Restored:
		ghost = policy.GhostOf(index.HasPast(f.Slot), b.gone(f.Slot), small.Size+main.Size)
		if !index.IsMarked(f.Slot) { // else a lookup has found it before
			b.policy.GhostFound(origin(f.Slot), 1, b.ghosts(), b.isNear(f.Slot))
		}
	}
	return b.policy.Admit(ghost, small.Fits(w.Bytes, l.small), main.Fits(w.Bytes, l.main))
}

// ownRoom makes room for a new record of n bytes in a ring, and returns how many chunks the ring
// may hold.
func (b *Store) ownRoom(to policy.Ring, n int, l limits) int {
	r := &b.Rings[to]
	need := b.chunksFor(n)
	has, over := b.reachFor(to, need, l), b.isOver(l)
	// Nothing is compacted for small while main has never been full, and free chunks have room for
	// any record at small's tail.
	full := over || !r.Fits(n, has) &&
		(to == policy.Main || b.policy.Filled || b.free(l)<<b.Shared.Shift <= 2*b.Longest)
	if full || b.isNearlyFull(l) {
		if full {
			b.search(false)
		}
		b.compact(to, n)
		l = b.limits()
		if full {
			l = b.limitsFor(n)
		}
	}
	limit := max(l.of(to), need)
	if b.cold.on {
		b.vacate(&policy.Work{}, func() (policy.Ring, bool) {
			return b.cold.oldest(), b.withinReach(r) < need && b.cold.held() > 0 && !b.Removals.IsStep()
		})
	}
	if limit > b.withinReach(r) || b.isOver(l) {
		b.takeFrom(1-to, l, r, limit, need)
		limit = max(min(limit, b.withinReach(r)), need)
	}
	b.makeRoom(to, n, limit)
	return limit
}

// reachFor returns how many chunks a ring may hold for a record that needs need of them, as long as
// no ring gives up any.
func (b *Store) reachFor(to policy.Ring, need int, l limits) int {
	return min(max(l.of(to), need), b.withinReach(&b.Rings[to]))
}

// makeRoom makes room for a new record of n bytes in a ring that may hold limit chunks.
func (b *Store) makeRoom(to policy.Ring, n, limit int) {
	if r := &b.Rings[to]; r.Size+uint64(n) <= uint64(limit)<<b.Shared.Shift {
		return
	}
	b.reserved = reservation{to, limit}
	work := policy.WorkFor(n, b.Shared.mostMoved)
	b.passFor(to, n, limit, &work)
	b.reserved = reservation{}
}

// passFor passes records of a ring until n more bytes fit into limit chunks. A ring that holds more
// chunks than that shrinks bit by bit.
func (b *Store) passFor(in policy.Ring, n, limit int, w *policy.Work) {
	r := &b.Rings[in]
	soft, from := uint64(limit)<<b.Shared.Shift, r.Size
	for r.Size+uint64(n) > soft &&
		(!r.Fits(n, limit) || r.Size > 0 && b.mayShrink(from-r.Size, w)) {
		b.passTail(in, w) // may take a chunk away, and room with it
	}
}

// takeFrom makes a ring give up chunks for ring r, which may hold limit chunks, and needs need
// chunks for the record that is being stored. The giver gives what r needs at once, and what it
// holds above its own limit bit by bit.
func (b *Store) takeFrom(giver policy.Ring, l limits, r *ring.Ring, limit, need int) {
	g, keep := &b.Rings[giver], l.of(giver)
	from, work := g.Size, policy.WorkFor(need<<b.Shared.Shift, b.Shared.mostMoved)
	b.vacate(&work, func() (policy.Ring, bool) {
		reach := b.withinReach(r)
		must := reach < need
		over := (reach < limit || b.isOver(l)) && g.Held() > keep
		return giver, g.Held() > 0 && (must || over && b.mayShrink(from-g.Size, &work))
	})
}

// compact compacts rings until one of these is true: ring to has room for n more bytes and a
// reserve, and no ring holds more than it may; no ring is worth compacting; the work of one Set is
// done. It evicts no live entry.
func (b *Store) compact(to policy.Ring, n int) {
	r, need := &b.Rings[to], b.chunksFor(n)
	held, limit, over, l := -1, 0, false, limits{}
	b.squeeze(n, func(moved int) bool {
		if now := b.chunks(); now != held { // limits depend on it
			l = b.limits()
			held, limit, over = now, b.reachFor(to, need, l), b.isOver(l)
		}
		// Beyond its share it moves only what it must.
		return r.Fits(n, limit) && !over && (!b.isNearlyFull(l) || moved > aheadShare*n)
	})
}

// squeeze compacts rings until enough, which gets the bytes moved so far, reports true, or no ring
// is worth compacting, or the work of a Set of n bytes is done; then it reports false. It evicts no
// live entry.
func (b *Store) squeeze(n int, enough func(moved int) bool) (done bool) {
	most := min(max(compactBytes, policy.WorkFor(n, b.Shared.mostMoved).Bytes), b.Shared.mostMoved)
	work := policy.Work{Records: most / passCost, Bytes: most, Compacts: true}
	b.vacate(&work, func() (policy.Ring, bool) {
		in, worth := b.deadest()
		done = !worth || enough(most-work.Bytes)
		return in, !done && !work.IsDone()
	})
	return done
}

// IsAtLimit reports whether a small bucket holds nearly its share or more, all of it live entries,
// or is below its quota while the pool has nothing left. In that case it may have dead bytes: an
// index that can't grow evicts entries anywhere in a ring.
func (b *Store) IsAtLimit() bool {
	_, worth := b.deadest()
	held := b.held() + 2<<b.Shared.Shift
	return !worth && held > int(b.Shared.quota.Load()) || b.spare() == 0 && held <= b.quota()
}

// Lack returns how many chunks a bucket lacks for a record of n bytes even if it evicts all
// entries; 0 or less if it lacks none.
func (b *Store) Lack(n int) int {
	need := b.chunksFor(n)
	if b.Index.Empty() {
		need++ // its page counts as a chunk, whatever its source
	}
	return need - b.chunks() - max(b.Shared.Pool.Spare(), 0)>>b.Shared.Shift
}

// MayLack reports whether a record of n bytes does not fit into the chunks of small and main.
func (b *Store) MayLack(n int) bool {
	return n > (b.Rings[policy.Small].Held()+b.Rings[policy.Main].Held())<<b.Shared.Shift
}

// Demand returns the most bytes of new chunks and pages that a large bucket takes for a record of n
// bytes, and how many of them it can't do without: whatever its quota, the record has to fit into
// either ring. If it has enough dead bytes, it compacts first and takes only pages.
func (b *Store) Demand(n int) (want, must int) {
	p, size := b.Shared.Pool, b.Shared.Pool.ChunkSize()
	need, pages := (n/size+2)*size, p.PagesSize(1+b.Index.Pages()/growthPart)
	if _, worth := b.deadest(); worth && b.deadBytes() >= 2*need {
		return pages, pages
	}
	want = min(b.quota()-b.held(), 4*need)
	for i := range b.Rings {
		must = max(must, need-b.Rings[i].Held()*size)
	}
	return max(want, must) + pages, must + pages
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

// tooLarge returns a ring that holds more chunks than it may, if there is one.
func (b *Store) tooLarge(l limits) (policy.Ring, bool) {
	switch {
	case b.cold.held() > l.cold:
		return b.cold.oldest(), true
	case b.Rings[policy.Small].Held() > l.small:
		return policy.Small, true
	}
	return policy.Main, b.Rings[policy.Main].Held() > l.main
}

// KeepQuota tells Give, in place of a number of bytes, that a bucket may keep its quota, but no
// more dead bytes than it needs for compaction. No bucket evicts as long as live entries leave
// enough memory (keptFree), and a large one only if all of them have more than their share.
const KeepQuota = -1

// Give compacts, then evicts until n bytes of chunks are given back, or the bucket holds no more
// than keep. Each ring gives up what it holds above its part. It returns the bytes that are missing
// after a step, or 0.
func (b *Store) Give(n, keep int) (missing int) {
	defer b.tellNeed()
	defer b.sweep() // moved records use up positions (I5)
	from, work := b.held(), policy.WorkFor(n, b.Shared.mostMoved)
	live, spares := keep, false
	if keep == KeepQuota {
		keep = b.quota()
		spares = b.Shared.FreeOfLive(keptFree) > 0 || b.Large && !b.Shared.largeIsOver()
		live = min(keep, b.need()+b.need()/hysteresis)
	}
	least := max(live, from-n)
	if !b.squeeze(n, func(int) bool { return b.held() <= least }) {
		return b.held() - least
	}
	least = max(keep, from-n)
	if (b.Large || b.held() > least) && b.search(true) {
		return max(n-(from-b.held()), 0) // to compact first
	}
	if spares {
		return 0
	}
	chunks := max(0, least-b.Index.Pages()*b.Shared.Pool.PageSize()) >> b.Shared.Shift
	b.vacate(&work, func() (in policy.Ring, more bool) {
		missing = b.held() - least
		if missing <= 0 || b.Removals.IsStep() {
			return 0, false
		}
		if in, more = b.tooLarge(b.divide(chunks)); !more {
			in, more = b.tooLarge(limits{})
		}
		return in, more
	})
	if missing > 0 && b.Removals.IsStep() {
		return missing
	}
	b.keepPages(b.maxPages(b.quota())) // which may have fallen far
	return 0
}

// A step drops at most this much before OnRemove is called. A step of Resize drops or moves as
// much.
const (
	StepRecords = 256
	StepBytes   = 64 << 10
)

// DropStep drops the records of one step, or all of them once *left, the bytes to be dropped in
// steps, is used up. It reports whether no record needs to be dropped before Reset. That is so at
// once for a small bucket without OnRemove and namespaces.
func (b *Store) DropStep(left *int) (done bool) {
	if !b.Large && !b.Shared.Notifies && !b.Shared.Generations.InUse.Load() {
		return true
	}
	records, bytes := 0, 0
	defer func() { *left -= bytes }()
	inSteps := b.Shared.Notifies && *left > 0
	for in := range b.inUse() {
		r := b.Ring(in)
		for r.Size > 0 {
			if inSteps && (records >= StepRecords || bytes >= StepBytes) {
				return false
			}
			hd, ok := r.Header(r.Tail)
			if !ok {
				b.dropRing(r)
				break
			}
			records++
			bytes += hd.Total()
			if !hd.Dead {
				why := b.reasonOr(Dropped, r, r.Tail, hd)
				b.kill(r, r.Tail, hd, b.largeHash(r, r.Tail, &hd), why)
			}
			r.ReleaseDead(hd)
		}
	}
	return true
}

// Fit is the progress of making a bucket smaller. It has two parts: first all buckets compact, then
// some give up a chunk each, as long as the cache holds too much.
type Fit struct {
	Evicts bool // a chunk is given up; else only what live records do not need
	Loss   int  // then the most bytes of live records that may be lost, or Step clears Evicts
	Done   bool
	begun  bool
	total  int // chunks that the bucket is to hold
	moves  int // bytes of records that may still be moved
}

// Step does one step.
func (f *Fit) Step(b *Store) {
	if !f.begun {
		b.Longest = b.Shared.Longest(b.Shared.Bound(), b.Large)
		f.begun, f.total, f.moves = true, b.chunks()-1, b.size()
		f.Done = b.Closed || f.Evicts && (f.total < 0 || b.loss() > f.Loss)
		f.Evicts = f.Evicts && !f.Done
	}
	if f.Done = f.Done || b.Closed; f.Done {
		return
	}
	f.Done = b.shed(f.Evicts, f.total, &f.moves)
	b.sweep() // moved records use up positions (I5)
	b.tellNeed()
	if f.Done && b.live() == 0 {
		b.Reset()
	} else if f.Done {
		b.repackIndex()
	}
}

// repackIndex shrinks an index if far fewer pages will do. They come from the pool: if each bucket
// kept some of its old ones, hardly any chunk cut into pages would become idle.
func (b *Store) repackIndex() {
	n, few := b.fewPages()
	if !few {
		return
	}
	if pages, err := b.Shared.Pool.Pages(n); err == nil {
		b.rebuildIndex(pages, b.Index.TakenPages())
	} else {
		b.keepPages(n)
	}
}

// loss returns the bytes of live records that small and main lose with a chunk.
func (b *Store) loss() int {
	small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]
	kept := (small.Held() + main.Held() - 1) << b.Shared.Shift
	return min(small.EntryBytes+main.EntryBytes-kept, 1<<b.Shared.Shift)
}

// shed moves records, and, if evict is set, evicts some, until the rings hold no more than total
// chunks together, or no more than their live records need, or the work of a step is done. It
// reports whether one of the former is true. Up to moves bytes in all are moved: as long as they
// last, no entry is evicted while the rings hold chunks that they do not need.
func (b *Store) shed(evict bool, total int, moves *int) (done bool) {
	work := policy.WorkFor(0, b.Shared.mostMoved)
	work.Records = StepRecords
	work.Bytes = min(*moves, max(work.Bytes, b.Longest), b.Shared.mostMoved)
	budget, from := work.Bytes, b.size()
	defer func() { *moves -= budget - work.Bytes }()
	left := StepRecords
	b.vacate(&work, func() (in policy.Ring, more bool) {
		loose, join, ok := b.loosest()
		ok = ok && *moves > 0
		if evict && b.chunks() > total { // else later Sets even out the parts
			in, more = b.tooLarge(b.divide(total))
		}
		if done = !more && (evict || !ok); done {
			return in, false
		}
		if work.Compacts, work.Join = ok, join; ok {
			in = loose
		}
		if left--; work.Compacts && work.IsDone() {
			return in, false
		}
		return in, left >= 0 && from-b.size()+budget-work.Bytes < StepBytes
	})
	return done
}

// loosest returns the ring, small or main, that holds most chunks beyond those that its live
// records need, if there is one. The moves of its records, from tail to head, free these chunks. If
// there is none, but the rings together hold one too many, join tells to move records from small
// to main.
func (b *Store) loosest() (in policy.Ring, join, ok bool) {
	most, live, held := 0, 2*int(b.mean), 0
	for i := range b.Rings {
		r := &b.Rings[i]
		live, held = live+r.EntryBytes, held+r.Held()
		if more := r.Held() - b.chunksFor(r.EntryBytes+int(b.mean)); more > most {
			in, ok, most = policy.Ring(i), true, more
		}
	}
	if small, main := &b.Rings[policy.Small], &b.Rings[policy.Main]; !ok && small.Held() > 0 &&
		b.chunksFor(live) < held {
		if main.DeadBytes > 0 && !main.Fits(2*int(b.mean), 0) {
			return policy.Main, false, true
		}
		return policy.Small, true, true
	}
	return in, false, ok
}
