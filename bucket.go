package ringcache

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/torn"
)

// bucket is a part of the keys with its own lock: the store of the entries, and the synchronization
// of its users.
//
// Writers exclude each other by mu. Readers seldom take it: seq is a sequence lock, odd exactly
// while a holder of mu may change data that readers look at, and never the same value again (I13).
type bucket struct {
	seq atomic.Uint64
	mu  sync.Mutex
	store.Store
	calls singleflight.List[loadResult] // loads that callers may join
	// On 64-bit platforms, the size is that of whole cache lines (TestLayout_BucketLines).
}

// Loaded is the result of a [BatchLoadFunc] for one key. Its fields are the results of a
// [LoadFunc].
type Loaded[V any] struct {
	Value V
	TTL   time.Duration // 0 means Options.TTL
	Err   error         // ErrAbsent means that the key has no value
}

// loaded is the Loaded of a [Cache].
type loaded = Loaded[[]byte]

// loadResult is the result of a load for a key. If there is no value, Err is ErrAbsent itself.
type loadResult struct {
	loaded
	panicked *LoadPanic
}

// failed reports whether the load ended with a panic or an error other than ErrAbsent.
func (l *loadResult) failed() bool {
	return l.panicked != nil || l.Err != nil && l.Err != ErrAbsent
}

// loadCall is the load of a key in progress.
type loadCall = singleflight.Call[loadResult]

// lookupMode selects the effects of a lookup.
type lookupMode uint16

const (
	withValue   lookupMode = 1 << iota // append the value
	counted                            // count in Stats, including near misses
	touching                           // raise the frequency
	orStale                            // accept expired entries that Options.StaleIfError keeps
	wantPromote                        // move the entry from the cold part to main
	precounted                         // already counted, as a hit
	renewing                           // extend the expiry (Options.ExpireAfterAccess)
	asWritten                          // the key is the caller's: not hashed, without a prefix
	inSpace                            // counted in the namespace too

	reading = touching | renewing // the effects of a read on an entry
	getMode = withValue | counted | reading
)

// outcome is the result of a lookup, of an attempt at one, or of engine.next, which decides what
// follows from it. It is one type because a batch keeps all three in the same field.
type outcome uint8

const (
	// Of a lookup.
	miss     = outcome(store.Miss)
	hit      = outcome(store.Hit)     // the value was found
	unclear  = outcome(store.Unclear) // of store.Store.Candidate alone
	negative = unclear + iota         // a load found no value: a miss except to loads
	stale                             // the value has expired, and Options.StaleIfError keeps it

	// Of an attempt: engine.lookupAny goes on.
	elsewhere // not here, but perhaps in a large bucket
	inCold    // in the cold part: to be read by engine.lookupCold
	toPutOff  // found, and its expiry must be extended (engine.putOff)
	retry     // torn: the bucket was written to meanwhile

	// Of engine.next.
	needsRefresh // usable, but a load of it must be started
)

// write is a change to one key on its way through the cache: a Set, conditional or not, or a
// removal. It is passed by pointer.
type write struct {
	store.Write

	// What is to be done.
	life    lifetime  // of a new entry, or of every one unless keeps is set
	cond    cond      // when
	keeps   bool      // an existing entry keeps its TTL
	del     bool      // counts as a Del, not as a Set
	repeats bool      // an unmet condition is no end of the call, which is then not counted
	expires uint32    // for ifSame: when old does
	old     []byte    // for ifEqual and ifSame
	found   *[]byte   // for ifAbsent: the existing value is appended to it; may be nil
	call    *loadCall // for ifListed: the load that writes

	// How far it has come.
	reads    bool            // finding the entry is a read that is not counted yet
	counted  bool            // already, or elsewhere
	large    bool            // of RewriteOnly: the entry is in its large bucket, or fits only there
	inLarge  bool            // the large bucket of the key is locked
	unstored bool            // nothing is to be stored, and that is no error
	quiet    bool            // the caller passes the removals to OnRemove
	removals *store.Removals // for OnRemove; a pointer, so that k and v need not be on the heap
}

// cond is the condition of a write on the existing value.
type cond uint8

const (
	always    cond = iota
	ifAbsent       // there is no value
	ifEqual        // it is write.old
	ifSame         // it is write.old, and expires at write.expires
	ifChanged      // it is not write.Value
	ifListed       // no condition on the value: write.call must not have been invalidated
)

// lifetime determines when a new entry expires: after its own TTL, or according to Options.
type lifetime struct {
	ttl   time.Duration
	given bool
}

