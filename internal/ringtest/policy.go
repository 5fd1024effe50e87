package ringtest

import (
	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/policy"
)

// Policy is what the eviction policy and the cold part of a cache have done: the counters that
// Stats does not show.
type Policy struct {
	Evicted, Promotions, Reinsertions, MovedBytes uint64
	Ghosts, ColdBytes                             uint64

	UncompressedQueueFull, CompressErrors, DecompressErrors uint64
}

// PolicyOf returns the counters of a cache.
func PolicyOf(c *ringcache.Cache) (p Policy) {
	EachBucket(c, func(b Bucket) {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		p.Evicted += b.Evicted
		p.Promotions += b.Promotions
		p.Reinsertions += b.Reinsertions
		p.MovedBytes += b.MovedBytes
		p.UncompressedQueueFull += b.QueueFull
		for _, slots := range b.Index.Used {
			p.Ghosts += uint64(slots)
		}
		p.Ghosts -= uint64(b.Sizes().Entries) // a live record has one slot (I7), all others are stale
		p.ColdBytes += uint64(b.Ring(policy.Queue).EntryBytes + b.Ring(policy.Cold).EntryBytes)
	})
	if z := Shared(c).Compression; z != nil {
		p.CompressErrors = z.Counts.Failed.Load()
		p.DecompressErrors = z.Counts.Wrong.Load()
	}
	return p
}
