package ringcache

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// The rings of a bucket.
const (
	smallRing = iota
	mainRing
	ringCount
)

// bucket is a share of the keys with its own lock: an index, rings, and what
// ties them together. Get and its kin take the lock shared, all else takes it
// exclusively. Methods that end in Locked need it; find, get and view need it
// at least shared.
type bucket struct {
	mu     sync.RWMutex
	gets   atomic.Uint64
	misses atomic.Uint64
	index  index
	rings  [ringCount]ring
	shared *commons

	lines   int // cache lines of a typical record
	closed  bool
	large   bool   // one of the buckets for large records
	dither  int    // bytes added to the quota before it is cut to whole chunks
	rest    uint8  // counts Sets between the moves of a growing index
	pending int    // pages that the index waits for
	inflow  int    // bytes set that commons.flow does not know of yet
	unswept uint64 // appended bytes that sweep has not yet answered

	sets, dels            uint64
	evicted, evictedBytes uint64
	collisions            atomic.Uint64
	corruptions           atomic.Uint64
}

func (b *bucket) init(s *commons, dither int, large bool) {
	b.shared = s
	b.dither = dither
	b.large = large
	b.lines = 2
	b.index.pageShift = log2(s.pool.pageSize) - groupShift
	for i := range b.rings {
		b.rings[i].init(s.pool, s.shift, s.posBits)
	}
}

func (b *bucket) windows() windows {
	return windows{small: &b.rings[smallRing].window, main: &b.rings[mainRing].window}
}

// found is the live record of the key that was looked for.
type found struct {
	place
	header
	ring  *ring
	pos   uint64
	bytes []byte // the record; nil if it crosses the end of a chunk
}

// valuePos returns the position of the value.
func (f *found) valuePos() uint64 { return f.pos + uint64(f.size+f.klen) }

// find looks for the record of key k, whose hash is h.
func (b *bucket) find(f *found, k []byte, h uint64) bool {
	x := &b.index
	if len(x.pages) == 0 {
		return false
	}
	tag := tagOf(h)
	for p := x.path(h); ; p.next() {
		g := x.group(p.at)
		for m := g.matches(tag); m != 0; m &= m - 1 {
			i := firstSlot(m)
			s := g.load(i)
			if (s^h)>>slotHashAt != 0 {
				continue
			}
			if r := &b.rings[slotRing(s)]; r.alive(s) && b.match(f, r, s&slotPosMask, k) {
				f.place = place{g: g, at: p.at, i: i}
				return true
			}
		}
		if p.left == 0 || !g.passed() {
			return false
		}
	}
}

// match reports whether the record at pos has key k, and fills in f but for
// its place. The common record, a short one in one chunk, is decoded here in a
// few instructions.
func (b *bucket) match(f *found, r *ring, pos uint64, k []byte) bool {
	r.prefetch(pos, b.lines)
	rec := r.run(pos)
	if len(rec) >= 4 {
		if h, ok := parseShort(rec); ok && h.total() <= len(rec) {
			if string(rec[shortHeader:shortHeader+h.klen]) != string(k) {
				b.collisions.Add(1)
				return false
			}
			f.header, f.ring, f.pos, f.bytes = h, r, pos, rec[:h.total()]
			return true
		}
	}
	return b.matchAny(f, r, pos, k)
}

// matchAny is match for records of every form.
func (b *bucket) matchAny(f *found, r *ring, pos uint64, k []byte) bool {
	h, ok := r.header(pos)
	if !ok {
		b.corruptions.Add(1)
		return false
	}
	if h.klen != len(k) || !r.equal(pos+uint64(h.size), k) {
		b.collisions.Add(1)
		return false
	}
	f.header, f.ring, f.pos = h, r, pos
	if f.bytes = r.run(pos); h.total() <= len(f.bytes) {
		f.bytes = f.bytes[:h.total()]
	} else {
		f.bytes = nil
	}
	return true
}

// get appends the value of k to dst.
func (b *bucket) get(dst, k []byte, h uint64) ([]byte, bool) {
	var f found
	if !b.find(&f, k, h) {
		return dst, false
	}
	if f.bytes != nil {
		return append(dst, f.bytes[f.size+f.klen:]...), true
	}
	return f.ring.read(dst, f.valuePos(), f.vlen), true
}

// view calls fn, if not nil, with the value of k, without a copy unless it
// crosses the end of a chunk.
func (b *bucket) view(k []byte, h uint64, fn func(v []byte)) bool {
	var f found
	if !b.find(&f, k, h) {
		return false
	}
	switch {
	case fn == nil:
	case f.bytes != nil:
		fn(f.bytes[f.size+f.klen : f.total() : f.total()])
	default:
		buf := viewBuffers.Get().(*bytes.Buffer)
		defer viewBuffers.Put(buf)
		buf.Reset()
		buf.Grow(f.vlen)
		fn(f.ring.read(buf.AvailableBuffer(), f.valuePos(), f.vlen))
	}
	return true
}

