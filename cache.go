package ringcache

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/policy"
)

const (
	bucketBits  = 9
	bucketCount = 1 << bucketBits
)

// Cache is a cache of byte slices, kept outside of the Go heap. It is made by
// [New] or [NewWithOptions], must not be copied, and is safe for concurrent use
// by any number of goroutines.
//
// Every method takes amortized constant time beside the copying of keys and
// values. In the terms of the Go memory model, a Set, Del or Reset
// synchronizes before a Get, HasGet, Has, GetBatch, View, All or Keys that
// observes its effect.
//
// A Cache that is no longer reachable gives its memory back when the garbage
// collector finds it; [Cache.Close] does so at once.
type Cache struct {
	buckets [bucketCount]bucket // first, so that they begin on cache lines
	shared  *commons
	mask    uint64        // of the hash bits that choose a bucket
	lanes   *lane         // of the first bucket
	touches bool          // lookups count for the policy
	plain   bool          // there are plain Sets
	bits    uint8         // of the hash that choose a bucket
	ahead   time.Duration // Options.RefreshAhead
	sizing  sync.Mutex    // one Resize at a time
	region  region
}

// geometry is everything that shapes a cache. Tests make it tiny.
type geometry struct {
	maxBytes  int // bound on off-heap memory
	buckets   int // power of two, at most bucketCount
	chunkSize int // power of two, at least 64
	policy    Policy
	hugePages bool
	ttl       time.Duration // of entries without one of their own; 0: they do not expire
	ahead     time.Duration // Options.RefreshAhead
	onEvict   func(k, v []byte, reason Reason)
	now       func() time.Duration // time since the cache was made; nil: the real one
	expected  expectation
	asideFrom int       // groups of an index from which a bucket puts Sets aside; 0: none does
	asideMost int       // longest key and value together that are put aside
	laterFrom int       // Sets over older values, one after the other, from which the next is put off
	posBits   uint      // width of a position: generation and offset
	seed      [2]uint64 // {0, 0}: all hashes are 0
	mem       memory
}

// defaultGeometry returns the geometry of a cache of maxBytes.
func defaultGeometry(maxBytes int) geometry {
	share := maxBytes / bucketCount / chunksPerBucket
	return geometry{
		maxBytes:  maxBytes,
		buckets:   bucketCount,
		chunkSize: min(max(1<<(bits.Len(uint(share))-1), minChunkSize), maxChunkSize),
		posBits:   slotPosBits,
		asideFrom: asideFrom,
		asideMost: asideLongest(runtime.GOMAXPROCS(0)),
		laterFrom: laterFrom,
		seed:      secret,
		mem:       osMemory,
	}
}

// New returns a cache that takes up to maxBytes bytes of off-heap memory,
// records and index together; less than 32 MB is taken as 32 MB. It takes next
// to nothing until entries are set. New panics if maxBytes is not above 0;
// [NewWithOptions] returns an error instead.
func New(maxBytes int) *Cache {
	c, err := NewWithOptions(Options{MaxBytes: maxBytes})
	if err != nil {
		panic(err)
	}
	return c
}

// NewWithOptions returns a cache with the settings of o, or an error that
// names the setting and its bound and is [ErrInvalidOptions].
func NewWithOptions(o Options) (*Cache, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g := defaultGeometry(max(o.MaxBytes, minMaxBytes))
	g.policy = o.Policy
	g.hugePages = o.HugePages
	g.ttl = o.TTL
	g.onEvict = o.OnEvict
	g.expected = expectation{entries: o.ExpectedEntries, valueSize: min(o.ExpectedValueSize, g.maxBytes/maxValueShare)}
	g.ahead = o.RefreshAhead
	return newCache(g)
}

