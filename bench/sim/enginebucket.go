package sim

import "github.com/ringcache/ringcache/internal/policy"

// engineRing is a ring of a bucket: entries in the order of their bytes, and the
// chunks that these lie in.
type engineRing struct {
	queue
	chunk    int  // weight of a chunk
	used     int  // weight of its entries
	tail     int  // what of the first chunk they have left
	mapped   int  // chunks from there on
	borrowed bool // the last of them is the first one once more
	released int  // weight that has left since the beginning
}

// held returns how many chunks the ring has.
func (r *engineRing) held() int {
	if r.borrowed {
		return r.mapped - 1
	}
	return r.mapped
}

// fits reports whether the ring, if it may hold limit chunks, has room for a
// weight of size more.
func (r *engineRing) fits(size, limit int) bool {
	if r.borrowed || limit < r.held() {
		limit = r.held()
	}
	return r.used+size <= limit*r.chunk
}

// push adds an entry, for which there is room.
func (r *engineRing) push(key uint32, size, limit int) {
	r.queue.push(key)
	r.used += size
	if need := inChunks(r.tail+r.used, r.chunk); need > r.mapped {
		r.mapped = need
		r.borrowed = need > limit
	}
}

// release gives up the oldest bytes.
func (r *engineRing) release(size int) {
	r.used -= size
	r.tail += size
	r.released += size
	if left := r.tail / r.chunk; left > 0 {
		r.tail -= left * r.chunk
		r.mapped -= left
		r.borrowed = false
	}
}

// trim gives up the chunk of an empty ring.
func (r *engineRing) trim() { r.tail, r.mapped, r.borrowed = 0, 0, false }

// inChunks returns how many chunks a weight takes.
func inChunks(weight, chunk int) int { return (weight + chunk - 1) / chunk }

// engineBucket is a bucket of an engine. Its methods are named after those of the
// library's bucket that they follow.
type engineBucket struct {
	engine *engine
	number int // among the buckets, or the large ones
	large  bool
	policy policy.State
	rings  [2]engineRing
	chunks int // that both rings may hold, as of the last set

	ghosts   []uint32 // keys, in no order
	ghostsOf [2]int   // how many of each ring
	mean     int      // weight of an entry

	// What was set since it last learned.
	records, inflow int
}

func (b *engineBucket) init(e *engine, number int, large bool) {
	b.engine, b.number, b.large = e, number, large
	b.policy = policy.New(policy.S3FIFO)
	for i := range b.rings {
		b.rings[i].chunk = e.chunk
	}
}

func (b *engineBucket) used() int { return b.rings[0].used + b.rings[1].used }
func (b *engineBucket) live() int { return b.rings[0].len() + b.rings[1].len() }

// quota returns how many chunks both rings may hold.
func (b *engineBucket) quota() int {
	if !b.large {
		return b.quotaBeside(0)
	}
	return dealt(b.engine.largeTarget()/b.engine.chunk, largeBuckets, b.number)
}

// quotaBeside returns the quota of a bucket that is not a large one, when those
// hold so much more.
func (b *engineBucket) quotaBeside(more int) int {
	e := b.engine
	return dealt(max(0, int(e.capacity)-e.largeUsed()-more)/e.chunk, len(e.buckets), b.number)
}

// dealt returns what falls to number i when n share alike. What does not divide
// goes to the first ones.
func dealt(chunks, n, i int) int { return (chunks + n - 1 - i) / n }

// set stores a new entry.
func (b *engineBucket) set(key uint32, size int) {
	e := b.engine
	s := &e.standings[key]
	ghost, hasPast := policy.NoGhost, s.freq == policy.MaxFreq
	if s.ghost > 0 {
		ghost = policy.GhostOf(hasPast, b.gone(s), uint64(b.used()))
		if !s.mark { // else a lookup has found it before
			b.policy.GhostFound(s.ring, 1, b.ghostsOf, b.isNear(s))
		}
	}
	b.chunks = min(b.quota(), (b.used()+e.spare())/e.chunk)
	limits := b.limits()
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	ring := b.policy.Admit(ghost, small.fits(size, limits[policy.Small]),
		main.fits(size, limits[policy.Main]))
	limit := b.ownRoom(ring, size)
	if s.ghost > 0 {
		b.forget(s.ghost)
	}
	mark := ghost != policy.NoGhost && b.policy.Full() && (ring == policy.Small || !hasPast)
	*s = standing{ring: ring, large: b.large, mark: mark}
	e.add(key, uint32(size))
	b.rings[ring].push(key, size, limit)
	for float64(len(b.ghosts)) > e.o.Ghosts*float64(b.live()) {
		b.forget(uint32(e.below(len(b.ghosts)) + 1))
	}
	b.report(size)
}

// isNear reports whether a larger ring could still hold the entry of a ghost.
func (b *engineBucket) isNear(s *standing) bool {
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	return policy.IsNear(s.ring, b.gone(s), uint64(small.used), uint64(main.used))
}

// gone returns the weight that the ring of a ghost has dropped since.
func (b *engineBucket) gone(s *standing) uint64 {
	return uint64(b.rings[s.ring].released - s.left)
}

// seek notes that a lookup has found a ghost.
func (b *engineBucket) seek(s *standing) {
	if !s.mark && b.isNear(s) {
		s.mark = true
		b.policy.GhostFound(s.ring, 1, b.ghostsOf, true)
	}
}

// report counts what is set, and learns after each chunk of it.
func (b *engineBucket) report(size int) {
	b.records++
	b.inflow += size
	if b.inflow < b.engine.chunk {
		return
	}
	live := b.live()
	b.mean = b.used() / max(live, 1)
	b.policy.Exchange(b.engine.learner(b.large), live, b.mean)
	if !b.large {
		b.engine.flowed(b.records, b.inflow)
	}
	b.records, b.inflow = 0, 0
}

