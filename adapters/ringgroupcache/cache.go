package ringgroupcache

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"

	"github.com/ringcache/ringcache"
)

// Cache is a groupcache.Cache in a [ringcache.Cache]. [New] and the function that [Factory] returns
// create it. It is safe for concurrent use.
type Cache struct{ cache *ringcache.Cache }

var _ groupcache.Cache = (*Cache)(nil)

// A value is stored together with its expiry. The remaining time to live in the cache is not
// enough, because peers get the expiry itself, which would change if it were computed from the
// clock each time.
const (
	expires     = 1 // the last byte of a value with an expiry, which is in the 8 bytes before it
	staysLong   = 0 // the last byte of a value without
	expiryBytes = 9
)

// Lengths up to which keys, and values that are set, are on the stack.
const (
	keyRoom   = 128
	valueRoom = 1024
)

// Factory returns a function for groupcache.Options.CacheFactory. It creates a cache with the
// options o, except that groupcache sets the bound instead of o.MaxBytes: for a group of n bytes,
// 7/8 for values that the process loads or that are set, and 1/8 for those from other processes.
// The bound usually includes the index, while groupcache's own cache counts only keys and values.
// It is raised to 32 MB if it is smaller. For 0 bytes or less, which disables caching, it creates a
// cache that stores nothing.
//
// The function returns the errors of [ringcache.NewWithOptions]. With Options.File, the error is
// [ringcache.ErrInvalidOptions], because a file holds one cache, and each group has two.
func Factory(o ringcache.Options) func(maxBytes int64) (groupcache.Cache, error) {
	return func(maxBytes int64) (groupcache.Cache, error) {
		c, err := newCache(o, maxBytes)
		if err != nil {
			return nil, fmt.Errorf("ringgroupcache: make cache: %w", err)
		}
		return c, nil
	}
}

func newCache(o ringcache.Options, maxBytes int64) (groupcache.Cache, error) {
	if o.File != "" {
		return nil, fmt.Errorf("Options.File is %q, must be empty, as a group has two caches: %w",
			o.File, ringcache.ErrInvalidOptions)
	}
	if maxBytes <= 0 {
		return none{}, nil
	}
	if int64(int(maxBytes)) != maxBytes {
		return nil, fmt.Errorf("MaxBytes is %d, more than this machine has addresses for: %w",
			maxBytes, ringcache.ErrInvalidOptions)
	}
	o.MaxBytes = max(int(maxBytes), leastBytes)
	cache, err := ringcache.NewWithOptions(o)
	if err != nil {
		return nil, err
	}
	return New(cache), nil
}

// leastBytes is the least bound: smaller caches have fewer buckets and reject more values.
const leastBytes = 32 << 20

// New returns a Cache in cache, which no other code may use, because groupcache may use any key. A
// program that needs the ringcache.Cache itself, for example for metrics, creates it in its own
// CacheFactory. New panics if cache is nil.
func New(cache *ringcache.Cache) *Cache {
	if cache == nil {
		panic("ringgroupcache: make cache: cache is nil")
	}
	return &Cache{cache}
}

// Get returns the value of a key, and whether it was found. The view holds a copy of the value, so
// later changes of the entry do not affect it. It has the expiry of the value: see [Cache.Add].
func (c *Cache) Get(key string) (transport.ByteView, bool) {
	var room [keyRoom]byte
	b, ok := c.cache.HasGet(nil, append(room[:0], key...))
	if !ok || len(b) == 0 {
		return transport.ByteView{}, false
	}
	n := len(b) - 1
	if b[n] == staysLong {
		return transport.ByteViewFrom(b[:n:n]), true
	}
	if n -= 8; n < 0 {
		return transport.ByteView{}, false // not one of ours
	}
	nanos := int64(binary.LittleEndian.Uint64(b[n:]))
	return transport.ByteViewWithExpire(b[:n:n], time.Unix(0, nanos)), true
}

// lastYear is the last whole year whose times fit in an int64 of nanoseconds.
const lastYear = 2261

// Add stores a copy of a value until it expires, replacing an older one. An expiry after the year
// 2261 means no expiry. By a monotonic clock, a value expires on time or up to 100 ms early
// (earlier by Options.ExpireAfterAccess); it is not stored if less than 100 ms are left. A value
// above 1/16 of the bound is not stored either. A value that is not stored still removes the older
// one.
func (c *Cache) Add(key string, value transport.ByteView) {
	var keyBytes [keyRoom]byte
	var valueBytes [valueRoom]byte
	k, n := append(keyBytes[:0], key...), value.Len()
	b := valueBytes[:]
	if n+expiryBytes > len(b) {
		b = make([]byte, n+expiryBytes)
	}
	value.Copy(b)
	end := value.Expire()
	if end.IsZero() || end.Year() > lastYear {
		b[n] = staysLong
		_ = c.cache.Set(k, b[:n+1]) // what is not stored is loaded again
		return
	}
	binary.LittleEndian.PutUint64(b[n:], uint64(end.UnixNano()))
	b[n+8] = expires
	// To the cache, 0 means no expiry; a negative time removes the entry.
	ttl := time.Until(end)
	if ttl == 0 {
		ttl = -1
	}
	_ = c.cache.SetWithTTL(k, b[:n+expiryBytes], ttl)
}

// Remove removes the value of a key, if there is one.
func (c *Cache) Remove(key string) {
	var room [keyRoom]byte
	c.cache.Del(append(room[:0], key...))
}

// Bytes returns the size of all entries, including headers of at least 3 bytes and the expiries.
// Expired entries count until they are removed.
func (c *Cache) Bytes() int64 { return int64(c.cache.Stats().BytesSize) }

// Stats returns the statistics for groupcache. Evictions counts entries evicted to make room;
// groupcache's own cache also counts entries that expire, are removed or are replaced. Items and
// Bytes include expired entries that have not been removed yet. In a namespace, Rejected and
// Evictions are 0.
func (c *Cache) Stats() groupcache.CacheStats {
	s := c.cache.Stats()
	return groupcache.CacheStats{
		Rejected:  int64(s.Refused.TooLarge + s.Refused.NoMemory),
		Bytes:     int64(s.BytesSize),
		Items:     int64(s.EntriesCount),
		Gets:      int64(s.GetCalls),
		Hits:      int64(s.GetCalls - min(s.Misses, s.GetCalls)),
		Evictions: int64(s.EvictedEntries),
	}
}

// Close closes the cache, which frees its memory and stores nothing afterwards. groupcache does not
// call it. The memory of a cache that becomes unreachable with its group is freed when it is
// collected.
func (c *Cache) Close() { _ = c.cache.Close() }

// none is a groupcache.Cache that stores nothing.
type none struct{}

func (none) Get(string) (transport.ByteView, bool) { return transport.ByteView{}, false }
func (none) Add(string, transport.ByteView)        {}
func (none) Remove(string)                         {}
func (none) Bytes() int64                          { return 0 }
func (none) Stats() groupcache.CacheStats          { return groupcache.CacheStats{} }
func (none) Close()                                {}
