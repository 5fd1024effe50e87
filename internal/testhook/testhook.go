// Package testhook gives tests in other packages access that the API of ringcache does not offer:
// caches of other shapes, and their internal parts. Package ringcache sets the variables when it is
// initialized. This package cannot import it, so a *ringcache.Cache is passed as any.
package testhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// Shape has the properties of a cache that are not in its Options.
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

// Bucket is a bucket of a cache. Two values for the same bucket are equal.
type Bucket struct {
	*store.Store
	Mu  *sync.Mutex
	Seq *atomic.Uint64
}

// Lock locks the bucket for writing.
func (b Bucket) Lock() {
	b.Mu.Lock()
	b.Seq.Add(1)
}

// Unlock undoes Lock.
func (b Bucket) Unlock() {
	b.Seq.Add(1)
	b.Mu.Unlock()
}

// The parts of a cache.
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
	// Change calls fn under the lock of a bucket, and then calls OnRemove for the entries that fn
	// has removed.
	Change func(cache any, bucket int, fn func(s *store.Store))

	// Write stores a record with the expiry and of the kind that w has.
	Write func(cache any, w store.Write) error

	// WriteMeasured is Write to a small bucket, or to a large one, of a record that was measured
	// before. It reports whether the record must be measured again because of a Resize.
	WriteMeasured func(cache any, w store.Write, large bool) (resized bool)

	// IsLarge reports whether a record of n bytes goes to a large bucket.
	IsLarge func(cache any, n int) bool

	// ReadLocked looks a key up under the lock, like a lookup that has failed without it.
	ReadLocked func(cache any, k []byte)

	// Resize is Cache.Resize without a minimum size. It reports false if the cache is closed.
	Resize func(cache any, maxBytes int) bool

	// Overlaps reports whether k is within the array of dst.
	Overlaps func(dst, k []byte) bool
)

// Steps of the goroutine of a cache with a Compressor.
var (
	// CompressQueue compresses the records in the queue of a bucket.
	CompressQueue func(cache any, bucket int, w *store.Waiting)

	// CompressBucket is CompressQueue, and then renews dictionaries and the share if that is due.
	CompressBucket func(cache any, bucket int, w *store.Waiting)

	// RenewDicts makes a dictionary if one is due.
	RenewDicts func(cache any)
)

// Loads.
var (
	// Waiting returns how many callers wait for the load of a key, or -1 if none may be joined.
	Waiting func(cache any, k []byte) int

	// Keep stores the result of a load of a key.
	Keep func(cache any, k, v []byte, ttl time.Duration, err error)

	// LoadTwice lets a batch reach the same key twice, and calls between in between. It returns the
	// channel that is closed when the key is loaded, and whether both have the same one.
	LoadTwice func(cache any, k []byte, between func(), load any) (done <-chan struct{}, same bool)
)

// Namespace has the parts of a namespace.
type Namespace struct {
	Cache      any
	Entry      []byte // the key of the record that holds the generation
	Generation *atomic.Uint64
	Mu         *sync.Mutex

	AppendKey func(dst, k []byte) []byte // appends the key of the cache for k
}

var (
	OfNamespace func(namespace any) Namespace

	// KeyOf returns the key under which the buckets have a key of a cache, and its hash.
	KeyOf func(cache any, k []byte) (raw []byte, hash uint64)

	// Namespaces returns the number of names that a cache knows.
	Namespaces func(cache any) int
)

// Walker saves the entries of a cache, bucket by bucket.
type Walker struct {
	// Copy makes a step in a bucket, under its lock, and returns the number of records that are
	// copied after it.
	Copy func(bucket, quarter int) (done bool, later int, err error)

	// CopyLong copies a record of n bytes in parts, and reports whether it was whole.
	CopyLong func(bucket int, k []byte, n int) (whole bool)

	End func()
}

// Snapshots.
var (
	// Saver returns a saver without a destination. It calls between, which may be nil, between two
	// parts of a long record. The caller must call end.
	Saver func(ctx context.Context, cache any, between func()) (s *snapshot.Saver, end func())

	// WalkerOf returns a walker for out.
	WalkerOf func(cache any, out *snapshot.Worker, between func()) Walker

	// Restore puts the entries of a snapshot into a cache.
	Restore func(cache any, s *snapshot.Contents) error
)
