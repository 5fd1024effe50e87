package store

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
)

const (
	BucketBits  = 9
	BucketCount = 1 << BucketBits
)

const (
	// LargeBuckets is few enough that the largest record, a sixteenth of the
	// cache, fits into the share of one.
	LargeBuckets = 4

	// largeShare: a record is large above 1/largeShare of a bucket's full quota;
	// sparseShare, the same in a sparse cache, where a bucket would hold too few.
	largeShare  = 8
	sparseShare = 512

	// hysteresis: large buckets may hold 1/hysteresis more than their target.
	hysteresis = 8

	// slackShare: 1/slackShare of the cache is in nobody's quota, for a bucket in need.
	slackShare = 256

	// maxValueShare: a value may be as large as 1/maxValueShare of the cache.
	maxValueShare = 16
)

// Config has the properties of a cache's buckets that never change.
type Config struct {
	Seed        [2]uint64 // mixed into every hash
	Policy      policy.Kind
	Buckets     int            // small ones: a power of two, at most BucketCount
	PosBits     uint           // width of a position, a count of bytes
	Expected    int            // expected number of entries; 0: not known
	File        *ringfile.File // nil: the cache is in memory only
	Notifies    bool           // OnRemove is to be called for removed entries
	Born        time.Time      // when the clock began
	Expiries    clock.Settings
	Elapsed     func() time.Duration // time since Born; nil: the real one
	Compression *cold.Compression    // nil: there is no cold part
}

// Shared is what the buckets of one cache share. It holds no reference to the Cache: a Cache that
// its own cleanup could reach would never be collected.
type Shared struct {
	Config
	clock.Clock
	Form      record.Form
	Pool      *chunk.Pool
	MaxBytes  atomic.Int64 // the bound; Resize changes it
	Shift     uint8        // log2 of the chunk size
	mostMoved int          // bytes that a Set moves at most, so that sweep can keep up (I5)
	maxChunks int          // chunks that the rings of a bucket may hold together at most (I3)

	Generations *generation.Table // of namespaces
	setQuotas   func()            // SetQuotas, to which the pool has a weak pointer

	noCold coldPart // of buckets that have none

	Expiring atomic.Bool  // there is an entry with an expiry, or was one
	Total    atomic.Int64 // bytes that the buckets share: MaxBytes, except while a cache shrinks

	Recovered struct { // what the cache has found in its file
		Entries, Discarded, Files atomic.Uint64
	}

	quota    atomic.Int64  // bytes of rings and index that each small bucket may hold
	full     atomic.Int64  // the same if there were no large buckets
	Hand     atomic.Uint32 // the next bucket to give up memory if the system refuses it
	Indexes  atomic.Int32  // buckets whose index has a page
	Arrivals arrivals

	learners [2]learner // of the small buckets, and of the large ones

	// LargeKeys counts the keys in large buckets, by the low bits of their hashes (I8). Each large
	// bucket has 16 bits of a count. They change under its lock; a Set and a Del hold the small one's
	// too.
	LargeKeys [BucketCount]atomic.Int64
}

// NewShared returns the state that the buckets of a cache share. The cache takes its memory from
// pool, at most maxBytes.
func NewShared(c Config, pool *chunk.Pool, maxBytes int) *Shared {
	s := &Shared{
		Config:      c,
		Clock:       clock.New(c.Born, c.Expiries, c.Elapsed),
		Pool:        pool,
		Shift:       uint8(bits.TrailingZeros(uint(pool.ChunkSize()))), // of a power of two
		mostMoved:   1 << min(c.PosBits-4, 30),
		maxChunks:   int(1<<(c.PosBits-2)/uint64(pool.ChunkSize())) - 1,
		Generations: new(generation.Table),
	}
	if s.File != nil {
		s.Form = record.Checked
	}
	s.noCold.init(s)
	s.MaxBytes.Store(int64(maxBytes))
	s.Total.Store(int64(maxBytes))
	// The pool must not refer to s, whose Compressor may refer to the cache.
	s.setQuotas = s.SetQuotas
	weakly := weak.Make(&s.setQuotas)
	pool.OnBound(func() {
		if set := weakly.Value(); set != nil {
			(*set)()
		}
	})
	s.SetQuotas()
	return s
}

// Bound returns the bytes that the cache may hold.
func (s *Shared) Bound() int { return int(s.MaxBytes.Load()) }

// A bucket may hold more than its quota while more than 1/keptIdle of all memory is free, and
// keptChunks, so that buckets below theirs and large records find some: up to 1/lentShare of that.
const (
	keptIdle   = 16
	keptChunks = 4
	lentShare  = 2
)