// viewBuffers are where view puts together values that cross chunks.
var viewBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// setLocked stores the record. On an error the key is absent.
func (b *bucket) setLocked(k, v []byte, h uint64) error {
	if len(b.index.pages) == 0 {
		if err := b.growIndexLocked(1); err != nil {
			return err
		}
	}
	var f found
	replace := b.find(&f, k, h)
	if replace {
		if f.vlen == len(v) {
			f.ring.write(f.valuePos(), v)
			return nil
		}
		b.killLocked(f.ring, f.pos, f.header)
	}
	pos, err := b.appendLocked(k, v, h)
	if err != nil {
		if replace {
			b.index.remove(h, f.place)
		}
		return err
	}
	slot := slotWord(h, mainRing, pos)
	if replace {
		f.store(slot)
	} else if victim, forced := b.index.insert(h, slot, b.windows()); forced {
		b.loseLocked(victim)
	}
	b.tendIndexLocked()
	return nil
}

// appendLocked writes a record at the head of the main ring, counts it, and
// returns its position.
func (b *bucket) appendLocked(k, v []byte, h uint64) (uint64, error) {
	var buf [maxHeader]byte
	hdr := putHeader(&buf, len(k), len(v))
	n := len(hdr) + len(k) + len(v)
	r := &b.rings[mainRing]
	limit := b.limitLocked(n)
	b.evictLocked(r, n, limit)
	if err := r.extend(uint64(n), limit); err != nil {
		return 0, err
	}
	b.sweepLocked(n)
	r.live++
	r.liveBytes += n
	if b.large {
		b.shared.strays(h).Add(1)
	}
	pos := r.append(hdr, k, v)
	r.prefetchHead(b.lines) // for this bucket's next Set
	return pos, nil
}

// killLocked marks a live record dead and takes it out of the counts.
func (b *bucket) killLocked(r *ring, pos uint64, h header) {
	r.kill(pos)
	b.uncountLocked(r, pos, h)
}

// uncountLocked takes a live record out of the counts.
func (b *bucket) uncountLocked(r *ring, pos uint64, h header) {
	r.live--
	r.liveBytes -= h.total()
	if b.large {
		key := b.shared.mix(r.hash(pos+uint64(h.size), h.klen))
		b.shared.strays(key).Add(-1)
	}
}

// loseLocked evicts the entry of a slot that the index had no place for.
func (b *bucket) loseLocked(victim uint64) {
	r := &b.rings[slotRing(victim)]
	if !r.alive(victim) {
		return
	}
	pos := victim & slotPosMask
	if h, ok := r.header(pos); ok {
		b.killLocked(r, pos, h)
		b.evicted++
		b.evictedBytes += uint64(h.total())
	}
}

// limitLocked returns how many chunks the ring may hold now, when a record of
// n bytes is to come.
func (b *bucket) limitLocked(n int) int {
	s := b.shared
	quota := b.quota() - (len(b.index.pages)+b.pending)*s.pool.pageSize
	need := (n + 1<<s.shift - 1) >> s.shift
	limit := max(quota>>s.shift, need)
	if held := b.rings[mainRing].held(); limit > held && s.pool.spare() < (limit-held)<<s.shift {
		// Other buckets hold more than their share for now.
		limit = max(held+max(s.pool.spare(), 0)>>s.shift, need)
	}
	return int(min(uint64(limit), 1<<(s.posBits-2)>>s.shift)) // I3
}

// quota returns the bytes that rings and index may hold together. Small
// buckets have the same quota, but each cuts it to whole chunks at another
// point, so that all together use all of it.
func (b *bucket) quota() int {
	s := b.shared
	if b.large {
		return s.largeTarget() / largeBuckets
	}
	return int(s.quota.Load()) + b.dither
}

// shrinkStep bounds the bytes that a Set evicts beyond what it needs itself,
// when its ring has to become smaller.
const shrinkStep = 4 << 10

// evictLocked releases records at the tail until n more bytes fit into limit
// chunks. A ring that holds more chunks than that shrinks bit by bit.
func (b *bucket) evictLocked(r *ring, n, limit int) {
	soft := uint64(limit) << r.shift
	from := r.size
	for {
		after := r.size + uint64(n)
		// Each step may take a chunk away, and room with it.
		must := after > r.room(limit)
		should := r.size > 0 && after > soft && from-r.size < shrinkStep
		if !must && !should {
			return
		}
		b.evictTailLocked(r)
	}
}

// evictTailLocked releases the oldest record. Its slot stays in the index,
// stale.
func (b *bucket) evictTailLocked(r *ring) {
	h, ok := r.header(r.tail)
	if !ok {
		// Without its length no record behind it can be found either.
		b.corruptions.Add(1)
		r.reset()
		return
	}
	if !h.dead {
		b.uncountLocked(r, r.tail, h)
		b.evicted++
		b.evictedBytes += uint64(h.total())
	}
	r.release(uint64(h.total()))
}