// newCache returns a cache of any geometry.
func newCache(g geometry) (*Cache, error) {
	s := &commons{
		seed:       g.seed,
		policy:     policy.Kind(g.policy),
		pool:       newChunkPool(g.mem, g.maxBytes, g.chunkSize),
		expected:   g.expected,
		buckets:    g.buckets,
		posBits:    g.posBits,
		asideFrom:  g.asideFrom,
		asideMost:  g.asideMost,
		laterFrom:  g.laterFrom,
		shift:      log2(g.chunkSize),
		mostChunks: int(1<<(g.posBits-2)/uint64(g.chunkSize)) - 1,
		clock:      newClock(g),
		onEvict:    g.onEvict,
	}
	s.pool.hugePages = g.hugePages
	s.maxBytes.Store(int64(g.maxBytes))
	s.total.Store(int64(g.maxBytes))
	s.divide()
	c := &Cache{shared: s, mask: uint64(g.buckets - 1), lanes: newLanes(), ahead: g.ahead, touches: s.policy != policy.FIFO, plain: g.ttl == 0 && g.onEvict == nil, bits: log2(g.buckets)}
	rests := make([]lockRest, bucketCount+largeBuckets)
	for i := range rests {
		rests[i].known = &s.known
	}
	for i := range g.buckets {
		c.buckets[i].mu.lanes, c.buckets[i].mu.rest = c.lanes.at(0, uint64(i)), &rests[i]
		c.buckets[i].init(s, i*g.chunkSize/g.buckets, false)
	}
	for i := range c.region.buckets {
		c.region.buckets[i].mu.lanes, c.region.buckets[i].mu.rest = c.lanes.at(0, uint64(bucketCount+i)), &rests[bucketCount+i]
		c.region.buckets[i].init(s, 0, true)
	}
	// The pool does not lead back to the cache, nor does anything in it.
	runtime.AddCleanup(c, func(p *chunkPool) { _ = p.close() }, s.pool)
	return c, nil
}

// bucket returns the small bucket for hash h.
func (c *Cache) bucket(h uint64) *bucket { return &c.buckets[h&c.mask&(bucketCount-1)] }

// ask returns the hash of k, and asks for its home group.
func (c *Cache) ask(k []byte) uint64 {
	h := c.shared.hash(k)
	c.bucket(h).index.prefetch(h)
	return h
}

// askPath returns the hash of k, which is to be set, and asks for the groups where its path begins.
func (c *Cache) askPath(k []byte) uint64 {
	h := c.shared.hash(k)
	c.bucket(h).index.prefetchPath(h)
	return h
}

// Set stores value v under key k, in place of an older value of k. The cache
// keeps copies: k and v may be changed as soon as Set returns. After a Set
// that returned nil, a Get of k finds v unless later Sets, of this or other
// keys, have pushed it out: a cache may drop any entry at any time to make
// room.
//
// A nil or empty key or value is as good as any other. A key may have up to
// 65,535 bytes, a value up to a sixteenth of the cache's bound; beyond that Set
// returns [ErrTooLarge]. It returns [ErrNoMemory] if the operating system
// refuses memory, and [ErrClosed] after Close. Whatever the error, an older
// value of k is gone and no other entry is harmed, so the result may be
// ignored by callers that can do without the entry.
//
// In a cache larger than the processor's, a Set of a short value over an older one
// returns before the older one is reached, and is completed by one of the next Sets, or by the next call that
// takes the bucket's lock; where such Sets follow each other, even before it is known
// whether there is an older one. Every call sees it as made. Only if the new value has
// another length, or no predecessor after all, and the operating system refuses memory
// for it then, the entry is lost without an error, as one that was pushed out.
//
// Set does not allocate on the Go heap, but for a few bytes when a bucket's
// tables grow or it has to wait for a View, and for 17 KB, at most 64 times in the life of a cache, to
// complete Sets later. It locks one of 512 buckets.
func (c *Cache) Set(k, v []byte) error {
	if err := c.set(k, v, 0, false); err != nil {
		return fmt.Errorf("ringcache: %w", err)
	}
	return nil
}

// Get appends the value of k to dst and returns the extended slice; dst as it
// is if k is not there, so nil for a nil dst. The bytes belong to the caller. Those between the length and the
// capacity of dst may have been written to even then; k may lie there.
// [Cache.HasGet] tells an empty value from a miss.
//
// Get does not allocate if dst has room for the value. It takes the lock of
// one of 512 buckets, which readers have together as long as nobody writes to it, or
// seldom, and one after another else; on amd64, where dst has room, it mostly does without.
func (c *Cache) Get(dst, k []byte) []byte {
	dst, _ = c.HasGet(dst, k)
	return dst
}

// HasGet is [Cache.Get] that also reports whether k was there.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	lane := laneHere()
	if len(k) > mostHashed || cap(dst) == len(dst) { // no room for what a glance would find
		return c.getLong(dst, k, lane)
	}
	h, n := glance(c, dst, k, lane)
	if n >= 0 {
		return dst[:len(dst)+n], true
	}
	if n == glanceMiss {
		return dst, false
	}
	return c.getLocked(dst, k, h, lane, true)
}

