package ringcache

import (
	"cmp"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"weak"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/scratch"
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

// New returns a cache that takes up to MaxBytes bytes of off-heap memory, records and index
// together; less than 32 MB is taken as 32 MB. It takes next to nothing until entries are
// set. New panics if MaxBytes is not above 0, as in fastcache; [NewWithOptions] returns an
// error instead, and also makes smaller caches.
func New(maxBytes int) *Cache {
	if maxBytes > 0 {
		maxBytes = max(maxBytes, fullBytes)
	}
	c, err := NewWithOptions(Options{MaxBytes: maxBytes})
	if err != nil {
		panic(err)
	}
	return c
}

// NewWithOptions returns a cache with the settings of o, or an error that
// names the setting and its bound and is [ErrInvalidOptions]. With [Options].File the error
// may also be [ErrInUse], [ErrCorrupt], [ErrVersion], [ErrNoMemory] where the disk is full,
// [os.ErrPermission] for a file of another user, [errors.ErrUnsupported], or that of the file
// system.
func NewWithOptions(o Options) (*Cache, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g := defaultGeometry(o.MaxBytes)
	if o.File != "" {
		g.seed = newSecret() // if the file is new: it must not tell that of the process
	}
	return g.open(&o)
}

// open returns a cache of that geometry, but for what is in o, which is valid.
func (g *geometry) open(o *Options) (*Cache, error) {
	g.options = *o
	g.options.RefreshTimeout = cmp.Or(o.RefreshTimeout, defaultRefreshTimeout)
	g.policy = o.Policy
	g.hugePages = o.HugePages
	g.ttl, g.jitter, g.stale = o.TTL, o.TTLJitter, o.StaleIfError
	g.onRemove = o.OnRemove
	g.expected = o.ExpectedEntries
	g.version = o.Version
	g.ahead, g.timeout = o.RefreshAhead, g.options.RefreshTimeout
	if o.Compressor != nil {
		if err := g.compressBy(o.Compressor); err != nil {
			return nil, err
		}
	}
	if o.File != "" {
		return openInFile(*g, o.File)
	}
	return newCache(*g), nil
}

// compressBy gives caches of that geometry a Compressor, or returns an error if that is of no use.
func (g *geometry) compressBy(by Compressor) (err error) {
	g.compressor = by
	g.withoutDict, err = cold.Guarded(func() (ValueCompressor, error) { return by.WithDict(nil) })
	if err == nil && g.withoutDict == nil {
		err = cold.ErrNoValueCompressor
	}
	if err != nil {
		return invalid("Compressor cannot do without a dictionary: %v", err)
	}
	if g.compressorID, err = cold.Guarded(func() (string, error) { return by.ID(), nil }); err != nil {
		return invalid("Compressor has no ID: %v", err)
	}
	if n := len(g.compressorID); n > dictfile.MostID {
		return invalid("Compressor's ID has %d bytes, must have at most %d", n, dictfile.MostID)
	}
	return nil
}

// newCache returns a cache of any geometry.
func newCache(g geometry) *Cache {
	c := &Cache{
		buckets:  make([]bucket, g.buckets),
		shared:   g.newShared(),
		mask:     uint64(g.buckets - 1),
		bits:     store.Log2(g.buckets),
		settings: g.settings,
		options:  g.options,
	}
	if g.ahead > 0 {
		c.pauses = new(singleflight.Pauses)
	}
	for i := range c.buckets {
		c.buckets[i].Init(c.shared, i, i*g.chunkSize/g.buckets, false)
	}
	for i := range c.arena.buckets {
		c.arena.buckets[i].Init(c.shared, g.buckets+i, 0, true)
	}
	// The pool and the file do not lead back to the cache, nor does anything in them.
	// Whoever uses a bucket keeps the buckets, but perhaps not the cache.
	owner := &c.buckets[0]
	runtime.AddCleanup(owner, func(p *chunk.Pool) { _ = p.Unmap() }, c.shared.Pool)
	if f := c.shared.File; f != nil {
		runtime.AddCleanup(owner, (*ringfile.Store).Release, f)
	}
	if s := c.shared.Compression; s != nil {
		runtime.AddCleanup(c, (*cold.Compression).End, s)
		if !g.byHand {
			go compressInBackground(weak.Make(c), s)
		}
	}
	return c
}

// Set stores value v under key k, in place of an older value of k. The cache keeps copies: k
// and v may be changed as soon as Set returns. After a Set that returned nil, a Get of k
// finds v until k is set again, expires, or is evicted because room is needed.
//
// A key may have up to 65,535 bytes, a value up to a sixteenth of the cache's bound, and 4 GB;
// beyond that Set returns [ErrTooLarge]. After Close it returns [ErrClosed]. Where the operating
// system refuses memory, entries are dropped within what the cache has; only where that is
// nothing, or less than twice the entry, Set returns [ErrNoMemory]. Whatever the error, no Get of
// this cache finds an older value of k, so callers that can do without the entry may ignore it.
// Only with [ErrClosed] does the older value stay in [Options].File, for the next cache there.
//
// Set does not allocate on the Go heap, but for a few bytes when a bucket's tables grow. It
// locks one bucket, of 512 or fewer.
func (c *Cache) Set(k, v []byte) error {
	var w write
	w.Key, w.Value = k, v
	c.setDefaults(&w)
	return c.apply(&w, "set")
}

// Get appends the value of k to dst and returns the extended slice; dst as it is if k is not
// there, so nil for a nil dst. The bytes belong to the caller. On a miss, the spare capacity of
// dst may have been overwritten. k may lie in it. [Cache.HasGet] tells an empty value from a
// miss.
//
// Get does not allocate if dst has room for the value. It takes a lock only if others keep
// writing to the same bucket, if k may be a large entry, or if it is in the cold part
// ([Options].Compressor): a Get from there may evict others.
func (c *Cache) Get(dst, k []byte) []byte {
	out, _, _ := c.lookup(dst, k, unhashed, getMode)
	return out
}

// HasGet is [Cache.Get] that also reports whether k was there.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	out, _, got := c.lookup(dst, k, unhashed, getMode)
	return out, got == hit
}

