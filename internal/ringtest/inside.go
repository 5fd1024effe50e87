package ringtest

import (
	"errors"
	"sync"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/testhook"
)

// What tests do inside a cache.

// Shared returns what the buckets of a cache share.
func Shared(c *ringcache.Cache) *store.Shared { return testhook.PartsOf(c).Shared }

// HashOf returns the hash of a key of the whole cache.
func HashOf(c *ringcache.Cache, k []byte) uint64 { return Shared(c).HashOf(k, record.Value) }

// Counters returns the counters of lookups.
func Counters(c *ringcache.Cache) *stripe.Counters { return testhook.PartsOf(c).Counters }

// Arena returns the lock of the large buckets.
func Arena(c *ringcache.Cache) *sync.Mutex { return testhook.PartsOf(c).Arena }

// Mask returns the mask of the hash bits that choose a small bucket.
func Mask(c *ringcache.Cache) *uint64 { return testhook.PartsOf(c).Mask }

// KeyOf returns the key under which the buckets have a key of a cache, and its hash.
func KeyOf(c *ringcache.Cache, k []byte) (raw []byte, hash uint64) {
	return testhook.PartsOf(c).Key(k)
}

// Bucket is a bucket of a cache. Two values for the same bucket are equal.
type Bucket struct{ testhook.Bucket }

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

// Nth returns a bucket by number: the small ones come first.
func Nth(c *ringcache.Cache, i int) Bucket { return Bucket{testhook.PartsOf(c).Bucket(i)} }

// EachBucket calls fn with every bucket, small and large.
func EachBucket(c *ringcache.Cache, fn func(b Bucket)) {
	for i := range Shared(c).Buckets + store.LargeBuckets {
		fn(Nth(c, i))
	}
}

// BucketOf returns the small bucket for hash h.
func BucketOf(c *ringcache.Cache, h uint64) Bucket { return Nth(c, int(h&*Mask(c))) }

// LargeBucketOf returns the large bucket for hash h.
func LargeBucketOf(c *ringcache.Cache, h uint64) Bucket {
	return Nth(c, Shared(c).Buckets+int(h>>store.BucketBits&(store.LargeBuckets-1)))
}

// Change calls fn under the lock of a bucket, and then OnRemove for the entries that fn has
// removed.
func Change(c *ringcache.Cache, bucket int, fn func(s *store.Store)) {
	b := Nth(c, bucket)
	gone := func() *store.Removals {
		b.Lock()
		defer b.Unlock()
		fn(b.Store)
		defer func() { b.Removals = nil }()
		return b.Removals
	}()
	if gone == nil {
		return
	}
	for _, e := range gone.List {
		if e.Packed {
			v, err := Shared(c).Compression.Unpack(nil, e.Value)
			if err != nil {
				continue
			}
			e.Value = v
		}
		c.Options().OnRemove(ringcache.Removal{
			Key: e.Key, Value: e.Value, Reason: ringcache.RemovalReason(e.Reason)})
	}
}

// Write stores a short record with the expiry and of the kind that w has.
func Write(c *ringcache.Cache, w store.Write) (err error) {
	w.Hash = Shared(c).HashOf(w.Key, w.Kind)
	w.Measure(Shared(c))
	Change(c, int(BucketOf(c, w.Hash).Number), func(s *store.Store) {
		s.MoveHomes()
		err = s.Set(&w)
	})
	return err
}

// Resize is Cache.Resize. It reports false if the cache is closed.
func Resize(c *ringcache.Cache, maxBytes int) bool {
	err := c.Resize(maxBytes)
	if err != nil && !errors.Is(err, ringcache.ErrClosed) {
		panic(err)
	}
	return err == nil
}

// CompressQueue compresses the records in the queue of a bucket.
func CompressQueue(c *ringcache.Cache, bucket int, w *store.Waiting) {
	b := Nth(c, bucket)
	locked := func(fn func(*store.Waiting) bool) bool {
		b.Lock()
		defer b.Unlock()
		return fn(w)
	}
	for locked(b.TakeWaiting) {
		b.PackWaiting(w)
		if !locked(b.PutAway) {
			return
		}
	}
}

// CompressBucket is CompressQueue, and then makes a dictionary if one is due.
func CompressBucket(c *ringcache.Cache, bucket int, w *store.Waiting) {
	CompressQueue(c, bucket, w)
	RenewDicts(c)
}

// RenewDicts makes a dictionary if one is due.
func RenewDicts(c *ringcache.Cache) { Shared(c).Compression.Renew() }
