package ringcache

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/singleflight"
)

// ringCount is the number of a bucket's rings, policy.Small and policy.Main, without those
// of its cold part.
const ringCount = 2

// bucket is a share of the keys with its own lock: an index, rings, and what ties them
// together. Methods that end in Locked need the lock.
//
// Writers exclude each other by mu. Readers do not take it: seq is a sequence lock
// (bucket_read.go), odd exactly while somebody who holds mu may change what readers look
// at, and never the same again (I13). That is in the first cache line, and in that of the
// ring that they look into (TestLayout_BucketLines).
type bucket struct {
	mu      sync.Mutex
	seq     atomic.Uint64
	index   index.Index
	touches bool // lookups raise frequencies
	large   bool // one of the buckets for large records
	form    record.Form

	_     [5]byte // to a cache line on 64-bit platforms
	rings [ringCount]ring.Ring

	shared *shared
	cold   *coldPart // shared.noCold without Options.Compressor
	policy policy.State
	calls  singleflight.List[load] // loads that callers may join
	closed bool

	longest  int // bytes of the longest record that it takes
	mean     int // bytes of a record
	growAt   int // sixteenths of the index's slots that are used when it grows
	stagger  int // bytes added to the quota before it is cut to whole chunks
	wanted   int // pages that the index waits for; below 0: that it is going to give up
	internal int // live records of the cache's own
	appended int // bytes appended to the rings since sweepLocked last looked
	unswept  uint64
	rewrites uint64      // overwrites in place, but for those of short records (see walker.copyLong)
	hint     hint        // what is known of the next new record
	entry    policy.Ring // the ring that it goes to, if anything is
	reserved reservation
	next     nextVictim
	hasTTL   bool  // there is a live record with room for an expiry
	number   int32 // of the bucket, the large ones last
	sweeps   int32 // walks of DeleteExpired that are under way
	watch    uint8 // counts up to the next look at marks
	expirer  expirer
	searched uint64    // generations that were forgotten before the last whole walk
	removals *removals // entries removed under the lock; nil without OnRemove

	sought     [ringCount]atomic.Uint32 // ghosts of each ring that lookups have found
	nearMisses atomic.Uint64            // lookups that have missed and found one

	marks [ringCount]mark // they tell how long entries stay

	inflow arrival // records set that shared.arrivals does not know of yet
	counters

	_ [32]byte // to whole cache lines on 64-bit platforms: buckets lie side by side
}

// write is one change to one key on its way through the cache: a Set, on a condition or
// not, or a removal. It is passed by pointer and stays on the caller's stack.
type write struct {
	k, v     []byte
	h        uint64 // hash of k
	n        int    // bytes of the record
	expiry   uint32 // tick, 0: never
	cond     cond
	silent   bool          // a part of a call that is counted elsewhere
	quiet    bool          // notifyQuiet calls OnRemove later
	del      bool          // it counts as a Del, not as a Set
	same     bool          // the value is there already: only its form changes
	packed   bool          // not done: it needs the value, which is packed: to be tried again
	negative bool          // a negative entry instead of a value; it has an expiry
	internal bool          // a record of the cache's own
	keeps    bool          // an entry that is there keeps its expiry
	reads    bool          // finding the entry is a read of it, which is not counted yet
	unstored bool          // nothing was stored, and that is no error
	reason   RemovalReason // why an older value is removed
	old      []byte        // for ifEqual
	found    *[]byte       // for ifAbsent: the value that is there is appended to it; may be nil
	call     *loadCall     // for ifListed: the load that writes
	removals *removals     // for OnRemove. A pointer, so that k and v need not be on the heap
}

// why returns the reason that OnRemove is told for the older value.
func (w *write) why() RemovalReason {
	if w.same {
		return unsaid
	}
	return w.reason
}

// cond is what a write asks of the value that is there.
type cond uint8

const (
	always    cond = iota
	ifAbsent       // there is none
	ifEqual        // it is write.old
	ifChanged      // it is not write.v
	ifListed       // nothing: write.call must not have been invalidated
)