// Has reports whether k is there. It counts as a lookup in [Stats], does not
// allocate, and locks what Get locks.
func (c *Cache) Has(k []byte) bool {
	_, _, got := c.lookup(nil, k, unhashed, counted|touching)
	return got == hit
}

// Peek is [Cache.HasGet] that leaves no trace: it does not count as a lookup in
// [Stats] nor with the policy, so it changes neither hit ratios nor what is evicted next. Use it
// in tests, debug pages and copies of a cache. It allocates and locks what Get does.
func (c *Cache) Peek(dst, k []byte) ([]byte, bool) {
	out, _, got := c.lookup(dst, k, unhashed, withValue)
	return out, got == hit
}

// HasGetUncounted is [Cache.HasGet] that does not count as a lookup in [Stats]. Unlike
// [Cache.Peek], it makes the entry stay longer. It is for what takes several entries to answer
// one question: count the first one, and the hit ratio is that of the questions.
func (c *Cache) HasGetUncounted(dst, k []byte) ([]byte, bool) {
	out, _, got := c.lookup(dst, k, unhashed, withValue|touching)
	return out, got == hit
}

// View calls fn with the value of k and reports whether k was there; on a miss fn is not
// called. v is a buffer that later Views use again: it is valid, and fn's to change, until fn
// returns. No lock is held while fn runs. View does not allocate but
// for a larger buffer now and then, and locks what Get locks.
func (c *Cache) View(k []byte, fn func(v []byte)) bool {
	mustBeFunc("View", fn != nil)
	s := scratch.Get()
	defer s.Release()
	v, ok := c.HasGet(s.Bytes[:0], k)
	if ok {
		s.Bytes = v
		fn(v[:len(v):len(v)])
	}
	return ok
}

// Del removes k and reports whether it was there. It does not allocate and locks one bucket.
// After Close it returns false, and cannot remove k from [Options].File: the next cache there
// finds it.
func (c *Cache) Del(k []byte) bool {
	var w write
	w.Key, w.Hash, w.del, w.Reason = k, c.shared.Hash(k), true, store.Deleted
	found, _ := c.remove(&w, nil)
	return found
}

// Reset removes all entries. The cache keeps its memory for new ones (see [Cache.Close] for
// giving it back), and counters in [Stats] go on. Buckets are emptied one after another: an
// entry that is set meanwhile may or may not stay, and so may one that Touch writes again.
// With [Options].OnRemove, a bucket is emptied in steps of 64 KB or 256 entries, and OnRemove
// called between them.
func (c *Cache) Reset() {
	// Touch may write a record again, and move it between the small buckets and
	// the large ones: an old one must not slip through to where Reset has been.
	for i := range c.arena.buckets {
		c.resetBucket(&c.arena.buckets[i])
	}
	c.each(c.resetBucket) // the large ones last
}

// resetBucket removes the entries of one bucket.
func (c *Cache) resetBucket(b *bucket) {
	b.mu.Lock()
	s := b.Sizes()
	b.mu.Unlock()
	left := s.LiveBytes + s.DeadBytes
	for done := false; !done; {
		done = c.resetStep(b, &left)
	}
}

