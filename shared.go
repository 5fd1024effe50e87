package ringcache

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ringcache/ringcache/internal/cold"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
)

const (
	bucketBits  = 9
	bucketCount = 1 << bucketBits
)

const (
	// largeBuckets is few enough that the largest record, a sixteenth of the
	// cache, fits into the share of one.
	largeBuckets = 4

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

// Config is what shapes the buckets of a cache. It never changes.
type Config struct {
	seed        [2]uint64 // mixed into every hash
	policy      policy.Kind
	buckets     int             // small ones: a power of two, at most bucketCount
	posBits     uint            // width of a position: generation and offset
	expected    int             // entries that there will be; 0: not known
	file        *ringfile.Store // nil: the cache is in memory only
	notifies    bool            // somebody is to be told of removed entries
	born        time.Time       // when the clock began
	times       clock.Times
	now         func() time.Duration // time since born; nil: the real one
	compression *cold.Compression    // nil: there is no cold part
}

// Shared is what the buckets of one cache share. It does not lead back to the
// Cache: a Cache that referred to itself could not have a finalizer.
type Shared struct {
	Config
	clock.Clock
	form      record.Form
	pool      *chunk.Pool
	maxBytes  atomic.Int64 // the bound; Resize changes it
	shift     uint8        // log2 of the chunk size
	maxChunks int          // chunks that the rings of a bucket may hold together at most (I3)

	generations *generation.Table // of namespaces

	noCold coldPart // of buckets that have none

	expiring  atomic.Bool  // there is or was an entry with an expiry
	total     atomic.Int64 // bytes that divide divides: maxBytes, but while a cache shrinks
	recovered recovered    // what was found in the file

	quota    atomic.Int64  // bytes that each small bucket may hold, rings and index
	full     atomic.Int64  // the same if there were no large buckets
	hand     atomic.Uint32 // the bucket that has to give next, where the system refuses memory
	arrivals arrivals

	learners [2]learner // of the small buckets, and of the large ones

	// largeKeys counts, for each small bucket, its keys in large buckets (I8). It
	// changes under the large bucket's lock; a Set and a Del hold the small one's too.
	largeKeys [bucketCount]atomic.Int32
}

// NewShared returns what the buckets of a cache share that has its memory from a pool, maxBytes at
// most.
func NewShared(c Config, pool *chunk.Pool, maxBytes int) *Shared {
	s := &Shared{
		Config:      c,
		Clock:       clock.New(c.born, c.times, c.now),
		pool:        pool,
		shift:       log2(pool.ChunkSize()),
		maxChunks:   int(1<<(c.posBits-2)/uint64(pool.ChunkSize())) - 1,
		generations: generation.New(c.seed),
	}
	if s.file != nil {
		s.form = record.Checked
	}
	s.noCold.init(s)
	if s.compression != nil {
		s.compression.Longest.Store(int64(s.longest(maxBytes, false)))
	}
	s.maxBytes.Store(int64(maxBytes))
	s.total.Store(int64(maxBytes))
	weakly := weak.Make(s) // the pool must not lead to the cache, which a Compressor may
	pool.OnBound(func() {
		if s := weakly.Value(); s != nil {
			s.divide()
		}
	})
	s.divide()
	return s
}

// recovered counts what a cache has found in its file.
type recovered struct {
	entries, bytes, discarded, files atomic.Uint64

	mu     sync.Mutex
	spaces []string // keys of the entries of namespaces
}

// bound returns the bytes that the cache may hold.
func (s *Shared) bound() int { return int(s.maxBytes.Load()) }

// Memory is idle if so large a part of all is free besides: 1/behindIdle for a bucket that is
// behind with its compaction; 1/shareIdle for one that needs more than its share, as others may
// soon want theirs.
const (
	behindIdle = 32
	shareIdle  = 8

	// shareChunks is the number of chunks that must be free in addition: for the page of a large
	// record's index, and for the unused parts of the first and the last chunk of the record. With
	// fewer, small buckets above their share would have to give up memory for a large record.
	shareChunks = 4
)

// smallQuota returns the bytes that a small bucket may hold. What is meant for large records is
// theirs as long as they do not need it.
func (s *Shared) smallQuota() int {
	if s.arrivals.held.Load() > 0 && s.idle(shareIdle) > shareChunks*s.pool.ChunkSize() {
		return int(s.full.Load())
	}
	return int(s.quota.Load())
}

// idle returns the bytes of memory that nobody is going to take soon, less 1/part of all.
func (s *Shared) idle(part int) int { return max(0, s.pool.Spare()-s.inForce()/part) }

// inForce returns the bytes that the cache may hold as long as the system refuses more.
func (s *Shared) inForce() int { return min(s.bound(), s.pool.Bound()) }

// setBound sets the bytes that the cache may hold. What the buckets divide stays.
func (s *Shared) setBound(maxBytes int) {
	s.maxBytes.Store(int64(maxBytes))
	s.divide()
}

// maxValue returns the length of the longest value, which a header must have room for.
func (s *Shared) maxValue() int {
	return int(min(int64(s.bound())/maxValueShare, math.MaxUint32))
}

// hash returns the hash of a key: 9 bits for the bucket, 2 for the large bucket,
// 7 from bit 34 on for the tag, 23 from bit 41 on for home and slot.
func (s *Shared) hash(k []byte) uint64 { return s.mix(xxhash.Sum64(k)) }

// mix folds the secret into a hash of xxhash.
func (s *Shared) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^s.seed[0], s.seed[1])
	return hi ^ lo
}

