package ringcache

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
)

const (
	bucketBits  = 9
	bucketCount = 1 << bucketBits

	// A bucket holds at least so many chunks, so that little is lost by rounding its
	// share. Caches below 1 GB have smaller chunks for it.
	chunksPerBucket = 32
)

// geometry is everything that shapes a cache. Tests make it tiny.
type geometry struct {
	maxBytes  int // bound on off-heap memory
	buckets   int // power of two, at most bucketCount
	chunkSize int // power of two, at least 64
	policy    Policy
	hugePages HugePages
	ttl       time.Duration // of entries stored without one; 0: they do not expire
	jitter    float64       // Options.TTLJitter
	stale     time.Duration // Options.StaleIfError
	ahead     time.Duration // Options.RefreshAhead
	timeout   time.Duration // Options.RefreshTimeout; 0: the default
	onRemove  func(k, v []byte, reason RemovalReason)
	now       func() time.Duration // time since the cache was made; nil: the real one
	machine   *clock.Machine       // where times come from
	version   uint64               // Options.Version
	expected  int                  // Options.ExpectedEntries
	posBits   uint                 // width of a position: generation and offset
	seed      [2]uint64            // {0, 0}: all hashes are 0
	mem       chunk.Memory
	file      *ringfile.Store // nil: the cache is in memory only
	born      time.Time       // when the clock began; zero: now

	compressor   Compressor // nil: there is no cold part
	compressorID string
	withoutDict  ValueCompressor // what it has without a dictionary
	coldShare    float64         // the cold part's share of the memory; 0: as learned
	byHand       bool            // no goroutine: a test compresses
	dictFile     string          // where dictionaries are kept; empty: in memory only
	dicts        []dictfile.Dict // that were found there
	foreign      bool            // none were, or those of another Compressor
}

// defaultGeometry returns the geometry of a cache of maxBytes.
func defaultGeometry(maxBytes int) geometry {
	share := maxBytes / bucketCount / chunksPerBucket
	return geometry{
		maxBytes:  maxBytes,
		buckets:   bucketCount,
		chunkSize: min(max(1<<(bits.Len(uint(share))-1), chunk.MinSize), chunk.MaxSize),
		posBits:   index.PosBits,
		seed:      secret,
		mem:       osMemory(),
		machine:   &clock.System,
	}
}

// shared is what the buckets of one cache share. It does not lead back to the
// Cache: a Cache that referred to itself could not have a finalizer.
type shared struct {
	seed      [2]uint64
	policy    policy.Kind
	form      record.Form
	file      *ringfile.Store // nil: the cache is in memory only
	pool      *chunk.Pool
	maxBytes  atomic.Int64 // the bound; Resize changes it
	expected  int          // Options.ExpectedEntries
	buckets   int
	posBits   uint
	shift     uint8 // log2 of the chunk size
	maxChunks int   // chunks that the rings of a bucket may hold together at most (I3)
	clock.Clock
	machine  *clock.Machine
	version  uint64                                  // Options.Version
	onRemove func(k, v []byte, reason RemovalReason) // may be nil

	generations *generation.Table // of namespaces

	noCold      coldPart     // of buckets that have none
	compression *compression // nil without Options.Compressor

	expiring  atomic.Bool  // there is or was an entry with an expiry
	total     atomic.Int64 // bytes that divide divides: maxBytes, but while a cache shrinks
	recovered recovered    // what was found in the file

	quota    atomic.Int64  // bytes that each small bucket may hold, rings and index
	full     atomic.Int64  // the same if there were no large buckets
	hand     atomic.Uint32 // the bucket that has to give next, where the system refuses memory
	refusals refusals
	arrivals arrivals

	learners [2]learner // of the small buckets, and of the large ones

	// largeKeys counts, for each small bucket, its keys in large buckets (I8). It
	// changes under the large bucket's lock; a Set and a Del hold the small one's too.
	largeKeys [bucketCount]atomic.Int32
}

// recovered counts what a cache has found in its file.
type recovered struct {
	entries, bytes, discarded, files atomic.Uint64

	mu     sync.Mutex
	spaces []string // keys of the entries of namespaces
}

// clock returns the clock of a cache of that geometry.
func (g *geometry) clock() clock.Clock {
	born := g.born
	if born.IsZero() {
		born = time.Now()
	}
	return clock.New(born, clock.Times{TTL: g.ttl, Jitter: g.jitter, Grace: g.stale}, g.now)
}

// mark returns how old the clock is at the present moment, or a little more.
func (s *shared) mark() ringfile.Mark {
	at := s.machine.Moment()
	return ringfile.Mark{Age: s.Age(), At: at}
}

// newShared returns what the buckets of a cache of that geometry share.
func newShared(g geometry) *shared {
	mem := g.mem
	mem.Map = orNoMemory(mem.Map)
	if g.file != nil {
		mem.Rings = fileMemory(g.file.Memory())
	}
	s := &shared{
		seed:      g.seed,
		policy:    policy.Kind(g.policy),
		pool:      chunk.NewPool(mem, g.maxBytes, g.chunkSize, chunk.HugePages(g.hugePages)),
		expected:  g.expected,
		buckets:   g.buckets,
		posBits:   g.posBits,
		shift:     log2(g.chunkSize),
		maxChunks: int(1<<(g.posBits-2)/uint64(g.chunkSize)) - 1,
		Clock:     g.clock(),
		machine:   g.machine,
		version:   g.version,
		onRemove:  g.onRemove,

		generations: generation.New(g.seed),
	}
	if s.file = g.file; s.file != nil {
		s.form = record.Checked
	}
	s.noCold.init(s)
	if g.compressor != nil {
		s.compression = newCompression(&g)
		s.compression.longest.Store(int64(s.longest(g.maxBytes, false)))
	}
	s.maxBytes.Store(int64(g.maxBytes))
	s.total.Store(int64(g.maxBytes))
	weakly := weak.Make(s) // the pool must not lead to the cache, which onRemove may
	s.pool.OnBound(func() {
		if s := weakly.Value(); s != nil {
			s.divide()
		}
	})
	s.divide()
	return s
}