// limits returns how many chunks each ring may hold now.
func (b *engineBucket) limits() (limit [2]int) {
	small, main := b.rings[policy.Small].held(), b.rings[policy.Main].held()
	limit[policy.Small], limit[policy.Main] =
		b.policy.Limits(b.chunks, small, main, 1+2*b.mean/b.engine.chunk)
	return limit
}

// ownRoom gives a ring room for a new entry, and returns how many chunks it may
// hold.
func (b *engineBucket) ownRoom(ring policy.Ring, size int) int {
	limits := b.limits()
	need := inChunks(size, b.engine.chunk)
	limit := max(limits[ring], need)
	if reach := b.reach(ring); limit > reach {
		b.takeFrom(1-ring, limits[1-ring], limit, need)
		limit = max(min(limit, b.reach(ring)), need)
	}
	work, room := policy.SetWork(size), max(b.chunks*b.engine.chunk, b.used(), size)
	for {
		b.makeRoom(ring, size, limit, &work)
		if b.used()+size <= room {
			return limit
		}
		// Meanwhile main has grown. The library makes up for it with the next Sets.
		b.evictTail(b.fuller(), &work)
	}
}

// reach returns how many chunks a ring has or can get.
func (b *engineBucket) reach(ring policy.Ring) int {
	own, other := b.rings[ring].held(), b.rings[1-ring].held()
	return own + max(0, b.chunks-own-other)
}

// fuller returns the ring that has to give what the bucket holds too much of.
func (b *engineBucket) fuller() policy.Ring {
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	if small.used > 0 && small.held() > b.limits()[policy.Small] || main.used == 0 {
		return policy.Small
	}
	return policy.Main
}

// takeFrom has a ring give up chunks, that the other one may hold limit of, and
// needs some of for the entry that is to come.
func (b *engineBucket) takeFrom(giver policy.Ring, keep, limit, need int) {
	g := &b.rings[giver]
	from, work := g.used, policy.SetWork(need*g.chunk)
	for g.held() > 0 {
		reach := b.reach(1 - giver)
		must := reach < need
		should := reach < limit && g.held() > keep && from-g.used < g.shrinkStep()
		if !must && !should {
			return
		}
		if g.used == 0 {
			g.trim()
			return
		}
		b.evictTail(giver, &work)
	}
}

// shrinkStep bounds what a Set evicts beyond what it needs itself.
func (r *engineRing) shrinkStep() int { return min(4<<10, r.chunk) }

// makeRoom gives a ring of limit chunks room for a weight of size more. A ring
// that holds more than that shrinks bit by bit.
func (b *engineBucket) makeRoom(ring policy.Ring, size, limit int, w *policy.Work) {
	r := &b.rings[ring]
	from, soft := r.used, limit*r.chunk
	for {
		must := !r.fits(size, limit)
		should := r.used > 0 && r.used+size > soft && from-r.used < r.shrinkStep()
		if !must && !should {
			return
		}
		b.evictTail(ring, w)
	}
}

// evictTail takes the oldest entry from the tail of a ring: for good, or to the
// head of main.
func (b *engineBucket) evictTail(ring policy.Ring, w *policy.Work) {
	key := b.rings[ring].pop()
	s, size := &b.engine.standings[key], int(b.engine.size[key])
	var verdict policy.Verdict
	if ring == policy.Small {
		verdict = b.policy.SmallTail(int(s.freq), size, w)
		if s.mark && verdict == policy.Drop {
			s.freq = policy.MaxFreq
		}
		s.mark = false
	} else {
		if s.mark {
			b.policy.Judge(s.freq > 0)
			s.mark = false
		}
		verdict = b.policy.MainTail(int(s.freq), size, w)
	}
	switch verdict {
	case policy.Promote:
		b.promote(key, size, w)
	case policy.Reinsert:
		s.freq--
		main := &b.rings[policy.Main]
		held := main.held()
		main.release(size)
		main.push(key, size, held)
	default:
		b.drop(key, ring, size)
	}
}

// promote moves an entry that has left small's queue, but still has its room, to
// main.
func (b *engineBucket) promote(key uint32, size int, w *policy.Work) {
	limit := b.limits()[policy.Main]
	if size > limit*b.engine.chunk {
		b.drop(key, policy.Small, size)
		return
	}
	b.makeRoom(policy.Main, size, limit, w)
	b.rings[policy.Main].push(key, size, limit)
	b.rings[policy.Small].release(size)
	s := &b.engine.standings[key]
	s.mark = s.freq == 1
	s.freq, s.ring = 0, policy.Main
}

// drop makes a ghost of an entry that has left a ring's queue.
func (b *engineBucket) drop(key uint32, ring policy.Ring, size int) {
	b.engine.standings[key].left = b.rings[ring].released
	b.rings[ring].release(size)
	b.engine.remove(key)
	b.policy.Dropped(ring)
	b.ghosts = append(b.ghosts, key)
	b.ghostsOf[ring]++
	b.engine.standings[key].ghost = uint32(len(b.ghosts))
}

// forget forgets the ghost at a place counted from 1. The last one takes the
// place.
func (b *engineBucket) forget(place uint32) {
	key, last := b.ghosts[place-1], b.ghosts[len(b.ghosts)-1]
	b.ghosts[place-1] = last
	b.ghosts = b.ghosts[:len(b.ghosts)-1]
	b.engine.standings[last].ghost = place
	s := &b.engine.standings[key]
	b.ghostsOf[s.ring]--
	s.ghost = 0
}
