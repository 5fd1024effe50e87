package ringcache

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/sidefile"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// Cache is a byte cache. Create it with [New] or [NewWithOptions], for example, and do not copy it.
// It is safe for concurrent use. A Cache that becomes unreachable, with its namespaces, releases
// its memory when it is collected; call [Cache.Close] to release it earlier.
type Cache struct {
	*engine
	space *space      // the namespace; nil: the whole cache
	kind  record.Kind // of the records of values: Spaced in a namespace, else Value
}

// engine is a cache that all its namespaces share.
type engine struct {
	// Every lookup reads these. mask is first because lookups take its address, which at offset 0
	// needs no check for nil.
	mask    uint64   // mask of the hash bits that choose a bucket
	buckets []bucket // their array keeps the memory mapped
	shared  *store.Shared

	number  uint64         // of the cache, in this process
	least   int            // the least bound
	machine *clock.Machine // the source of times; nil: the real one
	options Options        // the result of Cache.Options, except for the bound

	pauses   *singleflight.Pauses // of failed refreshes; nil if there are none
	refusals refusals
	loads    struct{ started, failed, dropped atomic.Uint64 } // counted in Stats
	restored atomic.Uint64                                    // entries of snapshots; the same
	counters stripe.Counters                                  // far from what lookups only read

	// spaces are the namespaces. Buckets may be locked while mu is held. Reading byName needs no lock.
	spaces struct {
		mu     sync.Mutex
		byName sync.Map       // string to *Cache
		file   *sidefile.File // nil without Options.File
	}

	// sizing is the state that calls of Resize share.
	sizing struct {
		mu         sync.Mutex // before the arena's and the buckets'
		turn       uint64     // number of calls: only the last one does the work
		unfinished bool       // memory may be above the bound
	}

	// arena is the large buckets, and the state that balances them with the small ones.
	arena struct {
		mu      sync.Mutex // one writer at a time
		hand    uint32     // whose turn it is to release memory, modulo their number
		buckets [store.LargeBuckets]bucket
	}
}

// bucket returns the small bucket for hash h.
func (c *engine) bucket(h uint64) *bucket { return &c.buckets[h&c.mask] }

// largeBucket returns the large bucket for hash h.
func (c *engine) largeBucket(h uint64) *bucket {
	return &c.arena.buckets[h>>store.BucketBits&(store.LargeBuckets-1)]
}

// inLargeLocked calls fn with the large bucket of the key, locked, if that bucket may have the key,
// and returns the result of fn. The lock of the key's small bucket is held.
func (c *engine) inLargeLocked(w *write, fn func(lb *bucket) bool) bool {
	if c.shared.LargeKeysOf(w.Hash).Load() == 0 {
		return false
	}
	lb := c.largeBucket(w.Hash)
	if !w.inLarge {
		lb.lock()
		defer lb.unlockFor(w)
	}
	return fn(lb)
}

// nth returns a bucket by number: the small ones come first.
func (c *engine) nth(i int) *bucket {
	if i < c.shared.Buckets {
		return &c.buckets[i]
	}
	return &c.arena.buckets[i-c.shared.Buckets]
}

// each calls fn with every bucket, in the order of the buckets in a file.
func (c *engine) each(fn func(b *bucket)) {
	for i := range c.shared.Buckets + store.LargeBuckets {
		fn(c.nth(i))
	}
}

// isClosed reports whether the cache is closed.
func (c *engine) isClosed() (closed bool) {
	c.buckets[0].look(func(s *store.Store) { closed = s.Closed })
	return closed
}

// inParallel calls fn with each bucket, on all processors.
func (c *engine) inParallel(fn func(b *bucket)) {
	n := c.shared.Buckets + store.LargeBuckets
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := next.Add(1) - 1; int(i) < n; i = next.Add(1) - 1 {
				fn(c.nth(int(i)))
			}
		}()
	}
	wg.Wait()
}