// orNoMemory returns get, with ErrNoMemory in its errors.
func orNoMemory(get func(n int) ([]byte, error)) func(n int) ([]byte, error) {
	return func(n int) ([]byte, error) {
		b, err := get(n)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		return b, nil
	}
}

// fileMemory returns the memory of a file, with ErrNoMemory in its errors.
func fileMemory(m *chunk.RingMemory) *chunk.RingMemory {
	fromFile := *m
	fromFile.Map = func(n, ready int) ([]byte, error) {
		return orNoMemory(func(n int) ([]byte, error) { return m.Map(n, ready) })(n)
	}
	fromFile.Fill = func(b []byte) error {
		if err := m.Fill(b); err != nil {
			return fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		return nil
	}
	return &fromFile
}

// bound returns the bytes that the cache may hold.
func (s *shared) bound() int { return int(s.maxBytes.Load()) }

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
func (s *shared) smallQuota() int {
	if s.arrivals.held.Load() > 0 && s.idle(shareIdle) > shareChunks*s.pool.ChunkSize() {
		return int(s.full.Load())
	}
	return int(s.quota.Load())
}

// idle returns the bytes of memory that nobody is going to take soon, less 1/part of all.
func (s *shared) idle(part int) int { return max(0, s.pool.Spare()-s.inForce()/part) }

// inForce returns the bytes that the cache may hold as long as the system refuses more.
func (s *shared) inForce() int { return min(s.bound(), s.pool.Bound()) }

// setBound sets the bytes that the cache may hold. What the buckets divide stays.
func (s *shared) setBound(maxBytes int) {
	s.maxBytes.Store(int64(maxBytes))
	s.divide()
}

// maxValue returns the length of the longest value, which a header must have room for.
func (s *shared) maxValue() int {
	return int(min(int64(s.bound())/maxValueShare, math.MaxUint32))
}

// secret is mixed into every hash, so that nobody outside of the process can
// choose keys that meet in one bucket.
var secret = newSecret()

// newSecret returns a random secret. Its second word is odd.
func newSecret() (s [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	s[0] = binary.LittleEndian.Uint64(b[:])
	s[1] = binary.LittleEndian.Uint64(b[8:]) | 1
	return s
}

// refusals count the writes that were refused, by their error.
type refusals struct{ tooLarge, noMemory, tooShort, closed atomic.Uint64 }

// count counts a write that was refused with err.
func (r *refusals) count(err error) {
	switch {
	case errors.Is(err, ErrTooLarge):
		r.tooLarge.Add(1)
	case errors.Is(err, ErrNoMemory):
		r.noMemory.Add(1)
	case errors.Is(err, ErrClosed):
		r.closed.Add(1)
	case errors.Is(err, ErrTTLTooShort):
		r.tooShort.Add(1)
	}
}

// hash returns the hash of a key: 9 bits for the bucket, 2 for the large bucket,
// 7 from bit 34 on for the tag, 23 from bit 41 on for home and slot.
func (s *shared) hash(k []byte) uint64 { return s.mix(xxhash.Sum64(k)) }

// mix folds the secret into a hash of xxhash.
func (s *shared) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^s.seed[0], s.seed[1])
	return hi ^ lo
}

// largeKeysOf returns the count of large entries whose hashes share h's bucket.
func (s *shared) largeKeysOf(h uint64) *atomic.Int32 { return &s.largeKeys[h&(bucketCount-1)] }

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
func (s *shared) arrive(news arrival, large bool) {
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
func (s *shared) spanNow() span { return span{s.Now(), s.arrivals.stored.Load()} }

// since returns what lies between two times.
func (s span) since(at span) span { return span{s.ticks - at.ticks, s.sets - at.sets} }

// weigh decides whether the cache is sparse.
func (s *shared) weigh(records, bytes int64) {
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
func (s *shared) largeTarget() int {
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
func (s *shared) divide() {
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
func (s *shared) parts() (full, quota int64) {
	full = max(int64(s.inForce()/s.buckets), 1<<s.shift)
	total := min(s.total.Load(), int64(s.pool.Bound()))
	total -= max(total/slackShare, 4<<s.shift)
	return full, max(0, total-s.arrivals.held.Load()) / int64(s.buckets)
}

// longest returns the bytes of the longest record that a bucket takes in a cache
// of bound bytes: a small one what isLarge leaves to it, a large one what Set takes.
func (s *shared) longest(bound int, large bool) int {
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
func (s *shared) learner(large bool) *learner {
	if large {
		return &s.learners[1]
	}
	return &s.learners[0]
}

// log2 returns the logarithm of a power of two.
func log2(n int) uint8 { return uint8(bits.TrailingZeros(uint(n))) }

// scratch is a buffer that calls use one after another.
type scratch struct{ buf []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch is the largest buffer that is kept for the next call.
const maxScratch = 1 << 20

// fit makes room for n bytes in the next call that gets s. What a codec returned
// does not become the buffer: it may be bytes of its caller's.
func (s *scratch) fit(n int) {
	if n > cap(s.buf) && n <= maxScratch {
		s.buf = make([]byte, 0, min(2*n, maxScratch))
	}
}

// release hands s to the next call.
func (s *scratch) release() {
	if cap(s.buf) <= maxScratch {
		scratches.Put(s)
	}
}
