// Package client opens caches the way that suites for caches of Go objects do: strings by strings,
// with a capacity in entries.
package client

import (
	"fmt"
	"time"
)

// Cache is a cache of strings. Only Close may not be called by several goroutines at once.
type Cache interface {
	Set(key, value string)

	// Get returns the value of key. The value may lie in *buf, whose memory the next Get with the
	// same buf reuses; each goroutine needs its own.
	Get(buf *[]byte, key string) (value string, ok bool)

	// Len returns the number of entries, after waiting for what the cache does on its own
	// goroutines where it can.
	Len() int

	Close()
}

// Options say how large a cache is.
type Options struct {
	Capacity  int // in entries
	KeySize   int // mean length of the keys; like ValueSize it counts only for ringcache,
	ValueSize int // which is bounded in bytes

	// Ample gives ringcache more memory than Capacity entries need. Otherwise its bound is the one at
	// which it holds that many.
	Ample bool

	TTL         time.Duration // 0: entries do not expire
	Synchronous bool          // otter's policy runs on the calling goroutine
}

// Names of caches. Ringcache is called with bytes as they are, without a conversion or an
// allocation; RingcacheTyped is a typed view with codec.String, which allocates the string of a
// hit.
const (
	Ringcache      = "ringcache"
	RingcacheTyped = "ringcache-typed"
	Otter          = "otter"
	Theine         = "theine"
	Ristretto      = "ristretto"
	GolangLRU      = "golang-lru"
)

// Names lists all caches in the order of the tables.
var Names = []string{Ringcache, RingcacheTyped, Otter, Theine, Ristretto, GolangLRU}

var openers = map[string]func(Options) (Cache, error){
	Ringcache:      openRingcache,
	RingcacheTyped: openTyped,
	Otter:          openOtter,
	Theine:         openTheine,
	Ristretto:      openRistretto,
	GolangLRU:      openLRU,
}

// Open returns an empty cache.
func Open(name string, o Options) (Cache, error) {
	open, ok := openers[name]
	if !ok {
		return nil, fmt.Errorf("open %s: no such cache", name)
	}
	c, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return c, nil
}