// getLong is HasGet where there is no glance, or one that does not compute the hash.
func (c *Cache) getLong(dst, k []byte, lane uint) ([]byte, bool) {
	h := c.shared.mix(xxhash.Sum64(k)) // hash, which the compiler would not inline
	if cap(dst) == len(dst) {
		return c.getLocked(dst, k, h, lane, true)
	}
	return c.getHashed(dst, k, h, lane, true)
}

// getHashed is HasGet of a key with hash h, by a lane; cold tells that neither its line of
// the index nor its record has been asked for. HasGet has the same lines again: calling
// this takes longer.
func (c *Cache) getHashed(dst, k []byte, h uint64, lane uint, cold bool) ([]byte, bool) {
	n := glanceHashed(c, dst, k, lane, h)
	if n >= 0 {
		return dst[:len(dst)+n], true
	}
	if n == glanceMiss {
		return dst, false
	}
	return c.getLocked(dst, k, h, lane, cold)
}

// getLocked is getHashed for every case. Its lane is the glance's: the one that it opens is
// the one that the next glance will try.
func (c *Cache) getLocked(dst, k []byte, h uint64, lane uint, cold bool) (out []byte, ok bool) {
	b := c.bucket(h)
	if c.shared.known.Load()>>lane&1 == 0 {
		c.shared.known.Or(1 << lane)
	}
	if cold {
		b.index.prefetch(h)
	}
	// This is b.mu.lookup, which the compiler would not inline. Where there are
	// large values, it may be long. The lane is found from the cache, and so need
	// not wait for the bucket's cache line.
	a := c.lanes.at(lane, h&c.mask)
	if !a.enter(&b.mu, 1<<lane) {
		a = b.mu.enterMutex(lane, c.shared.strays(h).Load() != 0)
	}
	n, sure := glanceUnsure, false
	if cap(dst) > len(dst) {
		n = read(c, dst, k, h)
	}
	switch {
	case n >= 0:
		out, ok = dst[:len(dst)+n], true
	case n == glanceMiss:
		out, sure = dst, true
	default:
		out, ok, sure = b.getDirect(dst, k, h, cold)
	}
	if !ok {
		if sure && a != nil && c.shared.strays(h).Load() == 0 {
			a.leaveMissed()
			return dst, false
		}
		return c.getRest(dst, k, h, a, sure)
	}
	if a != nil {
		a.leave()
	} else {
		b.mu.leaveMutex(0)
	}
	return out, true
}

// getRest is what a lookup does that has not found k the direct way, and may be
// sure that it is not in its small bucket.
func (c *Cache) getRest(dst, k []byte, h uint64, a *lane, sure bool) (out []byte, ok bool) {
	b := c.bucket(h)
	if !sure {
		dst, ok = b.getAny(dst, k, h)
	}
	if !ok && c.shared.strays(h).Load() != 0 {
		dst, ok = c.getStray(dst, k, h)
	}
	if ok {
		b.mu.leave(a)
	} else {
		b.mu.leaveMissed(a)
	}
	return dst, ok
}

// getStray is what a lookup does that has found nothing in the small bucket,
// whose lock is held, and has reason to look in the large bucket.
func (c *Cache) getStray(dst, k []byte, h uint64) ([]byte, bool) {
	lb := c.largeBucket(h)
	a := lb.mu.lookup(true) // it counts as well, and is not looked at
	defer lb.mu.leave(a)
	return lb.get(dst, k, h)
}

// Has reports whether k is there. It counts as a lookup in [Stats], does not
// allocate, and takes the lock of one bucket as Get does.
func (c *Cache) Has(k []byte) bool {
	h := c.shared.hash(k)
	b := c.bucket(h)
	b.index.prefetch(h)
	a := b.mu.lookup(c.shared.strays(h).Load() != 0)
	if b.view(k, h, nil) || c.hasStray(k, h) {
		b.mu.leave(a)
		return true
	}
	b.mu.leaveMissed(a)
	return false
}

// hasStray reports whether the key is in a large bucket. The lock of its small
// bucket is held.
func (c *Cache) hasStray(k []byte, h uint64) bool {
	if c.shared.strays(h).Load() == 0 {
		return false
	}
	lb := c.largeBucket(h)
	a := lb.mu.lookup(true)
	defer lb.mu.leave(a)
	return lb.view(k, h, nil)
}

