package ringcache

import (
	"time"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/store"
)

// Is the cache too small? Two signs tell: how long entries stay before they are evicted
// (internal/store/lives.go), and how many misses are of keys that were evicted lately
// (Store.NoteGhostMiss).

// Sizing is how long entries stay in a cache before they are evicted: see [Cache.Sizing].
type Sizing struct {
	// SmallAge is the eviction age of new entries: how long one is there from its Set until
	// it comes to the tail of the small ring, where it is evicted unless it was read. It is 0
	// with PolicyFIFO.
	SmallAge time.Duration

	// MainAge is the time of a round in the main ring: an entry that is not read for so long
	// is evicted, any other goes round again. With PolicyFIFO it is the eviction age of all
	// entries.
	MainAge time.Duration

	// SmallAgeSets and MainAgeSets are the same ages, counted in the values that the whole
	// cache has stored meanwhile, by Sets, loads and snapshots. They do not depend on how busy
	// the cache is.
	SmallAgeSets uint64
	MainAgeSets  uint64
}

// Sizing returns how long entries stay before they are evicted. A cache is too small if that is
// less than the time after which they would be read; [Stats.Gain] estimates what a larger cache
// would find. Ages are means over the buckets that know theirs, weighted by entries, and 0 while
// none does: after New, Reset or the opening of a file, until entries set since then are evicted.
// They follow a change of the workload or of the bound within one such age, and are accurate to
// some percent in a cache of thousands of entries.
//
// Sizing takes every bucket's lock for a moment, one after another, and does not allocate.
func (c *Cache) Sizing() Sizing {
	var ages [store.RingCount]store.MeanLife
	c.each(func(b *bucket) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.AddLives(&ages)
	})
	var z Sizing
	z.SmallAge, z.SmallAgeSets = ages[policy.Small].Mean()
	z.MainAge, z.MainAgeSets = ages[policy.Main].Mean()
	return z
}