// byOptions is the lifetime of an entry that is stored without a TTL.
var byOptions lifetime

// withTTL returns the lifetime of an entry that is stored with a TTL.
func withTTL(ttl time.Duration) lifetime { return lifetime{ttl, true} }

// The rules of the sequence lock.
//
// A reader loads seq, looks up the key, copies the value, and loads seq again. If both loads return
// the same even number, no writer was active meanwhile, and the data read is conclusive. Otherwise
// it may be torn: the reader discards it and retries. Between the two loads, these rules hold:
//
//   - Loads may be torn or stale: no data is trusted, and every bound is checked against memory
//     that is always mapped. Tables only become longer; memory stays mapped as long as the Cache is
//     reachable, and an index page never becomes anything else.
//   - Of the bucket, only a frequency is modified, by compare-and-swap of a slot that was read: in
//     the worst case, that of another entry is raised.
//   - A fence precedes the second load.
//
// Speed depends on how much of the next lookup the processor starts while it waits for a record. So
// the common lookup has two halves, store.Store.Candidate and store.ValueIn: everything that need
// not wait for the record, above all the two atomic operations, is done before its first use.
//
// The race detector would report torn reads, so the functions that make them are marked norace; in
// a race build they are not inlined either.

// lock locks the bucket for writing. The load after the store prevents later stores from passing
// it: nothing passes the load, and the load does not pass the store.
func (b *bucket) lock() {
	b.mu.Lock()
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	torn.Delay()
}

// tryLock is lock that reports false if the bucket is locked. While a bucket is locked, another
// bucket may be locked only by tryLock, except for one large bucket while a small one is locked.
func (b *bucket) tryLock() bool {
	if !b.mu.TryLock() {
		return false
	}
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	return true
}

// unlock releases the lock where nothing was removed.
func (b *bucket) unlock() { b.unlockFor(nil) }

// unlockFor releases the lock after a write, and hands the entries removed under it to the write.
func (b *bucket) unlockFor(w *write) {
	b.EndWrite()
	if b.Removals != nil {
		b.takeRemovalsLocked(w)
	}
	torn.Delay()
	b.seq.Store(b.seq.Load() + 1)
	b.mu.Unlock()
}

// isUnchanged is a reader's second load: it reports whether seq is still the sequence.
func (b *bucket) isUnchanged(seq uint64) bool {
	torn.Delay()
	torn.Fence()
	return b.seq.Load() == seq
}

// read looks up k, whose hash is h, and appends its value to dst, for records of every form. It
// takes no lock. Under look, the outcome is never retry; under lock, which makes the sequence odd,
// it always is. The expiry is that of the entry found.
//
//go:norace
func (b *bucket) read(
	dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	seq := b.seq.Load()
	if seq&1 != 0 {
		return dst, 0, retry
	}
	var f store.Found
	out = dst
	if b.Find(&f, k, h) {
		isNegative, now := f.Kind.Base() == record.Negative, uint32(0)
		if f.Expiry != 0 {
			now = b.Shared.Now()
		}
		expired := now > 0 && now >= f.Expiry
		switch {
		// Before the copy: k may overlap dst.
		case expired && (mode&orStale == 0 || isNegative || now >= b.Shared.KeptUntil(f.Expiry)):
		case isNegative:
			got = negative
		case !expired && mode&renewing != 0 && b.Shared.Idles && b.CanPutOff(&f):
			return dst, 0, toPutOff // or torn: the caller looks again
		case index.Ring(f.Slot) >= policy.Queue && mode&(withValue|touching) != 0:
			return dst, 0, inCold // or torn: the caller looks again
		case expired:
			got = stale
		default:
			got = hit
		}
		if (got == hit || got == stale) && mode&withValue != 0 {
			var whole bool
			if out, whole = b.copyValue(&f, dst, seq); !whole {
				return dst, 0, retry
			}
		}
	}
	if got == miss && !b.Large && b.Shared.LargeKeysOf(h).Load() != 0 {
		return dst, 0, elsewhere
	}
	if !b.isUnchanged(seq) {
		return dst, 0, retry
	}
	countLookup(n, mode, got)
	b.CountOddities(&f)
	if got == miss {
		if f.Presence == store.Ghost && mode&counted != 0 {
			b.NoteGhostMiss(&f.Group.Slots[f.I])
		}
		return dst, 0, miss
	}
	if mode&touching != 0 && b.Touches {
		index.Raise(&f.Group.Slots[f.I], f.Slot)
	}
	runtime.KeepAlive(&b.seq) // and with it the buckets: their memory stays mapped until here
	return out, f.Expiry, got
}

