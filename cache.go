package ringcache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// Cache is a cache of byte slices, kept outside of the Go heap. It is made by [New] or
// [NewWithOptions], must not be copied, and is safe for concurrent use by any number of
// goroutines. What is done for one key takes amortized constant time beside the copying of keys
// and values. A Cache that is no longer reachable gives its memory back when the garbage
// collector finds it; [Cache.Close] does so at once.
type Cache struct {
	buckets  []bucket // their array keeps the memory mapped, and begins on a cache line
	counters stripe.Counters
	shared   *store.Shared
	mask     uint64 // of the hash bits that choose a bucket
	bits     uint8  // of the hash that choose a bucket
	settings

	pauses    *singleflight.Pauses // of refreshes that have failed; nil if there are none
	refusals  refusals
	loads     loadCounts
	snapshots snapshotCounts
	spaces    spaces
	quotaHand atomic.Uint32 // the bucket that was searched last for expired entries (quota.go)
	sizing    sizing
	arena     arena
	options   Options // what Cache.Options returns, but for the bound
}

// settings are what a Cache keeps of its Options.
type settings struct {
	ttl       time.Duration // of entries stored without one; 0: they do not expire
	jitter    float64       // Options.TTLJitter
	stale     time.Duration // Options.StaleIfError
	idle      time.Duration // Options.ExpireAfterAccess
	ahead     time.Duration // Options.RefreshAhead
	timeout   time.Duration // Options.RefreshTimeout
	hugePages HugePages
	version   uint64 // Options.Version
	onRemove  func(k, v []byte, reason RemovalReason)
	machine   *clock.Machine // where times come from
}

// loadCounts are what Stats tells of loads.
type loadCounts struct{ started, failed, dropped, stale atomic.Uint64 }

// snapshotCounts is what Stats tells of loading.
type snapshotCounts struct{ loaded, discarded atomic.Uint64 }

// spaces are the namespaces of a cache. Buckets may be locked under mu. Reading the map takes
// no lock that is held meanwhile.
type spaces struct {
	mu     sync.Mutex
	byName sync.Map // string to *space
}

// sizing is what calls of Resize share.
type sizing struct {
	mu         sync.Mutex // before all other locks
	turn       uint64     // counts the calls: the last one does the work
	unfinished bool       // memory may be above the bound
}

// arena is the large buckets of a cache, and what balances them with the small ones.
type arena struct {
	mu       sync.Mutex // one writer at a time
	held     [store.LargeBuckets]int
	incoming [store.LargeBuckets]incoming
	hand     int // the small bucket that has to give next
	buckets  [store.LargeBuckets]bucket
}

// incoming is what large Sets under way are going to take in a large bucket.
type incoming struct{ sets, bytes, longest int }

// bucket is a share of the keys with its own lock: what is stored, and who may look at it.
//
// Writers exclude each other by mu. Readers do not take it: seq is a sequence lock
// (lookup.go), odd exactly while somebody who holds mu may change what readers look
// at, and never the same again (I13).
type bucket struct {
	mu  sync.Mutex
	seq atomic.Uint64
	store.Store
	calls singleflight.List[load] // loads that callers may join
} // whole cache lines on 64-bit platforms, since buckets lie side by side

// Loaded is the result of a [BatchLoadFunc] for one key. Its fields are what a [LoadFunc] returns.
type Loaded[V any] struct {
	Value V
	TTL   time.Duration // 0: Options.TTL
	Err   error         // ErrAbsent: there is no value
}

// loaded is that of a [Cache].
type loaded = Loaded[[]byte]

// load is the result of a load for a key. Where there is no value, Err is ErrAbsent itself.
type load struct {
	loaded
	panicked *LoadPanic
}

// failed reports whether there was another error than ErrAbsent, or a panic.
func (l *load) failed() bool {
	return l.panicked != nil || l.Err != nil && l.Err != ErrAbsent
}

// loadCall is the load of a key that is under way.
type loadCall = singleflight.Call[load]

// bucket returns the small bucket for hash h.
func (c *Cache) bucket(h uint64) *bucket { return &c.buckets[h&c.mask] }

// largeBucket returns the large bucket for hash h.
func (c *Cache) largeBucket(h uint64) *bucket {
	return &c.arena.buckets[h>>store.BucketBits&(store.LargeBuckets-1)]
}

