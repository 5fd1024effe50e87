// Package store implements a bucket of a cache without its lock: an index, rings, and the state
// that keeps them consistent. It never takes the lock of a bucket: the caller of a method that
// changes a Store must hold it. Methods that readers may call without the lock say so.
package store

import (
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/torn"
)

// RingCount is the number of a bucket's rings, policy.Small and policy.Main, without those
// of its cold part.
const RingCount = 2

// Store is a bucket without its lock. A caller that changes it must hold the bucket's lock. These
// are its methods:
//
//   - for readers without the lock: Candidate, Find, CanPutOff, NoteGhostMiss, CountOddities, Ring
//   - one entry: IsForgotten, Lookup, FindOrExpire, NoteRead, MoveHomes, Set, EndWrite, Arrived,
//     Fail, Restore, Delete, Touch, PutOff, Keep
//   - memory: IsAtLimit, Lack, MayLack, Demand, Await, SetIncoming, Give, GivePages, Enlarge
//   - all entries, in steps: Walk, IsLate, Freq, EndWalk, DeleteStep, DropStep, and the methods of
//     Keys, Long and Fit
//   - the cold part: ReadCold, Promote, DropDamaged, TakeWaiting, PackWaiting, PutAway
//   - a cache from a file or a snapshot: SizeIndex, AdoptChunks, EnterRecords, Settle
//   - its life: Init, Reset, Close
//   - figures: Sizes
//   - for tests: Sink, ColdBegun, FindsInTime
//
// The fields that every lookup reads are in the first two cache lines of the bucket, together with
// its sequence; a record in main takes one line more (TestLayout_BucketLines).
type Store struct {
	Index   index.Index
	Touches bool // lookups raise frequencies
	Large   bool // one of the buckets for large records
	Form    record.Form
	Closed  bool

	// Mortal tells lookups that nearly all records have an expiry: they read the clock early.
	Mortal atomic.Bool // its 4 bytes make Rings[policy.Main] begin a cache line on 64-bit platforms
	Rings  [RingCount]ring.Ring

	Shared *Shared
	cold   *coldPart // Shared.noCold where there is none
	policy policy.State

	windows index.Windows // the live parts of the rings

	Longest   int         // the longest record that the bucket takes, in bytes
	mean      int32       // the mean size of a record, in bytes
	stagger   int32       // bytes added to the quota before it is cut to whole chunks
	growAt    int16       // load factor at which the index grows, in sixteenths
	Number    int16       // of the bucket, the large ones last
	pageDelta int32       // pages that the index is about to get
	walks     int32       // walks that began and have not ended, except that of the expirer
	hasTTL    bool        // there is a live record with room for an expiry
	strict    bool        // Write.Strict of the last insert
	hint      hint        // whether the next new record fits
	entry     policy.Ring // the ring that it goes to, if that is known
	seen      int32       // bytes of the longest record that there ever was
	learnAt   int32       // it learns once inflow has these bytes: a chunk; 1 in a large bucket
	appended  int         // bytes appended to the rings since sweep last looked
	unswept   uint64
	Rewrites  uint64 // values overwritten in place, except by overwritePlain
	Plain     uint64 // values overwritten in place by overwritePlain; neither count decreases (I18)
	reserved  reservation
	victim    nextVictim
	about     uint64            // hash of the write under way, whose entry stays
	usage     *generation.Usage // of its generation, if it has one
	unsure    unsure
	told      int // the need that tellNeed reported last
	toldHeld  int // the memory of a large bucket that EndWrite reported last, or Await
	incoming  int // bytes of the longest record under way to a large bucket
	expirer   expirer
	searched  uint64    // generations forgotten before the last complete walk began
	Removals  *Removals // entries removed under the lock; nil without OnRemove

	sought     [RingCount]atomic.Uint32 // ghosts of each ring found by lookups
	NearMisses atomic.Uint64            // misses that found a ghost

	inflow Arrival // records stored since the bucket last learned
	counters
}

// counters are what a bucket adds to Stats.
type counters struct {
	Sets, Dels               uint64
	Evicted, EvictedBytes    uint64
	Expired                  uint64
	Promotions, Reinsertions uint64
	MovedBytes               uint64
	Collisions, Corruptions  atomic.Uint64
	ColdHits                 atomic.Uint64
	QueueFull                uint64 // records left uncompressed: the queue was full
}