// resetStep removes some of the entries of a bucket, and reports whether all are
// gone. Once it has removed as many bytes as left says, it removes the rest at once, so
// that it ends although others, such as OnRemove, keep setting entries.
func (c *Cache) resetStep(b *bucket, left *int) (done bool) {
	var w write
	defer c.notify(&w)
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	if b.Large {
		defer c.updateQuotas(b)
	}
	b.lock()
	defer b.unlockFor(&w)
	if done = b.Closed || b.DropStep(left); done && !b.Closed {
		b.emptyLocked()
	}
	return done
}

// Close gives all memory back to the operating system. It waits for writes that are under
// way; later lookups miss, and Sets return [ErrClosed]. Address space stays reserved until
// the Cache is collected. A second Close does nothing. With [Options].File it waits until
// all is on the disk, and returns an error if it is not; otherwise the error is nil. The file
// then stays as it is: stop all writers before Close if what they replace or delete must not
// come back.
func (c *Cache) Close() error {
	a := &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := c.shared.Compression; s != nil {
		s.End() // before the buckets forget which dictionaries they need
	}
	c.each((*bucket).close)
	c.shared.Pool.Close()
	if f := c.shared.File; f != nil {
		if err := f.Close(c.mark()); err != nil {
			return fmt.Errorf("ringcache: %w", err)
		}
	}
	return nil
}

// Len returns the number of entries, as [Stats].EntriesCount: expired and negative ones that
// have not been removed yet count. It takes every bucket's lock for a moment, one after another,
// so entries that come or go meanwhile may or may not be counted.
func (c *Cache) Len() int {
	n := 0
	c.each(func(b *bucket) {
		b.mu.Lock()
		n += b.Sizes().Entries
		b.mu.Unlock()
	})
	return n
}

// Options returns the settings of the cache: those that it was made with, with the default of
// RefreshTimeout filled in, MaxBytes as Resize last set it, and File as an absolute path. A cache
// made by NewWithOptions of the result has the same settings. Options does not allocate and takes
// no lock. It returns the same after Close.
func (c *Cache) Options() Options {
	o := c.options
	o.MaxBytes = c.shared.Bound()
	return o
}

// mark returns how old the clock is at the present moment, or a little more.
func (c *Cache) mark() ringfile.Mark {
	at := c.machine.Moment()
	return ringfile.Mark{Age: c.shared.Age(), At: at}
}

// All returns an iterator over the entries of the cache, in no particular order. Key and value are
// buffers of the loop, valid and the caller's to change until the next iteration: clone what is to
// be kept.
//
//	for key, value := range cache.All() {
//		// ...
//	}
//
// An entry that is there from the beginning of the loop to its end, and is not set again
// meanwhile, is seen exactly once; one that comes or goes meanwhile may be seen or not. One
// that is set again is seen once too, unless the old or the new value is large (see the
// section Caveats of the package) and the other is not: it may then be seen twice, or not at all.
//
// The body may call all methods of the cache. Writers of a bucket wait only while
// the next 256 keys or 64 KB of keys are copied. A loop allocates its buffers. It does not
// count as lookups in [Stats], and does not make an entry stay longer. On a closed cache it
// ends at once.
func (c *Cache) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		mustBeFunc("All", yield != nil)
		c.loop(everyKey, withValue, yield)
	}
}

// Keys is [Cache.All] without the values, which it does not copy. Each key is valid until the next
// iteration: clone it to keep it. (slices.Collect would keep buffers that were used again.)
func (c *Cache) Keys() iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		mustBeFunc("Keys", yield != nil)
		c.loop(everyKey, 0, func(key, _ []byte) bool { return yield(key) })
	}
}

func everyKey([]byte) bool { return true }

// loop calls fn with the entries whose keys are ours, until fn returns false. Both may
// call all methods of the cache. The mode says whether fn gets the values.
func (c *Cache) loop(
	ours func(key []byte) bool, mode lookupMode, fn func(key, value []byte) bool,
) {
	var value []byte
	c.walk(func(key []byte) bool {
		if !ours(key) {
			return true
		}
		var got outcome
		if value, _, got = c.lookup(value[:0], key, c.shared.Hash(key), mode); got != hit {
			return true // it has gone since its step began
		}
		return fn(key, value)
	})
}

// walk calls fn with every key, with no lock held, until fn returns false.
func (c *Cache) walk(fn func(key []byte) bool) {
	var s store.Keys
	for i := range c.shared.Buckets + store.LargeBuckets {
		b := c.nth(i)
		for at := uint64(0); at < store.HashesEnd; {
			b.mu.Lock()
			at = b.NextKeys(&s, at)
			b.mu.Unlock()
			from := 0
			for _, end := range s.Ends {
				if !fn(s.Bytes[from:end:end]) {
					return
				}
				from = end
			}
		}
	}
}