// nth returns a bucket by number: the small ones come first.
func (c *Cache) nth(i int) *bucket {
	if i < c.shared.Buckets {
		return &c.buckets[i]
	}
	return &c.arena.buckets[i-c.shared.Buckets]
}

// all returns every bucket; where there is a file, this is their order in it.
func (c *Cache) all() (all []*bucket) {
	c.each(func(b *bucket) { all = append(all, b) })
	return all
}

// each calls fn with every bucket, small and large.
func (c *Cache) each(fn func(b *bucket)) {
	for i := range c.shared.Buckets + store.LargeBuckets {
		fn(c.nth(i))
	}
}

// inParallel calls fn with each bucket, on all processors.
func (c *Cache) inParallel(all []*bucket, fn func(b *bucket)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				fn(all[i])
			}
		}()
	}
	wg.Wait()
}

// lock takes the bucket to write. The load behind the store keeps later stores from passing
// it: nothing passes the load, and the load does not pass the store.
func (b *bucket) lock() {
	b.mu.Lock()
	b.seq.Store(b.seq.Load() + 1)
	b.seq.Load()
	delay.Point()
}

// tryLock is lock that reports false if somebody has the bucket. While a bucket is locked, only so
// is another one's lock taken, but for the large bucket of the same key, which comes second.
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

// close makes every later call miss.
func (b *bucket) close() {
	b.lock()
	defer b.unlock()
	b.calls.InvalidateAll()
	b.Close()
}

// emptyLocked drops all entries, of which nobody is to be told, and makes loads under way
// out of date.
func (b *bucket) emptyLocked() {
	b.calls.InvalidateAll()
	b.Reset()
}

// unlockFor releases the bucket's lock, and hands the entries removed under it to the write.
func (b *bucket) unlockFor(w *write) {
	if b.Removals != nil {
		b.takeRemovalsLocked(w)
	}
	b.unlock()
}

func (b *bucket) takeRemovalsLocked(w *write) {
	if w.removals == nil {
		w.removals = b.Removals
	} else {
		w.removals.List = append(w.removals.List, b.Removals.List...)
		w.removals.Bytes += b.Removals.Bytes
	}
	b.Removals = nil
}

// look calls fn under the lock. Readers go on.
func (b *bucket) look(fn func(s *store.Store)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(&b.Store)
}

// change calls fn under the lock. OnRemove is not told of what fn removes.
func (b *bucket) change(fn func(s *store.Store)) {
	b.lock()
	defer b.unlock()
	fn(&b.Store)
	b.Removals = nil
}

// isAtLimit reports whether the bucket holds nearly all that it may.
func (b *bucket) isAtLimit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.Memory()
	return m.Held+2*b.Shared.Pool.ChunkSize() > m.Quota
}

// isShort reports whether a small bucket has not the memory for a record of n
// bytes, whatever it evicts: the large buckets have all but a little.
func (b *bucket) isShort(n int) bool {
	if b.Shared.HasSpareFor(n) {
		return false // as nearly always
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	lack := b.Lack(n)
	if b.Index.Empty() && b.Shared.File != nil {
		lack++ // the page counts as a chunk, wherever it comes from
	}
	return lack > 0
}

// How Options.OnRemove is told of the entries that are removed. A bucket copies them under its
// lock. The call that removed them takes the copies when it releases the lock, and calls OnRemove
// once it holds no lock. The copies are on the Go heap, outside the cache's bound, and the copy of
// a short record is several times as large as the record. So a call that removes many entries works
// in steps and calls OnRemove after each of them: store.Removals.IsStep.

// notify tells OnRemove of the entries that a write has removed. The caller holds no lock, or has
// set w.quiet, and then the holder of the lock calls notifyQuiet after releasing it.
func (c *Cache) notify(w *write) {
	if w.removals != nil && !w.quiet {
		c.notifyQuiet(w)
	}
}

// notifyQuiet is notify for a quiet write.
func (c *Cache) notifyQuiet(w *write) {
	if w.removals == nil {
		return
	}
	list := w.removals.List
	w.removals = nil
	for _, e := range list {
		if e.Dict != nil {
			v, err := c.shared.Compression.Unpack(nil, e.Value, e.Dict)
			if err != nil {
				continue // the value is lost
			}
			e.Value = v
		}
		c.onRemove(e.Key, e.Value, RemovalReason(e.Reason))
	}
}