// How removed entries are passed to Options.OnRemove. A bucket copies them under its lock. The call
// that removed them takes the copies when it releases the lock, and calls OnRemove once it holds no
// lock. The copies are on the Go heap, outside the cache's bound, and the copy of a short record is
// several times as large as the record. So a call that removes many entries mostly works in steps
// and calls OnRemove after each: store.Removals.IsStep.

// notify calls OnRemove for the entries that a write has removed. The caller holds no lock.
func (c *engine) notify(w *write) {
	if w.removals == nil || w.quiet {
		return
	}
	list := w.removals.List
	w.removals = nil
	for _, e := range list {
		if e.Packed {
			v, err := c.shared.Compression.Unpack(nil, e.Value)
			if err != nil {
				continue // the value is lost
			}
			e.Value = v
		}
		c.options.OnRemove(Removal{e.Namespace, e.Key, e.Value, RemovalReason(e.Reason)})
	}
}

// How one cache serves as several. A Cache is an engine, and a namespace or none. Its methods
// resolve a key first: those of a namespace put its generation in front of it, and the record says
// so, and has another hash. From there on, both are the engine's. What a Cache counts itself is the
// calls in a namespace.

// space is a namespace. It does not refer to the cache.
type space struct {
	name       string
	generation atomic.Uint64
	counters   atomic.Pointer[stripe.Counters] // nil: nothing was counted yet
	dropped    atomic.Bool

	mu sync.Mutex // guards changes of the generation
}

// stackKey is the greatest length of a key that is built on the stack.
const stackKey = 128

// start appends the beginning of every key of the cache, which is valid until the next Reset.
func (c *Cache) start(dst []byte) []byte {
	if c.space == nil {
		return dst
	}
	return binary.LittleEndian.AppendUint64(dst, c.space.generation.Load())
}

// key returns the engine's key for k, which is k itself or built in room, and its hash. (If it set
// them in a write, the compiler would have room on the heap.)
func (c *Cache) key(room, k []byte) (raw []byte, h uint64) {
	if c.space == nil {
		return k, c.shared.Mix(xxhash.Sum64(k)) // Hash, which the compiler would not inline
	}
	raw = append(c.start(room), k...)
	return raw, c.shared.HashOf(raw, record.Spaced)
}

// writeOf returns the write of value v under key k, or the removal of k. (Set does not use it,
// because the compiler would copy the result.)
func (c *Cache) writeOf(room, k, v []byte, why store.Reason) (w write) {
	w.Key, w.Hash = c.key(room, k)
	w.Value, w.Kind, w.Reason = v, c.kind, why
	return w
}

// renewKey gives the key of a write, whose generation was forgotten, the present one. It reports
// false if the namespace was dropped.
func (c *engine) renewKey(in *space, w *write) bool {
	if in.dropped.Load() {
		return false
	}
	binary.LittleEndian.PutUint64(w.Key, in.generation.Load())
	w.Hash = c.shared.HashOf(w.Key, record.Spaced)
	return true
}

// counts returns the counters. There may be many namespaces that nobody uses, so they are made on
// first use.
func (s *space) counts() *stripe.Counters {
	if s.counters.Load() == nil {
		s.counters.CompareAndSwap(nil, new(stripe.Counters))
	}
	return s.counters.Load()
}

// looked counts lookups in a namespace.
func (c *Cache) looked(keys, hits int) {
	if c.space != nil {
		n := c.space.counts().Here()
		n.Hits.Add(uint64(hits))
		n.Misses.Add(uint64(keys - hits))
	}
}

// wrote counts a Set or a Del in a namespace.
func (c *Cache) wrote(del bool) {
	switch {
	case c.space == nil:
	case del:
		c.space.counts().Here().Dels.Add(1)
	default:
		c.space.counts().Here().Sets.Add(1)
	}
}

// size returns the number of entries of a namespace, and the bytes of their records.
func (s *space) size(c *engine) (entries, bytes int) {
	u := c.shared.Generations.Of(s.generation.Load())
	if u == nil {
		return 0, 0 // it was dropped
	}
	return int(max(u.Entries.Load(), 0)), int(max(u.Bytes.Load(), 0))
}