// Init makes a bucket ready for use. Large buckets have the highest numbers. The bucket's quota
// gets stagger bytes more.
func (b *Store) Init(s *Shared, number, stagger int, large bool) {
	b.Shared = s
	b.Number = int16(number)
	b.policy = policy.New(s.Policy)
	b.Touches = s.Policy != policy.FIFO
	b.stagger = int32(stagger)
	b.Large = large
	b.Longest = s.Longest(s.Bound(), large)
	if b.learnAt = int32(s.Pool.ChunkSize()); large {
		b.learnAt = 1
	}
	b.Index.Init(s.Pool.PageSize())
	for i := range b.Rings {
		b.Rings[i].Init(s.Pool, s.Shift, s.PosBits)
	}
	b.cold = &s.noCold
	if s.Compression != nil && !large {
		b.cold = &coldPart{on: true}
		b.cold.init(s)
	}
	b.windows = index.Windows{
		&b.Rings[policy.Small].Window, &b.Rings[policy.Main].Window,
		&b.cold.queue.Window, &b.cold.ring.Window,
	}
	if s.File != nil {
		b.inFile(number)
	}
	b.shape(0)
}

// Ring returns a ring of the bucket. Readers call it without the lock, with the ring of a slot that
// may be torn.
//
//go:norace
func (b *Store) Ring(in policy.Ring) *ring.Ring {
	switch in {
	case policy.Queue:
		return &b.cold.queue
	case policy.Cold:
		return &b.cold.ring
	}
	return &b.Rings[in]
}

// Set stores the record. After an error the key is absent, and also after a memory fault in the
// caller's value that debug.SetPanicOnFault has turned into a panic, once EndWrite was called.
func (b *Store) Set(w *Write) error {
	if b.Index.Empty() {
		if err := b.startIndex(w.Bytes); err != nil {
			return err
		}
	}
	if v := &b.victim; v.known && v.hash != w.Hash && b.hint == hintFull && !w.RewriteOnly &&
		!b.hasForgotten() {
		// While the index's cache line is being fetched. If this turns out to be an overwrite, the room
		// is left to the next insert.
		b.about = w.Hash
		if held := b.Rings[v.ring].Held(); w.Bytes <= held<<b.Shared.Shift {
			b.makeRoom(v.ring, w.Bytes, held)
		}
		b.about = 0
	}
	rec, slot, s, got := b.Candidate(b.Index.Group(b.Index.Geometry(w.Hash).Home(w.Hash)), w.Hash)
	if got == Hit && b.overwritePlain(rec, s, w) {
		return nil
	}
	var f Found
	if got != Miss || slot != nil { // else the key is new, and has no ghost
		b.FindOrExpire(w, &f)
	}
	if f.Presence == Present && index.Ring(f.Slot) >= policy.Queue {
		b.kill(f.Ring, f.Pos, f.Header, w.Hash, w.why())
		f.Presence = Killed
	}
	if f.Presence == Present && b.overwrite(&f, w) {
		return nil
	}
	return b.insert(&f, w)
}

// unsure is a slot whose record is being replaced by bytes of the caller, whose memory may fault:
// while it is on, the record is not to be relied on.
type unsure struct {
	on         bool
	slot, hash uint64
}

// EndWrite must be called before the lock is released after a change. After a panic in Set, it
// removes what the Set has left.
func (b *Store) EndWrite() {
	if b.unsure.on || b.Large {
		b.endWrite()
	}
}

// endWrite is the rare part of EndWrite.
func (b *Store) endWrite() {
	if b.unsure.on {
		b.removeUnsure()
	}
	if n := b.held(); b.Large && n != b.toldHeld {
		b.Shared.AddHeld(n - b.toldHeld)
		b.toldHeld = n
	}
}

func (b *Store) removeUnsure() {
	s, h := b.unsure.slot, b.unsure.hash
	b.unsure.on = false
	in, pos := index.Ring(s), index.Pos(s)
	p, ok := b.Index.Find(h, in, pos)
	if !ok {
		return
	}
	r := b.Ring(in)
	if hd, ok := r.Header(pos); ok && !hd.Dead && r.Live(pos) {
		b.kill(r, pos, hd, h, Unreported)
	}
	b.Index.Remove(p)
}

// insert appends a record to a ring and enters it into the index: in the slot of the record that it
// replaces, in that of its ghost, or in a new one.
func (b *Store) insert(f *Found, w *Write) error {
	b.strict = w.Strict
	if f.Presence == Present {
		b.kill(f.Ring, f.Pos, f.Header, w.Hash, w.why())
	}
	if f.Presence >= Killed {
		b.unsure = unsure{true, f.Slot, w.Hash}
	}
	if b.hasTTL || b.hasForgotten() {
		b.hint = hintUnknown // what has expired makes room first
		b.expireSome()
	}
	to, limit := b.roomFor(f, w)
	pos, err := b.append(to, limit, w)
	b.unsure.on = false
	if err != nil {
		b.hint = hintUnknown
		if f.Presence >= Killed {
			b.Index.Remove(f.Place)
		}
		return err
	}
	if b.hint == hintUnknown { // else limit is only what the ring holds
		b.setHint(to, w.Bytes, limit, f.Presence == Absent)
	}
	torn.Delay()
	b.putSlot(f, w, to, pos)
	if b.appended += w.Bytes; b.appended > 1<<b.Shared.Shift {
		b.sweep()
	}
	b.tendIndex()
	b.prepare(to)
	return nil
}