// lent returns the bytes that a bucket may hold beyond its quota.
func (s *Shared) lent(quota int) int {
	idle := s.Pool.Spare() - s.EffectiveBound()/keptIdle - keptChunks<<s.Shift
	return max(0, min(idle, max(quota, int(s.full.Load()))/lentShare))
}

// EffectiveBound returns the bytes that the cache may hold as long as the system refuses more.
func (s *Shared) EffectiveBound() int { return min(s.Bound(), s.Pool.Bound()) }

// ForRecords returns the part of EffectiveBound that is not in indexes.
func (s *Shared) ForRecords() int {
	return max(0, s.EffectiveBound()-s.Pool.PageBytes())
}

// SetBound sets the bytes that the cache may hold. It leaves Total, the bytes that the buckets
// share.
func (s *Shared) SetBound(maxBytes int) {
	s.MaxBytes.Store(int64(maxBytes))
	s.SetQuotas()
	a := &s.Arrivals
	s.updateSparse(a.records.Load(), a.small.Load()+a.large.Load())
}

// MaxValue returns the length of the longest value, which a header must have room for.
func (s *Shared) MaxValue() int {
	return int(min(uint64(s.Bound())/maxValueShare, math.MaxUint32)) // unsigned: a shift
}

// HashOf returns the hash of the key of a record of kind k. That of a spaced record is mixed from
// the complement, so that no other key reaches it.
func (s *Shared) HashOf(key []byte, k record.Kind) uint64 {
	x := xxhash.Sum64(key)
	if k&record.Spaced != 0 {
		x = ^x
	}
	return s.Mix(x)
}

// Mix folds the secret into a hash of xxhash. The result has 9 bits for the bucket, 2 for the large
// bucket, 7 from bit 34 on for the tag, and 23 from bit 41 on for home and slot.
func (s *Shared) Mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^s.Seed[0], s.Seed[1])
	return hi ^ lo
}

// LargeKeysOf returns the count of the keys in large buckets whose hashes end like h.
func (s *Shared) LargeKeysOf(h uint64) *atomic.Int64 { return &s.LargeKeys[h&(BucketCount-1)] }

// largeKeyBits are the bits that each large bucket has of a count.
const largeKeyBits = 64 / LargeBuckets

// LargeKey returns what a key of hash h adds to its count.
func LargeKey(h uint64) int64 { return 1 << (h >> BucketBits % LargeBuckets * largeKeyBits) }

// Arrival counts records and their bytes.
type Arrival struct{ Records, Bytes int }

// arrivals tell how many of the bytes stored lately were of large records, and how large records
// are on average. The counts are halved when the bytes reach the cache's size.
type arrivals struct {
	records      atomic.Int64
	small, large atomic.Int64 // bytes
	Held         atomic.Int64 // bytes that the large buckets hold, or are to get (AddHeld)
	needSmall    atomic.Int64 // bytes of live entries and of indexes (Store.tellNeed)
	needLarge    atomic.Int64
	sparse       atomic.Bool
}

// A cache becomes sparse when a bucket would hold fewer than sparseEntries records of the mean size
// stored lately. It remains sparse until a bucket would hold denseEntries.
const (
	sparseEntries = 32
	denseEntries  = 48
	leastRecords  = 16 // fewer do not decide
)

// CountArrival counts what was stored in a small bucket, or in a large one.
func (s *Shared) CountArrival(news Arrival, large bool) {
	a := &s.Arrivals
	side := &a.small
	if large {
		side = &a.large
	}
	side.Add(int64(news.Bytes))
	r, sm, lg := a.records.Add(int64(news.Records)), a.small.Load(), a.large.Load()
	s.updateSparse(r, sm+lg)
	if sm+lg > s.MaxBytes.Load() {
		// Of several goroutines that get here at once, one halves each count.
		a.records.CompareAndSwap(r, r/2)
		a.small.CompareAndSwap(sm, sm/2)
		a.large.CompareAndSwap(lg, lg/2)
	}
}

// CountMoved counts a record of n bytes, which moves from a small bucket to a large one, as if it
// had been stored there, as often as the records of small buckets were.
func (s *Shared) CountMoved(n int) {
	a := &s.Arrivals
	times := float64(a.small.Load()) / float64(max(a.needSmall.Load(), 1))
	moved := int64(times * float64(n))
	a.small.Add(-moved)
	a.large.Add(moved)
}

// updateSparse decides whether the cache is sparse.
func (s *Shared) updateSparse(records, bytes int64) {
	if records < leastRecords || bytes <= 0 {
		return
	}
	least, sparse := float64(sparseEntries), s.Arrivals.sparse.Load()
	if sparse {
		least = denseEntries
	}
	perBucket := float64(s.full.Load()) * float64(records) / float64(bytes)
	if is := perBucket < least; is != sparse {
		s.Arrivals.sparse.Store(is) // not stored in vain: readers share its cache line
	}
}