// measure counts the bytes of the record.
func (w *write) measure(form record.Form) {
	w.n = len(w.k) + len(w.v)
	switch {
	case w.negative:
		if w.n += form.NegativeSize(); w.expiry == 0 {
			w.expiry = math.MaxUint32 // it has one: the last tick that there is
		}
	case w.internal:
		w.n += form.InternalSize()
	default:
		w.n += form.HeaderSize(len(w.k), len(w.v), w.expiry != 0)
	}
}

// counters are what a bucket adds to Stats.
type counters struct {
	sets, dels                              uint64
	loads, loadErrors, loadsDropped         uint64
	evictedSmall, evictedMain, evictedCrowd uint64
	evictedCold, evictedBytes               uint64
	expired, expiredBytes                   uint64
	promotions, reinsertions, ghostHits     uint64
	movedBytes                              uint64
	collisions, corruptions, staleHits      atomic.Uint64
	coldHits                                atomic.Uint64
}

// init makes a bucket ready for use.
func (b *bucket) init(s *shared, number, stagger int, large bool) {
	b.shared = s
	b.number = int32(number)
	b.policy = policy.New(s.policy)
	b.touches = s.policy != policy.FIFO
	b.stagger = stagger
	b.large = large
	b.longest = s.longest(s.bound(), large)
	b.index.Init(s.pool.PageSize())
	for i := range b.rings {
		b.rings[i].Init(s.pool, s.shift, s.posBits)
	}
	b.cold = &s.noCold
	b.shapeLocked(0)
}

// lock takes the bucket to write. The load behind the store keeps later stores from passing
// it: nothing passes the load, and the load does not pass the store.
func (b *bucket) lock() {
	b.mu.Lock()
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	delay.Point()
}

// tryLock is lock that reports false if somebody has the bucket. Only so may the lock of
// another bucket be held.
func (b *bucket) tryLock() bool {
	if !b.mu.TryLock() {
		return false
	}
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	return true
}

// unlock gives back what lock took.
func (b *bucket) unlock() {
	delay.Point()
	b.seq.Store(b.seq.Load() + 1)
	b.mu.Unlock()
}

// windows returns the live parts of the rings.
func (b *bucket) windows() index.Windows {
	return index.Windows{
		Small: &b.rings[policy.Small].Window,
		Main:  &b.rings[policy.Main].Window,
		Queue: &b.cold.queue().Window,
		Cold:  &b.cold.store().Window,
	}
}

// ring returns a ring of the bucket. Readers call it with what a slot says.
//
//go:norace
func (b *bucket) ring(in policy.Ring) *ring.Ring {
	if in.IsCold() {
		return &b.cold.rings[in-policy.Queue]
	}
	return &b.rings[in]
}

// setLocked stores the record. On an error the key is absent, and so it is after a fault in
// the caller's value, which debug.SetPanicOnFault makes a panic.
func (b *bucket) setLocked(w *write) error {
	if b.index.Empty() {
		if err := b.startIndexLocked(w.n); err != nil {
			return err
		}
	}
	room := 0
	// OnRemove is not called for a record that is written again.
	if b.hint == hintFull && !w.same && !b.hasForgotten() {
		room = b.makeRoomEarlyLocked(w.n)
	}
	rec, slot, s, got := b.candidate(w.h)
	if got == hit && b.overwritePlainLocked(rec, s, w) {
		return nil
	}
	f := found{internal: w.internal}
	there := false
	if got != miss || slot != nil { // else it is new, and no ghost tells of it
		there = b.findLocked(&f, w.k, w.h)
	}
	if there && b.shared.Expired(f.Expiry) {
		b.expireLocked(&f, w.h)
		there, f.ghost = false, false // its place is empty now
	}
	faulted := there
	defer func() {
		if faulted {
			b.removeLocked(&f, w.h, unsaid)
		}
	}()
	if there && index.Ring(f.Slot).IsCold() {
		b.killLocked(f.ring, f.pos, f.Header, w.h, w.why())
		there, f.ghost, f.dead = false, true, true // the policy had dropped it
	}
	if there && b.overwriteLocked(&f, w) {
		faulted = false
		return nil
	}
	err := b.insertLocked(&f, there, w, room)
	faulted = false
	return err
}

