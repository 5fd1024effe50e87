package ringhttpcache

import "github.com/ringcache/ringcache"

// Options are the settings of a [Cache]. The zero value is the default of each.
type Options struct {
	// Prefix begins every key, so that several transports, and other users, can share a
	// ringcache. It must not be the beginning of another's prefix: end it with a byte that
	// occurs nowhere else in one, as in "http:".
	Prefix string
}

// Cache is a httpcache.Cache in a [ringcache.Cache], which may drop any response at any time:
// the transport then asks the server again. It is made by [New], and safe for concurrent use.
type Cache struct {
	cache  *ringcache.Cache
	prefix string
}

// keyRoom is how long a key may be that is put together on the stack.
const keyRoom = 256

// New returns a cache of responses in cache, which stays the caller's: other users may share
// it, and who made it closes it. New panics if cache is nil.
func New(cache *ringcache.Cache, o Options) *Cache {
	if cache == nil {
		panic("ringhttpcache: make cache: cache is nil")
	}
	return &Cache{cache: cache, prefix: o.Prefix}
}

// Get returns the response of key, and whether it is there. The bytes are a copy, and the
// caller's.
func (c *Cache) Get(key string) (response []byte, ok bool) {
	var room [keyRoom]byte
	return c.cache.HasGet(nil, c.appendKey(room[:0], key))
}

// Set stores a copy of the response, for as long as the cache's TTL says, in place of an older
// one. One that the cache refuses (a key above 65,535 bytes, a response above a sixteenth of
// the cache, no memory, a closed cache) is not stored, and the older one is gone: the interface
// has no place for an error.
func (c *Cache) Set(key string, response []byte) {
	var room [keyRoom]byte
	_ = c.cache.Set(c.appendKey(room[:0], key), response) // on an error, the key is absent
}

// Delete removes the response of key, if it is there.
func (c *Cache) Delete(key string) {
	var room [keyRoom]byte
	c.cache.Del(c.appendKey(room[:0], key))
}

func (c *Cache) appendKey(dst []byte, key string) []byte {
	return append(append(dst, c.prefix...), key...)
}
