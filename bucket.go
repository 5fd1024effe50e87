package ringcache

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/policy"
)

// ringCount is the number of a bucket's rings: policy.Small and policy.Main.
const ringCount = 2

// bucket is a share of the keys with its own lock: an index, rings, and what
// ties them together. Get and its kin take the lock to read, all else takes it to
// write. Methods that end in Locked need it; for find, get and view, to read is
// enough.
//
// What a Set over an older value writes is in the first cache line, what lookups read of lanes and index in
// the next; a line of what all Sets read follows, and one of each ring. The size is a whole number of lines on 64-bit
// platforms (TestLayout_BucketLines).
type bucket struct {
	aside    *aside     // the Set that was put aside, if there is one
	inflow   uint32     // bytes of records set that commons.flow does not know of yet
	inflown  uint16     // and how many there were
	asideTag uint8      // tag of the Set that was put aside; 0: none
	repeats  uint8      // Sets that have found an older value, one after the other, up to laterFrom
	mu       bucketLock // the rest of this line, and what lookups read of it in the next
	index    index      // the rest of that line; what a Set of a new key changes of it is in the one after

	shared    *commons
	most      int     // bytes of the longest record that it takes
	flights   *flight // loads that may be joined
	closed    bool
	large     bool        // one of the buckets for large records
	mortal    bool        // there is a record with room for an expiry, dead or alive
	crowdedAt uint8       // sixteenths of the index's slots that are used when it grows
	outlook   outlook     // what is known of the next new record
	entry     policy.Ring // the ring that it goes to, if anything is

	rings [ringCount]ring

	departed *[]departed // what has left under the lock; nil without OnEvict
	pending  int32       // pages that the index waits for; below 0: that it is going to give up
	mean     int32       // bytes of a record
	lengths  lengths     // of values
	dither   int32       // bytes added to the quota before it is cut to whole chunks
	appended int         // bytes appended to the rings since sweepLocked last looked
	unswept  uint64      // appended bytes that sweep has not yet answered

	policy policy.State
	next   expected
	claim  claim // chunks for a record that is under way
	reaper reaper

	dels                                    uint64
	loads                                   uint64
	loadErrors                              uint64
	loadsDropped                            uint64
	evictedSmall, evictedMain, evictedCrowd uint64
	evictedBytes                            uint64
	expired, expiredBytes                   uint64
	promotions                              uint64
	reinsertions                            uint64
	ghostHits                               uint64
	collisions                              atomic.Uint64
	corruptions                             atomic.Uint64
	_                                       [32]byte // to a whole number of cache lines, and an odd one: else only half of a cache's sets are used
}

func (b *bucket) init(s *commons, dither int, large bool) {
	b.shared = s
	b.policy = policy.New(s.policy)
	b.dither = int32(dither)
	b.large = large
	b.mu.long = large
	b.most = s.longest(large)
	b.index.pageShift = log2(s.pool.pageSize) - groupShift
	for i := range b.rings {
		b.rings[i].init(s.pool, s.shift, s.posBits)
	}
	b.shapeLocked(s.expected.mean())
}

func (b *bucket) windows() windows {
	return windows{small: &b.rings[policy.Small].window, main: &b.rings[policy.Main].window}
}

// found is the live record of the key that was looked for.
type found struct {
	place // of its slot; on a miss, of the key's ghost
	ghost bool
	header
	ring  *ring
	pos   uint64
	bytes []byte // the record; nil if it crosses the end of a chunk
}

// valuePos returns the position of the value.
func (f *found) valuePos() uint64 { return f.pos + uint64(f.size+f.klen) }

// find looks for the record of key k, whose hash is h. On a miss it tells
// whether there is a ghost of the hash.
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
			r := &b.rings[slotRing(s)]
			if !r.alive(s) {
				f.place, f.ghost = place{g: g, slot: s, at: p.at, i: i}, true
				continue
			}
			if b.match(f, r, s&slotPosMask, k) {
				f.place = place{g: g, slot: s, at: p.at, i: i}
				return true
			}
		}
		if p.left == 0 || !g.passed(h) {
			return false
		}
	}
}

// likely returns the slot of a live record that likely has a key of hash h. The few
// that are not in their home group are not worth a loop.
func (b *bucket) likely(h uint64) (slot uint64, ok bool) {
	x := &b.index
	if len(x.pages) == 0 {
		return 0, false
	}
	g := x.group(x.home(h))
	for m := g.matches(tagOf(h)); m != 0; m &= m - 1 {
		if s := g.load(firstSlot(m)); (s^h)>>slotHashAt == 0 && b.rings[slotRing(s)].alive(s) {
			return s, true
		}
	}
	return 0, false
}

