package ringcache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// Cache is a cache of byte slices whose memory is outside the Go heap. It is made by [New] or
// [NewWithOptions], must not be copied, and is safe for concurrent use by any number of goroutines.
// Operations on one key take amortized constant time, apart from copying keys and values. When a
// Cache becomes unreachable, the garbage collector releases its memory; [Cache.Close] does so at
// once.
type Cache struct {
	*engine
	space *space // the namespace; nil: the whole cache
}

// engine is a cache that all its namespaces share.
type engine struct {
	buckets  []bucket // their array keeps the memory mapped, and begins on a cache line
	counters stripe.Counters
	shared   *store.Shared
	number   uint64 // of the cache, in this process
	mask     uint64 // mask of the hash bits that choose a bucket
	bits     uint8  // number of those bits
	settings

	pauses    *singleflight.Pauses // of failed refreshes; nil without Options.RefreshAhead
	refusals  refusals
	loads     loadCounts
	snapshots snapshotCounts
	spaces    spaces
	sizing    sizing
	arena     arena
	options   Options // the result of Cache.Options, except for the bound
}

// settings are the Options that a Cache keeps.
type settings struct {
	ttl       time.Duration // of entries stored without one; 0: they do not expire
	jitter    float64       // Options.TTLJitter
	stale     time.Duration // Options.StaleIfError
	idle      time.Duration // Options.ExpireAfterAccess
	ahead     time.Duration // Options.RefreshAhead
	timeout   time.Duration // Options.RefreshTimeout
	hugePages HugePages
	least     int    // the least bound
	version   uint64 // Options.Version
	onRemove  func(Removal)
	machine   *clock.Machine // the source of times
}

// loadCounts are the counters of loads in Stats.
type loadCounts struct{ started, failed, dropped, stale atomic.Uint64 }

// snapshotCounts are the counters of loaded snapshots in Stats.
type snapshotCounts struct{ loaded, discarded atomic.Uint64 }

// spaces are the namespaces of a cache. Buckets may be locked while mu is held. Reading the map
// takes no lock that is held meanwhile.
type spaces struct {
	mu     sync.Mutex
	byName sync.Map // string to *Cache
}

// sizing is the state that calls of Resize share.
type sizing struct {
	mu         sync.Mutex // before all other locks
	turn       uint64     // number of calls: only the last one does the work
	unfinished bool       // memory may be above the bound
}

// arena is the large buckets of a cache, and the state that balances them with the small ones.
type arena struct {
	mu       sync.Mutex // one writer at a time
	held     [store.LargeBuckets]int
	promised int // bytes that large Sets in progress will need
	hand     int // the next small bucket to release memory
	buckets  [store.LargeBuckets]bucket
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

// load is the result of a load for a key. If there is no value, Err is ErrAbsent itself.
type load struct {
	loaded
	panicked *LoadPanic
	kind     record.Kind // of a record with the value
}

// failed reports whether the load ended with a panic or an error other than ErrAbsent.
func (l *load) failed() bool {
	return l.panicked != nil || l.Err != nil && l.Err != ErrAbsent
}

// loadCall is the load of a key in progress.
type loadCall = singleflight.Call[load]

// bucket returns the small bucket for hash h.
func (c *engine) bucket(h uint64) *bucket { return &c.buckets[h&c.mask] }

// largeBucket returns the large bucket for hash h.
func (c *engine) largeBucket(h uint64) *bucket {
	return &c.arena.buckets[h>>store.BucketBits&(store.LargeBuckets-1)]
}

// nth returns a bucket by number: the small ones come first.
func (c *engine) nth(i int) *bucket {
	if i < c.shared.Buckets {
		return &c.buckets[i]
	}
	return &c.arena.buckets[i-c.shared.Buckets]
}

// all returns every bucket, in the order of the buckets in a file.
func (c *engine) all() (all []*bucket) {
	c.each(func(b *bucket) { all = append(all, b) })
	return all
}

// each calls fn with every bucket, small and large.
func (c *engine) each(fn func(b *bucket)) {
	for i := range c.shared.Buckets + store.LargeBuckets {
		fn(c.nth(i))
	}
}

// inParallel calls fn with each bucket, on all processors.
func (c *engine) inParallel(all []*bucket, fn func(b *bucket)) {
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

// How removed entries are passed to Options.OnRemove. A bucket copies them under its lock. The call
// that removed them takes the copies when it releases the lock, and calls OnRemove once it holds no
// lock. The copies are on the Go heap, outside the cache's bound, and the copy of a short record is
// several times as large as the record. So a call that removes many entries works in steps and
// calls OnRemove after each of them: store.Removals.IsStep.

// notify calls OnRemove for the entries that a write has removed. The caller holds no lock, or has
// set w.deferOnRemove; in that case the holder of the lock calls notifyDeferred after releasing it.
func (c *engine) notify(w *write) {
	if w.removals != nil && !w.deferOnRemove {
		c.notifyDeferred(w)
	}
}

// notifyDeferred is notify for a write with deferOnRemove.
func (c *engine) notifyDeferred(w *write) {
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
		c.onRemove(Removal{e.Namespace, e.Key, e.Value, RemovalReason(e.Reason)})
	}
}