// removeAtLocked removes the live record that slot s of hash h leads to, and the slot.
func (b *bucket) removeAtLocked(s, h uint64) {
	in, pos := index.Ring(s), index.Pos(s)
	r := b.ring(in)
	hd, ok := r.Header(pos)
	if p, there := b.index.Find(h, in, pos); ok && there {
		b.killLocked(r, pos, hd, h, unsaid)
		b.index.Remove(p)
	}
}

// insertLocked appends a record to a ring and enters it into the index: in the slot of the
// one that it replaces, in that of its ghost, or in a new one. room is what
// makeRoomEarlyLocked has returned, or 0.
func (b *bucket) insertLocked(f *found, replace bool, w *write, room int) error {
	if replace {
		b.killLocked(f.ring, f.pos, f.Header, w.h, w.why())
		f.dead = true
	}
	if b.hasTTL || b.hasForgotten() {
		b.expireSomeLocked()
	}
	if !b.fitsQuotaLocked(w) {
		if f.dead {
			b.index.Remove(f.Place)
		}
		w.unstored = true
		return nil
	}
	to, limit := b.placeLocked(f, replace, w.n, room)
	pos, err := b.appendLocked(to, limit, w)
	if err != nil {
		if f.dead {
			b.index.Remove(f.Place)
		}
		return err
	}
	delay.Point()
	if b.cold.on && !replace && !f.dead {
		b.cold.inserts++
	}
	b.hintLocked(to, w.n, limit, !replace && !f.ghost)
	b.putSlotLocked(f, replace, w.h, to, pos)
	if !f.dead {
		b.orderLocked(w)
	}
	b.appended += w.n
	b.sweepLocked()
	b.tendIndexLocked()
	b.prepareLocked(to)
	return nil
}

// appendLocked writes a record at the head of a ring that may hold limit chunks and has
// room for it, counts it, and returns its position.
func (b *bucket) appendLocked(to policy.Ring, limit int, w *write) (uint64, error) {
	r := &b.rings[to]
	if err := r.Extend(uint64(w.n), limit); err != nil {
		return 0, err
	}
	var buf [record.MaxHeader]byte
	var header []byte
	switch {
	case w.negative:
		header = b.form.PutNegative(&buf, len(w.k), w.expiry)
	case w.internal:
		header = b.form.PutInternal(&buf, len(w.k), len(w.v))
		b.internal++
	default:
		header = b.form.Put(&buf, len(w.k), len(w.v), w.expiry)
	}
	pos := r.Append(header, w.k, w.v)
	r.Count(1, w.n, w.expiry != 0)
	b.countKeyLocked(w.k, 1, w.n)
	b.noteExpiry(w.expiry)
	if b.large {
		b.shared.largeKeysOf(w.h).Add(1)
	}
	return pos, nil
}

// putSlotLocked enters a record into the index.
func (b *bucket) putSlotLocked(f *found, replace bool, h uint64, to policy.Ring, pos uint64) {
	slot := index.Slot(h, to, pos)
	b.index.SetLatest(slot)
	switch {
	case replace && index.Ring(f.Slot).IsCold():
		slot = index.WithTrial(slot) // for the one read
	case replace:
		slot = index.WithFreqOf(slot, f.Slot)
	case !f.ghost:
		if victim, forced := b.index.Insert(slot, index.Tag(h), b.windows()); forced {
			b.loseLocked(victim)
		}
		return
	case to == policy.Main && b.policy.Full():
		slot = index.WithTrial(slot)
	}
	b.index.Store(f.Place, slot)
}

// deleteLocked removes the key and reports whether it was there; if taken is not nil, it
// appends the value to it. What is expired was not there, nor is a negative entry one.
func (b *bucket) deleteLocked(w *write, taken *[]byte) bool {
	f := found{internal: w.internal}
	if !b.findLocked(&f, w.k, w.h) {
		return false
	}
	if b.shared.Expired(f.Expiry) {
		b.expireLocked(&f, w.h)
		return false
	}
	if taken != nil {
		if w.packed = f.isPacked(); w.packed {
			return false
		}
		*taken, _ = f.ring.Read(*taken, f.valuePos(), f.ValueLen) // w.k may lie in it
	}
	b.removeLocked(&f, w.h, w.why())
	return f.Kind != record.Negative
}