// match reports whether the record at pos has key k, and fills in f but for
// its place. The common record, a short one in one chunk, is decoded here in a
// few instructions.
func (b *bucket) match(f *found, r *ring, pos uint64, k []byte) bool {
	if r.lines > 1 {
		r.prefetchNext(pos)
	}
	rec := r.run(pos)
	if len(rec) >= 4 {
		if h, ok := parseShort(rec); ok && h.total() <= len(rec) {
			if h.klen != len(k) || string(rec[shortHeader:shortHeader+len(k)]) != string(k) {
				b.collisions.Add(1)
				return false
			}
			// The same, but known before the record's line has come: the processor,
			// which foretells the comparison, may ask for the lines of the value.
			h.klen = len(k)
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
	out, ok, sure := b.getDirect(dst, k, h, true)
	if ok || sure {
		return out, ok
	}
	return b.getAny(dst, k, h)
}

// getAny is get for every case.
func (b *bucket) getAny(dst, k []byte, h uint64) ([]byte, bool) {
	if v, ok := b.awaiting(k, h); ok {
		return append(dst, v...), v != nil
	}
	var f found
	if !b.lookup(&f, k, h) {
		return dst, false
	}
	b.touch(&f)
	if f.bytes != nil {
		return append(dst, f.bytes[f.size+f.klen:]...), true
	}
	return f.ring.read(dst, f.valuePos(), f.vlen), true
}

// touch counts a read of a found record.
func (b *bucket) touch(f *found) {
	if b.policy.Kind != policy.FIFO {
		f.place.touch()
	}
}

// view calls fn, if not nil, with the value of k, without a copy unless it
// crosses the end of a chunk.
func (b *bucket) view(k []byte, h uint64, fn func(v []byte)) bool {
	if v, ok := b.awaiting(k, h); ok {
		if v != nil && fn != nil {
			fn(v)
		}
		return v != nil
	}
	var f found
	if !b.lookup(&f, k, h) {
		return false
	}
	b.touch(&f)
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
func (b *bucket) setLocked(w *write) error {
	if len(b.index.pages) == 0 {
		if err := b.startIndexLocked(); err != nil {
			return b.failLocked(w, err)
		}
	}
	var f found
	replace := !w.fresh && b.find(&f, w.k, w.h)
	b.noteRepeatLocked(replace)
	if replace && b.shared.expired(f.header) {
		b.expireLocked(&f, w.h)
		replace, f.ghost = false, false // its place is empty now
	}
	if replace {
		if f.vlen == len(w.v) && f.takes(w.expiry) && f.absent == w.absent {
			b.partLocked(f.ring, f.pos, f.header, w.why())
			if f.timed {
				b.renewLocked(&f, w.expiry)
			}
			f.ring.write(f.valuePos(), w.v)
			return nil
		}
		b.killLocked(f.ring, f.pos, f.header, w.why())
	}
	if b.mortal {
		b.reapLocked()
	}
	ring, l := b.chooseLocked(&f, replace, w)
	limit, pos, err := b.appendLocked(ring, w, l)
	if err != nil {
		if replace {
			b.index.remove(w.h, f.place)
		}
		return b.failLocked(w, err)
	}
	b.foreseeLocked(ring, w.n, limit, !replace && !f.ghost)
	b.putSlotLocked(&f, replace, w.h, ring, pos)
	b.endSetLocked(ring, w.n)
	return nil
}

// endSetLocked does what follows when n bytes have been appended to a ring: the index's share, and
// what the next Set will be glad of.
func (b *bucket) endSetLocked(ring policy.Ring, n int) {
	b.appended += n
	b.sweepLocked()
	b.tendIndexLocked()
	b.prepareLocked(ring)
}

// chooseLocked returns the ring that a record goes to, and how many chunks each may hold, unless there is room for it.
func (b *bucket) chooseLocked(f *found, replace bool, w *write) (ring policy.Ring, l limits) {
	switch {
	case !replace && !f.ghost && b.isOpenLocked(w.n):
		w.room = math.MaxInt // as in addLocked, or the two would not do the same
		return b.entry, l
	case w.room == 0:
		l = b.limitLocked() // else not asked for: a full policy admits without them
	}
	return b.admitLocked(f, replace, w.n, l), l
}

// admitLocked returns the ring that a record of n bytes goes to: a replaced
// one keeps its standing, a new one is for the policy to decide.
func (b *bucket) admitLocked(f *found, replace bool, n int, l limits) policy.Ring {
	if replace {
		return slotRing(f.slot)
	}
	if b.policy.Kind == policy.FIFO {
		return policy.Main
	}
	if f.ghost {
		b.ghostHits++
		ring := slotRing(f.slot)
		near := b.rings[ring].gone(f.slot) <= b.rings[0].size+b.rings[1].size
		b.policy.GhostFound(ring, b.ghostsLocked(), near)
	}
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	return b.policy.Admit(f.ghost, small.fits(n, l.small), main.fits(n, l.main))
}

// putSlotLocked enters a record into the index: in the slot of the one that it
// replaces, in that of its ghost, or in a new one.
func (b *bucket) putSlotLocked(f *found, replace bool, h uint64, ring policy.Ring, pos uint64) {
	if !replace && !f.ghost {
		b.enterLocked(h, ring, pos)
		return
	}
	slot := slotWord(h, ring, pos)
	b.index.latest = slot & (slotRingBit | slotPosMask)
	if replace {
		slot |= f.slot & slotFreqMask
	} else if ring == policy.Main && b.policy.Full() {
		slot |= slotTrialBit
	}
	b.index.store(f.place, slot)
}

// enterLocked enters a record of hash h into a slot of its own.
func (b *bucket) enterLocked(h uint64, ring policy.Ring, pos uint64) {
	slot := slotWord(h, ring, pos)
	b.index.latest = slot & (slotRingBit | slotPosMask)
	at, i := space(b, h)
	if victim, forced := b.index.insertAt(at, i, h, slot, b.windows()); forced {
		b.loseLocked(victim)
	}
}

// ghostsLocked returns how many ghosts there are of each ring: a live entry has
// one slot (I7), and all others are stale (I9).
func (b *bucket) ghostsLocked() (n [ringCount]int) {
	for i := range n {
		n[i] = b.index.used[i] - b.rings[i].live
	}
	return n
}

// appendLocked writes a record at the head of a ring, counts it, and returns how many chunks
// the ring may hold, and the record's position. l is what limitLocked has just said.
func (b *bucket) appendLocked(ring policy.Ring, w *write, l limits) (limit int, pos uint64, err error) {
	var buf [maxHeader]byte
	var hdr []byte
	if w.expiry == 0 {
		hdr = putHeader(&buf, len(w.k), len(w.v))
	} else {
		hdr = putTimedHeader(&buf, len(w.k), len(w.v), w.expiry)
	}
	r := &b.rings[ring]
	limit = b.roomLocked(ring, w, l)
	if err := r.extend(uint64(w.n), limit); err != nil {
		return 0, 0, err
	}
	r.count(1, w.n, w.expiry != 0)
	if w.expiry != 0 {
		b.noteExpiry(w.expiry)
		if w.absent {
			hdr = putMark(&buf, len(w.k), w.expiry)
		}
	}
	b.noteLengthLocked(len(w.v))
	if b.large {
		b.shared.strays(w.h).Add(1)
	}
	return limit, r.append(hdr, w.k, w.v), nil
}

// keyHash returns the hash of the key of the record at pos.
func (b *bucket) keyHash(r *ring, pos uint64, h header) uint64 {
	return b.shared.mix(r.hash(pos+uint64(h.size), h.klen))
}

// strayHash returns the same, if this is a large bucket; a small one counts no
// strays and saves the effort.
func (b *bucket) strayHash(r *ring, pos uint64, h header) uint64 {
	if !b.large {
		return 0
	}
	return b.keyHash(r, pos, h)
}

// flowLocked counts a record of n bytes, and reports whether a chunk or more has been set
// since the last report.
func (b *bucket) flowLocked(n int) bool {
	b.inflown++
	b.inflow += uint32(n)
	return b.inflow >= 1<<(b.shared.shift&63)
}

// reportLocked returns what was set since the last report, once that is a chunk or
// more. It is the moment to learn.
func (b *bucket) reportLocked() (t tally) {
	b.outlook = unforeseen // limits may have changed
	b.learnLocked()
	t = tally{records: int(b.inflown), bytes: int(b.inflow)}
	b.inflown, b.inflow = 0, 0
	return t
}

// liveLocked returns the number of entries.
func (b *bucket) liveLocked() int {
	return b.rings[policy.Small].live + b.rings[policy.Main].live
}

// liveBytesLocked returns the bytes of their records.
func (b *bucket) liveBytesLocked() int {
	return b.rings[policy.Small].liveBytes + b.rings[policy.Main].liveBytes
}

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
	b.overtakeAllLocked()
	pages := b.index.reset()
	b.mu.outwaitGlances()
	b.shared.pool.putPages(pages)
	b.index.patient = false // until the index has grown again
	for i := range b.rings {
		r := &b.rings[i]
		for (b.large || b.shared.onEvict != nil) && r.size > 0 {
			h, ok := r.header(r.tail)
			if !ok {
				break
			}
			if !h.dead {
				b.partLocked(r, r.tail, h, EvictReset)
				b.uncountLocked(r, h, b.strayHash(r, r.tail, h))
			}
			r.release(uint64(h.total()))
		}
		r.reset()
	}
	b.pending = 0
	b.mortal = false
	b.outlook = unforeseen
	b.policy.Emptied()
}

// close makes every later call miss. The memory goes with the pool.
func (b *bucket) close() {
	b.lock()
	defer b.mu.Unlock()
	b.closed = true
	b.index.patient = false
	b.overtakeAllLocked()
	b.mortal = false
	b.outlook = unforeseen
	b.index.reset()
	for i := range b.rings {
		b.rings[i] = ring{}
	}
	b.mu.outwaitGlances()
}