// countLookup counts a completed lookup. Counters never decrease, because a decrease could be
// observed.
func countLookup(n *stripe.Counter, mode lookupMode, got outcome) {
	switch {
	case mode&counted == 0 || mode&precounted != 0 && got == hit:
	case mode&precounted != 0:
		n.FalseHits.Add(1)
	case got == hit:
		n.Hits.Add(1)
	default:
		n.Misses.Add(1)
	}
}

// copyValue appends the value of f to dst. It reports false if the value is torn.
//
//go:norace
func (b *bucket) copyValue(f *store.Found, dst []byte, seq uint64) ([]byte, bool) {
	if f.Rec != nil {
		return torn.Append(dst, f.Rec[f.Size+f.KeyLen:]), true
	}
	if cap(dst)-len(dst) < f.ValueLen {
		if !b.isUnchanged(seq) { // do not allocate for a length that may be torn
			return dst, false
		}
		dst = slices.Grow(dst, f.ValueLen)
	}
	return f.Ring.Read(dst, f.ValuePos(), f.ValueLen)
}

// entryID returns the identity of the live record of a small bucket that slot s leads to (I18). id
// is the bucket's number in the process.
//
//go:norace
func (b *bucket) entryID(id, s uint64) memo.EntryID {
	in := index.Ring(s)
	return memo.EntryID{
		Bucket: id,
		Pos:    b.Rings[in].Unwrapped(s)*store.RingCount + uint64(in),
		Writes: b.Rewrites + b.Plain,
	}
}

// invalidateLocked invalidates the load of the key of a write, if there is one.
func (b *bucket) invalidateLocked(w *write) {
	if !w.Restored { // a value of a snapshot is older than that of a load
		b.calls.Invalidate(b.calls.Find(w.Key))
	}
}

// meetsLocked reports whether the bucket has the key, and whether the condition of a write holds
// for it.
func (b *bucket) meetsLocked(w *write) (there, met bool) {
	if w.Restored && !w.RewriteOnly { // negative entries are newer too
		there = b.FindOrExpire(&w.Write, new(store.Found))
		return there, !there
	}
	var f store.Found
	if !b.Lookup(&f, w.Key, w.Hash) {
		return false, w.cond != ifEqual && w.cond != ifSame
	}
	if w.Packed = f.IsPacked() && (w.cond != ifAbsent || w.found != nil); w.Packed {
		return true, false
	}
	if w.reads {
		b.NoteRead(&f)
		w.reads = false
	}
	if w.cond == ifSame && f.Expiry != w.expires {
		return true, false
	}
	if w.keeps {
		b.Keep(&w.Write, &f)
	}
	switch w.cond {
	case ifAbsent:
		if w.found != nil {
			*w.found, _ = f.Ring.Read(*w.found, f.ValuePos(), f.ValueLen) // w.Key may overlap it
		}
		return true, false
	case ifEqual, ifSame:
		return true, f.Holds(w.old)
	}
	return true, !f.Holds(w.Value)
}

// close makes later lookups miss.
func (b *bucket) close() {
	b.lock()
	defer b.unlock()
	b.calls.InvalidateAll()
	b.Close()
}

// resetStep removes entries of the bucket until they make up a step, or all once *left is used up,
// and reports whether all are gone.
func (b *bucket) resetStep(left *int, w *write) (done bool) {
	b.lock()
	defer b.unlockFor(w)
	if done = b.Closed || b.DropStep(left); done && !b.Closed {
		b.calls.InvalidateAll()
		b.Reset() // without OnRemove
	}
	return done
}

// takeRemovalsLocked hands the entries removed under the lock to the write.
func (b *bucket) takeRemovalsLocked(w *write) {
	switch {
	case b.Removals == nil:
	case w.removals == nil:
		w.removals = b.Removals
	default:
		w.removals.List = append(w.removals.List, b.Removals.List...)
		w.removals.Bytes += b.Removals.Bytes
	}
	b.Removals = nil
}

// look calls fn under the lock, without stopping readers: fn may call read. It unlocks even after a
// fault in fn.
func (b *bucket) look(fn func(s *store.Store)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(&b.Store)
}

// change calls fn under the lock. The entries that fn removes are not passed to OnRemove.
func (b *bucket) change(fn func(s *store.Store)) {
	b.lock()
	defer b.unlock()
	fn(&b.Store)
	b.Removals = nil
}
