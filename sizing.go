package ringcache

import (
	"time"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
)

// Is the cache too small? Two signs tell: how long entries stay before they are evicted
// (bucket_evict.go: mark), and how many misses are of keys that were evicted lately
// (bucket_read.go: seek).

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
	var ages [ringCount]meanLife
	c.each(func(b *bucket) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.addLivesLocked(&ages)
	})
	var z Sizing
	z.SmallAge, z.SmallAgeSets = ages[policy.Small].mean()
	z.MainAge, z.MainAgeSets = ages[policy.Main].mean()
	return z
}

// meanLife is how long entries stay in a ring, on average over entries.
type meanLife struct{ ticks, sets, entries float64 }

// mean returns that; 0 if nothing is known.
func (m *meanLife) mean() (time.Duration, uint64) {
	if m.entries == 0 {
		return 0, 0
	}
	return time.Duration(m.ticks / m.entries * float64(clock.Tick)), uint64(m.sets / m.entries)
}

// addLivesLocked adds what the bucket knows. What was set where the mark is now has not left
// yet, and so stays at least as long.
func (b *bucket) addLivesLocked(to *[ringCount]meanLife) {
	b.watchMarksLocked()
	now := b.shared.spanNow()
	for i := range b.rings {
		if m := &b.marks[i]; m.life.sets > 0 {
			n, since := float64(b.rings[i].Entries), now.since(m.at)
			to[i].ticks += n * float64(max(m.life.ticks, since.ticks))
			to[i].sets += n * float64(max(m.life.sets, since.sets))
			to[i].entries += n
		}
	}
}

// addGainLocked adds the counts of the bucket from which Stats.Gain is estimated.
func (b *bucket) addGainLocked(s *Stats) {
	slots, live := 0, b.liveLocked()
	for _, used := range b.index.Used() {
		slots += used
	}
	s.EntriesCount += uint64(b.entriesLocked())
	s.Policy.Ghosts += uint64(slots - live) // a live entry has one slot (I7), all others are stale
	s.Policy.NearMisses += b.nearMisses.Load()
}
