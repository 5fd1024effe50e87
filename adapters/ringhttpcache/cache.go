package ringhttpcache

import "github.com/ringcache/ringcache"

// Options are the settings of a [Cache]. The zero value of each field is its default.
type Options struct {
	// Prefix is prepended to every key, so that several transports, and other code, can share a
	// ringcache. No prefix may begin with another one: end each with a byte that occurs nowhere
	// else in it, as in "http:".
	Prefix string
}

// Cache is an httpcache.Cache in a [ringcache.Cache], which may drop any response at any time: the
// transport then requests it again. [New] returns a Cache. It is safe for concurrent use.
type Cache struct {
	cache  *ringcache.Cache
	prefix string
}

// keyRoom is the length up to which keys are on the stack.
const keyRoom = 256

// New returns a cache of responses in cache. The caller still owns cache, may share it with other
// code, and closes it. New panics if cache is nil.
func New(cache *ringcache.Cache, o Options) *Cache {
	if cache == nil {
		panic("ringhttpcache: make cache: cache is nil")
	}
	return &Cache{cache: cache, prefix: o.Prefix}
}

// Get returns the response stored under key, and whether there is one. The bytes are a copy that
// the caller owns.
func (c *Cache) Get(key string) (response []byte, ok bool) {
	var room [keyRoom]byte
	return c.cache.HasGet(nil, c.appendKey(room[:0], key))
}

// Set stores a copy of the response with the cache's TTL, replacing an older one. If the cache
// rejects it, for example above 1/16 of the cache, it is not stored, and the older one is removed.
// The interface has no way to return an error.
func (c *Cache) Set(key string, response []byte) {
	var room [keyRoom]byte
	_ = c.cache.Set(c.appendKey(room[:0], key), response) // on an error, the key is absent
}

// Delete removes the response stored under key, if there is one.
func (c *Cache) Delete(key string) {
	var room [keyRoom]byte
	c.cache.Del(c.appendKey(room[:0], key))
}

func (c *Cache) appendKey(dst []byte, key string) []byte {
	return append(append(dst, c.prefix...), key...)
}
