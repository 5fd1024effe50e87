// Package fastcache has the API of github.com/VictoriaMetrics/fastcache v1.13.3 on top
// of ringcache. Two commands switch a program to it:
//
//	go mod edit -replace \
//	    github.com/VictoriaMetrics/fastcache=github.com/ringcache/ringcache/compat/fastcache@latest
//	go mod tidy
//
// The main differences: the bound includes the index, two keys with the same hash don't replace
// each other, the policy is S3-FIFO, a snapshot is one file that is replaced atomically, and the
// memory of a Cache that becomes unreachable is freed. New code should use package ringcache, whose
// methods return errors.
package fastcache

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ringcache/ringcache"
)

const (
	bucketsCount = 512
	chunkSize    = 64 * 1024

	// maxBucketSize is the size from which on a bucket is too large.
	maxBucketSize = 1 << 40

	// minCapacity is what New rounds up to a multiple of.
	minCapacity = bucketsCount * chunkSize

	maxCapacity = 1 << 42 // the largest bound of ringcache
)

// Cache is a cache of byte slices. It is safe for concurrent use and must not be copied. New and
// the LoadFromFile functions return one.
type Cache struct {
	// buckets is what fastcache's own tests name; nothing is in it.
	buckets [bucketsCount]struct{ gen uint64 } //lint:ignore U1000 see above

	// inner is another one after each Reset: that is what gives memory back.
	inner atomic.Pointer[inner]

	capacity int

	// ignored counts Sets that were too large; inner does not hear of them.
	ignored atomic.Uint64

	big bigCounters
}

// inner is the cache that has the entries.
type inner struct {
	*ringcache.Cache
	loading ringcache.Stats // what it counted while a folder was loaded into it
}

// New returns a cache of maxBytes, rounded up to a multiple of 32 MB. It panics if
// maxBytes is not positive or above 4 TB.
func New(maxBytes int) *Cache {
	if maxBytes <= 0 {
		panic(fmt.Errorf("fastcache: make cache: maxBytes must be greater than 0; got %d", maxBytes))
	}
	bucketBytes := (uint64(maxBytes) + bucketsCount - 1) / bucketsCount
	if bucketBytes >= maxBucketSize {
		panic(fmt.Errorf("fastcache: make cache: too big maxBytes=%d; should be smaller than %d",
			bucketBytes, uint64(maxBucketSize)))
	}
	capacity := wholeChunks(maxBytes)
	return around(ringcache.New(capacity), capacity)
}

// around returns the Cache that has these entries.
func around(entries *ringcache.Cache, capacity int) *Cache {
	c := &Cache{capacity: capacity}
	c.inner.Store(&inner{Cache: entries})
	// Values of SetBig are numbered from a random place on: a snapshot may have others.
	c.big.lastNumber.Store(rand.Uint64())
	return c
}

// wholeChunks is maxBytes rounded up to whole chunks of each bucket.
func wholeChunks(maxBytes int) int {
	return ((maxBytes-1)/minCapacity + 1) * minCapacity
}

// Set stores v under k. It stores nothing if k and v together have 65,532 bytes or more: use
// SetBig. k and v may be changed as soon as Set returns.
func (c *Cache) Set(k, v []byte) {
	if len(k) >= 1<<16 || len(v) >= 1<<16 || 4+len(k)+len(v) >= chunkSize {
		c.ignored.Add(1)
		return
	}
	// What is refused for want of memory is as if it had been evicted.
	_ = c.inner.Load().Set(k, v)
}

// Get appends the value of k to dst and returns the result. On a miss it returns dst
// unchanged, which is nil for a nil dst, as for an empty value. k may be changed as soon as
// Get returns. For a value that SetBig stored, Get returns meaningless bytes.
func (c *Cache) Get(dst, k []byte) []byte {
	return c.inner.Load().Get(dst, k)
}

// HasGet is like Get, and also reports whether k was found.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	return c.inner.Load().HasGet(dst, k)
}

// Has reports whether k is in the cache. It counts as a Get.
func (c *Cache) Has(k []byte) bool {
	return c.inner.Load().Has(k)
}

// Del removes k. If SetBig stored it, its parts stay until they are evicted.
func (c *Cache) Del(k []byte) {
	c.inner.Load().Del(k)
}

// Reset removes all entries, frees their memory, and sets the counters to 0.
func (c *Cache) Reset() {
	old := c.inner.Load()
	fresh := &inner{Cache: ringcache.New(c.capacity)}
	if c.inner.CompareAndSwap(old, fresh) { // otherwise another Reset was first
		_ = old.Close() // calls that still use it miss, as after a Reset
	} else {
		_ = fresh.Close()
	}
	c.ignored.Store(0)
	c.big.reset()
}