// shrinkLocked evicts until the ring holds no more chunks than it may.
func (b *bucket) shrinkLocked() {
	r := &b.rings[mainRing]
	for limit := b.limitLocked(0); r.size > 0 && r.held() > limit; {
		b.evictTailLocked(r)
	}
}

// While an index grows, moveRun homes move with every moveEvery-th Set. A
// growth by a quarter leaves time for 1.3 homes a Set before the next.
const (
	moveEvery = 8
	moveRun   = 32
)

// tendIndexLocked does the index's share of a Set: it moves homes to a new
// geometry, or starts a larger one when three quarters of the slots are used.
func (b *bucket) tendIndexLocked() {
	x := &b.index
	if x.growing() {
		// Homes move in runs: neighbours cost the processor far less than as
		// many lines one by one.
		if b.rest++; b.rest%moveEvery == 0 {
			x.move(moveRun, b.windows(), b.loseLocked)
		}
		return
	}
	if b.liveLocked()*4 < x.slots()*3 {
		return
	}
	b.pending = max(1, len(x.pages)/3)
	if (len(x.pages)+b.pending)*b.shared.pool.pageSize > b.quota()*3/4 {
		b.pending = 0 // tiny records: the index has its part, and forgets the oldest
		return
	}
	if b.rings[mainRing].held() > b.limitLocked(0) {
		return // the next Sets make room for it
	}
	// A refusal is no harm: the next Set tries again.
	_ = b.growIndexLocked(b.pending)
}

// growIndexLocked adds n pages to the index.
func (b *bucket) growIndexLocked(n int) error {
	pages := make([]chunkRef, 0, n)
	for range n {
		p, err := b.shared.pool.page()
		if err != nil {
			b.shared.pool.putPages(pages)
			return err
		}
		pages = append(pages, p)
	}
	b.index.grow(pages)
	b.pending = 0
	return nil
}

// sweepLocked drops outdated stale slots, at a pace that comes round to every
// group within an eighth of the position space (I5).
func (b *bucket) sweepLocked(appended int) {
	b.unswept += uint64(appended) * uint64(b.index.cur.groups)
	per := uint64(1) << (b.shared.posBits - 3)
	if n := b.unswept / per; n > 0 {
		b.unswept -= n * per
		b.index.sweep(int(n), b.windows())
	}
}

// delLocked removes k and reports whether it was there.
func (b *bucket) delLocked(k []byte, h uint64) bool {
	var f found
	if !b.find(&f, k, h) {
		return false
	}
	b.killLocked(f.ring, f.pos, f.header)
	b.index.remove(h, f.place)
	return true
}

// maxLines bounds what is prefetched of one record: the processor's own
// prefetchers take over from there.
const maxLines = 4

// reportLocked returns the bytes set since the last report, once there is a
// chunk of them, else 0. It is the moment to see how large records are.
func (b *bucket) reportLocked(n int) int {
	b.inflow += n
	if b.inflow < 1<<b.shared.shift {
		return 0
	}
	r := &b.rings[mainRing]
	b.lines = min(max(r.liveBytes, 0)/max(r.live, 1)/64+2, maxLines)
	n, b.inflow = b.inflow, 0
	return n
}

// liveLocked returns the number of entries.
func (b *bucket) liveLocked() int { return b.rings[smallRing].live + b.rings[mainRing].live }

// heldLocked returns the bytes that rings and index hold.
func (b *bucket) heldLocked() int {
	n := len(b.index.pages) * b.shared.pool.pageSize
	for i := range b.rings {
		n += b.rings[i].held() << b.shared.shift
	}
	return n
}

// resetLocked drops all entries and gives the memory back to the pool.
func (b *bucket) resetLocked() {
	b.shared.pool.putPages(b.index.reset())
	for i := range b.rings {
		r := &b.rings[i]
		for b.large && r.size > 0 {
			h, ok := r.header(r.tail)
			if !ok {
				break
			}
			if !h.dead {
				b.uncountLocked(r, r.tail, h)
			}
			r.release(uint64(h.total()))
		}
		r.reset()
	}
	b.pending = 0
}

// close makes every later call miss. The memory goes with the pool.
func (b *bucket) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.index.reset()
	for i := range b.rings {
		b.rings[i] = ring{}
	}
}

// updateStats adds the bucket's share to s.
func (b *bucket) updateStats(s *Stats) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s.GetCalls += b.gets.Load()
	s.Misses += b.misses.Load()
	s.Collisions += b.collisions.Load()
	s.Corruptions += b.corruptions.Load()
	s.SetCalls += b.sets
	s.DelCalls += b.dels
	s.EvictedEntries += b.evicted
	s.EvictedBytes += b.evictedBytes
	s.EntriesCount += uint64(b.liveLocked())
	s.BytesSize += uint64(b.rings[smallRing].liveBytes + b.rings[mainRing].liveBytes)
	s.IndexBytes += uint64(len(b.index.pages) * b.shared.pool.pageSize)
	s.ReservedBytes += uint64(b.heldLocked())
}