// append writes a record at the head of a ring that may hold limit chunks and has
// room for it, counts it, and returns its position.
func (b *Store) append(to policy.Ring, limit int, w *Write) (uint64, error) {
	r := &b.Rings[to]
	if err := r.Extend(uint64(w.Bytes), limit); err != nil {
		return 0, err
	}
	var buf [record.MaxHeader]byte
	pos := r.Append(b.Form.Put(&buf, w.Kind, len(w.Key), len(w.Value), w.Times), w.Key, w.Value)
	b.count(r, w)
	return pos, nil
}

// count counts the record of a write, which is in ring r now.
func (b *Store) count(r *ring.Ring, w *Write) {
	r.Count(1, w.Bytes, w.Times.Deadlines != record.Timeless)
	b.seen = max(b.seen, int32(w.Bytes))
	if w.Kind&record.Spaced != 0 {
		b.Shared.Generations.CountIn(b.usage, generation.Of(w.Key), 1, w.Bytes)
		if b.usage.IsForgotten() { // by now: a walk that knows of it may have come too far
			b.searched, b.expirer.forgotten = 0, 0
		}
	}
	if w.Times.Expiry != 0 {
		b.noteExpiry(w.Times.Expiry)
	}
	if b.Large {
		b.Shared.LargeKeysOf(w.Hash).Add(LargeKey(w.Hash))
	}
}

// putSlot enters a record into the index. If it replaces another one, that is f.
func (b *Store) putSlot(f *Found, w *Write, to policy.Ring, pos uint64) {
	slot := index.Slot(w.Hash, to, pos)
	switch {
	case f.Presence == Present && index.Ring(f.Slot) >= policy.Queue:
		slot = index.WithMark(slot) // on probation for the one read
	case f.Presence == Present:
		slot = index.WithFreq(slot, index.Freq(f.Slot))
	case w.Restored && b.Touches:
		slot = index.WithFreq(slot, w.Freq)
	case f.Presence != Absent && b.policy.Filled && (to == policy.Small || !index.HasPast(f.Slot)):
		slot = index.WithMark(slot)
	}
	b.enter(f, slot, w.Hash)
}

// enter puts the slot of a record of hash h into the index: in the place of f, if that is the
// record that it replaces, which is dead now, or its key's ghost.
func (b *Store) enter(f *Found, slot, h uint64) {
	if f.Presence != Absent {
		b.Index.Store(f.Place, slot)
	} else if victim, forced := b.Index.Insert(slot, index.Tag(h), &b.windows); forced {
		b.displace(victim)
	}
}

// Delete removes the key and reports whether it had a value. If taken is not nil, it appends the
// value to *taken; if that value is packed, it sets w.Packed and removes nothing. An expired entry
// has no value, and neither has a negative one.
func (b *Store) Delete(w *Write, taken *[]byte) bool {
	var f Found
	if !b.FindOrExpire(w, &f) {
		return false
	}
	if taken != nil {
		if w.Packed = f.IsPacked(); w.Packed {
			return false
		}
		*taken, _ = f.Ring.Read(*taken, f.ValuePos(), f.ValueLen) // w.Key may lie in it
	}
	b.remove(&f, w.Hash, w.why())
	b.tellNeed()
	return f.Kind.Base() != record.Negative
}

// remove removes the record f of hash h, and its slot.
func (b *Store) remove(f *Found, h uint64, why Reason) {
	b.kill(f.Ring, f.Pos, f.Header, h, why)
	b.Index.Remove(f.Place)
}

// kill marks a live record of hash h as dead, and takes it out of the counts.
func (b *Store) kill(
	r *ring.Ring, pos uint64, hd record.Header, h uint64, why Reason,
) {
	if b.Shared.Notifies {
		b.keepRemoved(r, pos, hd, why)
	}
	switch why {
	case Expired:
		b.Expired++
	case Evicted:
		b.countEvicted(&hd)
	}
	r.Kill(pos)
	r.DeadBytes += hd.Total()
	b.noteDead(r)
	b.uncount(r, pos, &hd, h)
}

// noteDead must be called when a ring has more dead bytes: they may be enough to give room.
func (b *Store) noteDead(r *ring.Ring) {
	if b.hint == hintFull && r.WorthCompacting() {
		b.hint = hintUnknown
	}
}

