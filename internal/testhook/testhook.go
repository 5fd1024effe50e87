// Package testhook gives tests in other packages what the API of ringcache does not offer:
// caches of other shapes, and a look inside. Package ringcache sets the variables when it is
// initialized. It cannot be imported here, so a cache, a *ringcache.Cache, is passed as any.
package testhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// Shape is what shapes a cache besides its Options.
type Shape struct {
	Buckets   int // power of two, at most store.BucketCount
	ChunkSize int // power of two, at least 64
	PosBits   uint
	Seed      [2]uint64 // {0, 0}: all hashes are 0
	Memory    chunk.Memory
	Elapsed   func() time.Duration // time since the cache was made; nil: the real one
	Machine   *clock.Machine
	ColdShare float64 // of the memory; 0: as learned
	ByHand    bool    // no goroutine compresses
}

// How caches are made.
var (
	// Default returns the shape that New gives a cache of maxBytes.
	Default func(maxBytes int) Shape

	// New returns a cache of any shape. The ringcache.Options are not validated.
	New func(options any, s Shape) (cache any, err error)
)

// Bucket is a bucket of a cache. Values of one bucket are equal.
type Bucket struct {
	*store.Store
	Mu  *sync.Mutex
	Seq *atomic.Uint64
}

// Lock takes the bucket to write.
func (b Bucket) Lock() {
	b.Mu.Lock()
	b.Seq.Add(1)
}

// Unlock gives back what Lock took.
func (b Bucket) Unlock() {
	b.Seq.Add(1)
	b.Mu.Unlock()
}

// What a cache consists of.
var (
	Shared   func(cache any) *store.Shared
	Counters func(cache any) *stripe.Counters
	Mask     func(cache any) *uint64     // of the hash bits that choose a small bucket
	Arena    func(cache any) *sync.Mutex // of the large buckets

	// BucketOf returns a bucket by number: the small ones come first.
	BucketOf func(cache any, i int) Bucket

	// Unfinished reports whether a Resize has left work.
	Unfinished func(cache any) bool
)

// Steps of calls, and calls with other arguments than the API allows.
var (
	// Change calls fn under the lock of a bucket, and tells OnRemove of what fn has removed.
	Change func(cache any, bucket int, fn func(s *store.Store))

	// Write stores a record with the expiry and of the kind that w says.
	Write func(cache any, w store.Write) error

	// WriteMeasured is Write to a small bucket, or to a large one, of a record that was measured
	// before. It reports whether the record has to be measured again, since a Resize came.
	WriteMeasured func(cache any, w store.Write, large bool) (resized bool)

	// IsLarge reports whether a record of n bytes goes to a large bucket.
	IsLarge func(cache any, n int) bool

	// ReadLocked looks a key up as a lookup does that has failed without the lock.
	ReadLocked func(cache any, k []byte)

	// Resize has no least size. It reports false if the cache is closed.
	Resize func(cache any, maxBytes int) bool

	// Overlaps reports whether k lies in the array of dst.
	Overlaps func(dst, k []byte) bool
)

// What the goroutine of a cache with a Compressor does.
var (
	// CompressQueue compresses what waits in a bucket.
	CompressQueue func(cache any, bucket int, batch *store.ColdBatch)

	// CompressBucket is CompressQueue that sees to dictionaries and shares as well.
	CompressBucket func(cache any, bucket int, batch *store.ColdBatch)

	// RenewDicts makes a dictionary if one is due.
	RenewDicts func(cache any)
)

// Loads.
var (
	// Waiting returns how many callers wait for the load of a key, or -1 if none may be joined.
	Waiting func(cache any, k []byte) int

	// Keep ends a load of a key with a result: it is stored.
	Keep func(cache any, k, v []byte, ttl time.Duration, err error)

	// LoadTwice has a batch come to a key twice, and calls between in between. It returns what
	// is closed when the key is loaded, and whether that is the same for both.
	LoadTwice func(cache any, k []byte, between func(), load any) (done <-chan struct{}, same bool)
)

// Namespace is what a *ringcache.Namespace consists of.
type Namespace struct {
	Cache      any
	Entry      []byte // the key of the record that has the generation
	Generation *atomic.Uint64
	Mu         *sync.Mutex
	Usage      func() *generation.Usage

	AppendKey func(dst, k []byte) []byte // the key that k has in the cache
	CutKey    func(raw []byte) (k []byte, ok bool)
	Stored    func() (generation uint64, ok bool)
	Keep      func()         // stores the generation again if its record was dropped
	Wrote     func(sets int) // counts Sets
}

var (
	OfNamespace func(namespace any) Namespace

	// Namespaces returns how many names a cache knows.
	Namespaces func(cache any) int
)

// Walker saves the entries of a cache, bucket by bucket.
type Walker struct {
	Part snapshot.Step

	// Step is Part of short records alone. It returns the keys of the others.
	Step func(
		bucket int, at uint64, p snapshot.Pass, done *snapshot.Cells,
	) (next uint64, others [][]byte, err error)

	// CopyLong copies a record of a bucket in parts, and reports whether it was whole. It has
	// room for n bytes.
	CopyLong func(bucket int, k []byte, n int) (whole bool)
}

// Snapshots.
var (
	Saver func(ctx context.Context, cache any, passes []snapshot.Pass) *snapshot.Saver

	// WalkerOf returns a walker for out. It calls between, which may be nil, between two parts
	// of a long record.
	WalkerOf func(cache any, at clock.Wall, out *snapshot.Worker, between func()) Walker

	// Restore puts the entries of a snapshot into a cache.
	Restore func(cache any, s *snapshot.Contents) error

	// RestoreAt is Restore of a block, when the wall clock says at.
	RestoreAt func(cache any, at time.Time) func(*snapshot.Ref, []byte) error
)