// removeLocked removes the record f of hash h, unless it is dead, and its slot.
func (b *bucket) removeLocked(f *found, h uint64, why RemovalReason) {
	if !f.dead {
		b.killLocked(f.ring, f.pos, f.Header, h, why)
	}
	b.index.Remove(f.Place)
}

// killLocked marks a live record of hash h as dead, and takes it out of the counts.
func (b *bucket) killLocked(
	r *ring.Ring, pos uint64, hd record.Header, h uint64, why RemovalReason,
) {
	if b.shared.onRemove != nil {
		b.keepRemovedLocked(r, pos, hd, why)
	}
	r.Kill(pos)
	r.DeadBytes += hd.Total()
	if b.hint == hintFull && r.WorthCompacting() {
		b.hint = hintUnknown // there are not only live records any more
	}
	b.uncountLocked(r, pos, hd, h)
}

// uncountLocked takes the live record of hash h at pos out of the counts.
func (b *bucket) uncountLocked(r *ring.Ring, pos uint64, hd record.Header, h uint64) {
	b.cold.count(r, pos, hd, -1)
	if g, ok := b.generationAt(r, pos, hd); ok {
		b.countInLocked(g, -1, -hd.Total())
	}
	b.uncountGoneLocked(r, hd, h)
}

// uncountGoneLocked is uncountLocked of what was in r, and the cold part has uncounted.
func (b *bucket) uncountGoneLocked(r *ring.Ring, hd record.Header, h uint64) {
	r.Count(-1, hd.Total(), hd.HasExpiry)
	if hd.Kind == record.Internal {
		b.internal--
	}
	if b.large {
		b.shared.largeKeysOf(h).Add(-1)
	}
}

// loseLocked evicts the entry of a slot that the index had no place for.
func (b *bucket) loseLocked(victim uint64) {
	r := b.ring(index.Ring(victim))
	if !r.Live(victim) {
		return
	}
	pos := index.Pos(victim)
	hd, ok := r.Header(pos)
	if !ok {
		return
	}
	h := b.keyHash(r, pos, hd)
	if b.shared.Expired(hd.Expiry) {
		b.killExpiredLocked(r, pos, hd, h)
		return
	}
	b.killLocked(r, pos, hd, h, RemovedEvicted)
	b.evictedCrowd++
	b.evictedBytes += uint64(hd.Total())
}

// keyHash returns the hash of the key of the record at pos.
func (b *bucket) keyHash(r *ring.Ring, pos uint64, hd record.Header) uint64 {
	return b.shared.mix(r.Hash(pos+uint64(hd.Size), hd.KeyLen))
}

// liveLocked returns the number of live records.
func (b *bucket) liveLocked() int {
	return b.rings[policy.Small].Entries + b.rings[policy.Main].Entries + b.cold.entries()
}

// liveBytesLocked returns the bytes of their records.
func (b *bucket) liveBytesLocked() int {
	return b.rings[policy.Small].EntryBytes + b.rings[policy.Main].EntryBytes + b.cold.bytes()
}

// deadBytesLocked returns the bytes of the dead records.
func (b *bucket) deadBytesLocked() (n int) {
	for in := range b.inUse() {
		n += b.ring(in).DeadBytes
	}
	return n
}

// resetLocked drops all entries, of which nobody is to be told, and gives the memory back to
// the pool.
func (b *bucket) resetLocked() {
	b.forgetLocked()
	b.shared.pool.PutPages(b.index.Reset())
	for in := range b.inUse() {
		b.ring(in).Reset()
	}
	b.cold.forget()
	b.wanted = 0
	b.policy.Emptied()
}

// forgetLocked forgets what was known of the entries.
func (b *bucket) forgetLocked() {
	b.calls.InvalidateAll()
	b.hasTTL = false
	b.internal = 0
	b.hint = hintUnknown
	b.next.known = false
	b.marks = [ringCount]mark{}
}

// close makes every later call miss. The memory goes with the pool.
func (b *bucket) close() {
	b.lock()
	defer b.unlock()
	b.closed = true
	b.forgetLocked()
	b.index.Close()
	for in := range b.inUse() {
		b.ring(in).Close()
	}
	b.cold.forget()
}