// uncount takes the live record of hash h at pos out of the counts.
func (b *Store) uncount(r *ring.Ring, pos uint64, hd *record.Header, h uint64) {
	if hd.Kind&record.Spaced != 0 {
		if g, ok := b.generationAt(r, pos, *hd); ok {
			b.Shared.Generations.Count(g, -1, -hd.Total())
		}
	}
	b.uncountGone(r, hd, h)
}

// uncountGone is uncount without the counts that need the bytes of the record in r, which may be
// gone: those of namespaces.
func (b *Store) uncountGone(r *ring.Ring, hd *record.Header, h uint64) {
	r.Count(-1, hd.Total(), hd.Deadlines != record.Timeless)
	if b.Large {
		b.Shared.LargeKeysOf(h).Add(-LargeKey(h))
	}
}

// displace evicts the entry of a slot that the index had no place for.
func (b *Store) displace(victim uint64) {
	r, pos := b.Ring(index.Ring(victim)), index.Pos(victim)
	hd, ok := r.Header(pos)
	if !ok || !r.Live(pos) {
		return
	}
	b.kill(r, pos, hd, b.keyHash(r, pos, hd), b.reasonOr(Evicted, r, pos, hd))
}

// reasonOr returns why the live record at pos is removed: it has expired, or its namespace was
// forgotten; otherwise because of why.
func (b *Store) reasonOr(why Reason, r *ring.Ring, pos uint64, hd record.Header) Reason {
	switch {
	case b.Shared.Expired(hd.Expiry):
		return Expired
	case b.isForgotten(r, pos, hd):
		return Deleted
	}
	return why
}

// keyHash returns the hash of the key of the record at pos.
func (b *Store) keyHash(r *ring.Ring, pos uint64, hd record.Header) uint64 {
	x := r.Hash(pos+uint64(hd.Size), hd.KeyLen)
	if hd.Kind&record.Spaced != 0 {
		x = ^x
	}
	return b.Shared.Mix(x)
}

// Sizes are the numbers of entries and bytes in a bucket.
type Sizes struct {
	Entries   int // live records
	LiveBytes int // of the live records
	DeadBytes int // of the dead ones
	Cold      int // of the live records, those in the cold part
	Mean      int // bytes of a record that is not in the cold part, lately

	IndexBytes int

	Held, Quota int // bytes of rings and index, and how many those may be
}

// Sizes returns the sizes of the bucket.
func (b *Store) Sizes() Sizes {
	return Sizes{
		Entries: b.live(), LiveBytes: b.liveBytes(), DeadBytes: b.deadBytes(),
		Cold: b.cold.queue.Entries + b.cold.ring.Entries, Mean: int(b.mean),
		IndexBytes: b.Index.Pages() * b.Shared.Pool.PageSize(), Held: b.held(), Quota: b.quota(),
	}
}

// hasForgotten reports whether there may be entries of a forgotten generation.
func (b *Store) hasForgotten() bool { return b.searched != b.Shared.Generations.Forgotten.Load() }

// live returns the number of live records.
func (b *Store) live() int {
	return b.Rings[policy.Small].Entries + b.Rings[policy.Main].Entries +
		b.cold.queue.Entries + b.cold.ring.Entries
}

// liveBytes returns the bytes of the live records.
func (b *Store) liveBytes() int {
	return b.Rings[policy.Small].EntryBytes + b.Rings[policy.Main].EntryBytes +
		b.cold.queue.EntryBytes + b.cold.ring.EntryBytes
}

// deadBytes returns the bytes of the dead records.
func (b *Store) deadBytes() (n int) {
	for in := range b.inUse() {
		n += b.Ring(in).DeadBytes
	}
	return n
}

// Reset drops all entries without a call of OnRemove, and gives the memory back to the pool.
func (b *Store) Reset() {
	b.forget()
	if !b.Index.Empty() {
		b.Shared.Indexes.Add(-1)
		b.Shared.Pool.PutPages(b.Index.Reset())
	}
	for in := range b.inUse() {
		b.Ring(in).Reset()
	}
	b.pageDelta = 0
	b.policy.Emptied()
	b.tellNeed()
}

// forget resets what the bucket knows of its entries.
func (b *Store) forget() {
	b.hasTTL = false
	b.Mortal.Store(false)
	b.hint = hintUnknown
	b.victim.known = false
	if b.cold.on {
		b.cold.begun, b.cold.signalled = false, false
	}
}

// Close makes every later call miss. The memory is given back with the pool.
func (b *Store) Close() {
	b.Closed = true
	b.forget()
	b.Index.Reset() // its pages are released with the pool
	for in := range b.inUse() {
		b.Ring(in).Close()
	}
}