// largeKeysOf returns the count of large entries whose hashes share h's bucket.
func (s *Shared) largeKeysOf(h uint64) *atomic.Int32 { return &s.largeKeys[h&(bucketCount-1)] }

// arrival counts records and their bytes.
type arrival struct{ records, bytes int }

// add counts a record of n bytes.
func (a *arrival) add(n int) {
	a.records++
	a.bytes += n
}

// arrivals tell how many of the bytes stored lately were of large records, and how
// large records are. The counts are halved when the bytes reach the cache's size.
type arrivals struct {
	stored       atomic.Uint64 // all records, never halved
	records      atomic.Int64
	small, large atomic.Int64 // bytes
	held         atomic.Int64 // bytes that the large buckets hold
	sparse       atomic.Bool
}

// A cache is sparse when a bucket would hold fewer than sparseEntries of such
// records as are stored, until it would hold denseEntries.
const (
	sparseEntries = 32
	denseEntries  = 48
	leastRecords  = 16 // fewer are too few to tell
)

// arrive counts what was stored in a small bucket, or in a large one.
func (s *Shared) arrive(news arrival, large bool) {
	a := &s.arrivals
	side := &a.small
	if large {
		side = &a.large
	}
	side.Add(int64(news.bytes))
	a.stored.Add(uint64(news.records))
	r, sm, lg := a.records.Add(int64(news.records)), a.small.Load(), a.large.Load()
	s.weigh(r, sm+lg)
	if sm+lg > s.maxBytes.Load() {
		// Of several that come here at once, one halves each count.
		a.records.CompareAndSwap(r, r/2)
		a.small.CompareAndSwap(sm, sm/2)
		a.large.CompareAndSwap(lg, lg/2)
	}
}

// span is a time, or what lies between two: in ticks, and in records that the cache has
// stored. (Of these, main may hold millions, and turn only with every hundredth Set.)
type span struct {
	ticks uint32
	sets  uint64
}

// spanNow returns the time that it is. Under one lock, a later one is not less.
func (s *Shared) spanNow() span { return span{s.Now(), s.arrivals.stored.Load()} }

// since returns what lies between two times.
func (s span) since(at span) span { return span{s.ticks - at.ticks, s.sets - at.sets} }

// weigh decides whether the cache is sparse.
func (s *Shared) weigh(records, bytes int64) {
	if records < leastRecords || bytes <= 0 {
		return
	}
	least, sparse := float64(sparseEntries), s.arrivals.sparse.Load()
	if sparse {
		least = denseEntries
	}
	perBucket := float64(s.full.Load()) * float64(records) / float64(bytes)
	if is := perBucket < least; is != sparse {
		s.arrivals.sparse.Store(is) // readers share its line
	}
}

// largeTarget returns the bytes that the large buckets should hold. The small
// buckets always keep two chunks each, or a sixteenth of a cache that was refused
// more: what is small is cheap to keep.
func (s *Shared) largeTarget() int {
	small, large := max(s.arrivals.small.Load(), 0), s.arrivals.large.Load()
	if large <= 0 {
		return 0
	}
	share, bound := float64(large)/float64(small+large), s.inForce()
	keep := s.buckets * 2 << s.shift
	if s.pool.Limited() {
		keep = min(keep, bound/16)
	}
	return min(int(share*float64(bound)), bound-keep)
}

// divide gives the small buckets what the large ones leave. Of several calls at once, one
// of which may know less, the last to store has looked again.
func (s *Shared) divide() {
	for {
		full, quota := s.parts()
		s.full.Store(full)
		s.quota.Store(quota)
		if f, q := s.parts(); f == full && q == quota {
			return
		}
	}
}

// parts returns a small bucket's part of the cache, and of what large buckets leave. A
// bucket has at least a chunk, however little memory there is.
func (s *Shared) parts() (full, quota int64) {
	full = max(int64(s.inForce()/s.buckets), 1<<s.shift)
	total := min(s.total.Load(), int64(s.pool.Bound()))
	total -= max(total/slackShare, 4<<s.shift)
	return full, max(0, total-s.arrivals.held.Load()) / int64(s.buckets)
}

// longest returns the bytes of the longest record that a bucket takes in a cache
// of bound bytes: a small one what isLarge leaves to it, a large one what Set takes.
func (s *Shared) longest(bound int, large bool) int {
	if large {
		return record.MaxHeader + record.MaxKey + bound/maxValueShare
	}
	return bound / s.buckets / largeShare
}

// learner is a policy.Learner and its lock, which is the last to be taken.
type learner struct {
	mu sync.Mutex
	policy.Learner
}

// learner returns the one for large buckets, or that for small ones.
func (s *Shared) learner(large bool) *learner {
	if large {
		return &s.learners[1]
	}
	return &s.learners[0]
}

// log2 returns the logarithm of a power of two.
func log2(n int) uint8 { return uint8(bits.TrailingZeros(uint(n))) }
