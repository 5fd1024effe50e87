// Package testhook gives tests in other packages access that the API of ringcache does not offer:
// caches of other shapes, and their internal parts. The functions are in hook.go of package
// ringcache, which imports this package and is linked to it by name, so that no program but the
// tests contains them. A *ringcache.Cache is passed as any.
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

// Bucket is a bucket of a cache.
type Bucket struct {
	*store.Store
	Mu  *sync.Mutex
	Seq *atomic.Uint64
}

// Parts are the parts of a cache.
type Parts struct {
	Shared     *store.Shared
	Counters   *stripe.Counters
	Mask       *uint64            // of the hash bits that choose a small bucket
	Arena      *sync.Mutex        // of the large buckets
	Unfinished *bool              // a Resize has left work
	CloseNames func() error       // closes the file of namespaces
	Bucket     func(i int) Bucket // by number: the small ones come first
	Waiting    func(k []byte) int // callers that wait for the load of a key, -1 if none may join

	// Key returns the key under which the buckets have a key of the cache, and its hash.
	Key func(k []byte) (raw []byte, hash uint64)

	Generation *atomic.Uint64 // of a namespace
}

// Default returns the shape that New gives a cache of maxBytes.
func Default(maxBytes int) Shape

// New returns a cache of any shape. The ringcache.Options are not validated.
func New(options any, s Shape) (cache any, err error)

// PartsOf returns the parts of a cache.
func PartsOf(cache any) Parts

// Saver returns a saver without a destination. It calls between, which may be nil, between two
// parts of a long record. The caller must call end.
func Saver(ctx context.Context, cache any, between func()) (s *snapshot.Saver, end func())

// Restore puts the entries of a snapshot into a cache.
func Restore(cache any, s *snapshot.Contents) error