// IsLarge reports whether a record of n bytes goes to the large buckets. The limit does not follow
// the small buckets' quota: large records would lower that quota, and so make even more records
// large.
func (s *Shared) IsLarge(n int) bool {
	full := uint(s.full.Load()) // unsigned, which is divided by a shift
	return uint(n) > full/sparseShare && (uint(n) > full/largeShare || s.Arrivals.sparse.Load())
}

// largeIsOver reports whether the large buckets exceed their target by so much that they must evict
// for the small ones.
func (s *Shared) largeIsOver() bool {
	target := s.largeTarget()
	return int(s.Arrivals.Held.Load()) > target+target/hysteresis+s.Pool.ChunkSize()*LargeBuckets
}

// keptFree: as long as 1/keptFree of the memory is neither live entries nor index, small and large
// buckets do not evict each other's live entries.
const keptFree = 4

// FreeOfLive returns the bytes that live entries and indexes may still take before less than
// 1/share of the memory is left.
func (s *Shared) FreeOfLive(share int) int {
	a := &s.Arrivals
	bound := s.EffectiveBound()
	return bound - bound/share - int(a.needSmall.Load()+a.needLarge.Load())
}

// extra returns the bytes that a small bucket may hold beyond an equal share: as many as its live
// entries and index need more than those of the mean bucket, so that all have the same room for
// dead bytes. Below 0, it leaves them to others. As live entries fill the memory, shares become
// equal: else a bucket that once had more entries would keep its advantage.
func (s *Shared) extra(need int) int {
	share := float64(s.quota.Load())
	mean := float64(s.Arrivals.needSmall.Load()) / float64(s.Buckets)
	// All of it while 1/keptFree of the memory is free, none once half of that is.
	part := 2*keptFree*(share-mean)/max(share, 1) - 1
	return int((float64(need) - mean) * min(max(part, 0), 1))
}

// shareOfLarge returns the share of the memory that is for large records: their share of the bytes
// stored lately, but, as long as live entries leave room, not more than their share of the live
// bytes.
func (s *Shared) shareOfLarge() float64 {
	a := &s.Arrivals
	share := shareOf(a.large.Load(), a.small.Load())
	if live := a.needLarge.Load(); live > 0 && s.FreeOfLive(keptFree) > 0 {
		share = min(share, shareOf(live, a.needSmall.Load()))
	}
	return share
}

// shareOf returns the share of n in n+other.
func shareOf(n, other int64) float64 {
	if n <= 0 {
		return 0
	}
	return float64(n) / float64(n+max(other, 0))
}

// keptSmall: the small buckets always keep 1/keptSmall of the cache, up to two chunks and a page
// each.
const keptSmall = 16

// largeTarget returns the bytes that the large buckets should hold.
func (s *Shared) largeTarget() int {
	share, bound := s.shareOfLarge(), s.EffectiveBound()
	if share == 0 {
		return 0
	}
	keep := min(s.Buckets*(2<<s.Shift+s.Pool.PageSize()), bound/keptSmall)
	return min(int(share*float64(bound)), bound-keep)
}

// AddHeld adds n bytes to those that the large buckets hold, or are to get.
func (s *Shared) AddHeld(n int) {
	s.Arrivals.Held.Add(int64(n))
	s.SetQuotas()
}

// SetQuotas gives the small buckets what the large ones leave. Concurrent calls may compute from
// older counts, but the last one to store computes again.
func (s *Shared) SetQuotas() {
	for {
		full, quota := s.quotas()
		s.full.Store(full)
		s.quota.Store(quota)
		if f, q := s.quotas(); f == full && q == quota {
			return
		}
	}
}

// quotas returns a small bucket's part of the whole cache, which is at least a chunk, and its part
// of what the large buckets leave.
func (s *Shared) quotas() (full, quota int64) {
	full = max(int64(s.EffectiveBound()/s.Buckets), 1<<s.Shift)
	total := min(s.Total.Load(), int64(s.Pool.Bound()))
	total -= max(total/slackShare, 4<<s.Shift)
	return full, max(0, total-s.Arrivals.Held.Load()) / int64(s.Buckets)
}

// Longest returns the bytes of the longest record that a bucket takes in a cache of bound bytes: a
// small one takes what IsLarge leaves to it, a large one what Set accepts.
func (s *Shared) Longest(bound int, large bool) int {
	if large {
		return record.MaxHeader + record.MaxKey + bound/maxValueShare
	}
	return bound / s.Buckets / largeShare
}

// learner is a policy.Learner and its lock, under which no other lock is taken.
type learner struct {
	mu sync.Mutex
	policy.Learner
}