// View calls fn with the value of k and reports whether k was there; on a miss
// fn is not called. It saves the copy that Get makes: v is the cache's own
// memory, valid only until fn returns, and must not be written to. Only a
// value that happens to cross the end of a chunk is first put together in a
// buffer, which later Views use again.
//
// fn runs under the bucket's lock, shared with other readers: it must be short,
// and must not call methods of the same cache, which could wait for itself. A
// panic in fn leaves the cache sound. A nil fn is not called. View does not
// allocate, unless somebody waits for a View of the same bucket.
func (c *Cache) View(k []byte, fn func(v []byte)) bool {
	h := c.shared.hash(k)
	b := c.bucket(h)
	b.index.prefetch(h)
	b.mu.share()
	missed := false
	defer func() { b.mu.unshare(missed) }()
	missed = !b.view(k, h, fn) && !c.viewStray(k, h, fn)
	return !missed
}

// viewStray is View of a key in a large bucket. The lock of its small bucket is
// held.
func (c *Cache) viewStray(k []byte, h uint64, fn func(v []byte)) bool {
	if c.shared.strays(h).Load() == 0 {
		return false
	}
	lb := c.largeBucket(h)
	lb.mu.share()
	defer lb.mu.unshare(false)
	return lb.view(k, h, fn)
}

// Del removes k and reports whether it was there. The bytes of the record are
// free for reuse when the bucket's ring comes round. Del does not allocate and
// locks one bucket.
func (c *Cache) Del(k []byte) bool {
	var w write
	w.k, w.h, w.reason = k, c.shared.hash(k), EvictDeleted
	_, found := c.remove(&w)
	return found
}

// Reset removes all entries. The cache stays usable; its memory stays with it,
// free for reuse (see [Cache.Close] for giving it back). Buckets are emptied
// one after another: an entry that is set meanwhile may or may not stay, and so
// may one that Touch writes again more than once.
// Counters in [Stats] go on.
func (c *Cache) Reset() {
	// Touch may write a record again, and move it between the small buckets and
	// the large ones: an old one must not slip through to where Reset has been.
	for i := range c.region.buckets {
		c.resetBucket(&c.region.buckets[i])
	}
	c.each(c.resetBucket) // the large ones last
}

// resetBucket removes the entries of one bucket.
func (c *Cache) resetBucket(b *bucket) {
	var w write
	c.region.mu.Lock()
	b.lock()
	if !b.closed {
		b.resetLocked()
	}
	b.unlock(&w)
	if b.large {
		c.settle(b)
	}
	c.region.mu.Unlock()
	c.announce(&w)
}

// Close gives all memory back to the operating system. It waits for calls that
// are under way; later ones miss, or return [ErrClosed] from Set. A second
// Close does nothing. The error, if any, is the operating system's, and the
// cache is closed nonetheless.
func (c *Cache) Close() error {
	g := &c.region
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range c.shared.buckets {
		c.buckets[i].close()
	}
	for i := range g.buckets {
		g.buckets[i].close()
	}
	if err := c.shared.pool.close(); err != nil {
		return fmt.Errorf("ringcache: close cache: %w", err)
	}
	return nil
}

// Len returns the number of entries. It takes every bucket's lock for a
// moment, one after another, so entries that come or go meanwhile may or may
// not be counted.
func (c *Cache) Len() int {
	n := 0
	c.each(func(b *bucket) {
		b.hold()
		n += b.liveLocked()
		b.mu.release()
	})
	return n
}

// UpdateStats adds the counters and gauges of the cache to s; see [Stats] for
// what each means. It takes every bucket's lock for a moment, one after
// another, and does not allocate.
func (c *Cache) UpdateStats(s *Stats) {
	c.each(func(b *bucket) { b.updateStats(s) })
	s.MaxBytesSize += uint64(c.shared.bound())
	s.ReservedBytes += uint64(c.shared.pool.used.Load())
}

// each calls fn with every bucket, small and large.
func (c *Cache) each(fn func(b *bucket)) {
	for i := range c.shared.buckets {
		fn(&c.buckets[i])
	}
	for i := range c.region.buckets {
		fn(&c.region.buckets[i])
	}
}
