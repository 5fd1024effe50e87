package ringtest

import "github.com/ringcache/ringcache"

// Policy is what the eviction policy and the cold part of a cache have done: the counters that
// Stats does not show.
type Policy struct {
	EvictedSmall, EvictedMain, EvictedCold, EvictedDisplaced uint64
	Promotions, Reinsertions, GhostHits, MovedBytes          uint64
	Ghosts, ExpiredBytes, ColdBytes                          uint64

	UncompressedQueueFull, CompressErrors, DecompressErrors uint64
}

// PolicyOf returns the counters of a cache.
func PolicyOf(c *ringcache.Cache) (p Policy) {
	EachBucket(c, func(b Bucket) {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		p.EvictedSmall += b.EvictedSmall
		p.EvictedMain += b.EvictedMain
		p.EvictedCold += b.EvictedCold
		p.EvictedDisplaced += b.EvictedDisplaced
		p.Promotions += b.Promotions
		p.Reinsertions += b.Reinsertions
		p.GhostHits += b.GhostHits
		p.MovedBytes += b.MovedBytes
		p.ExpiredBytes += b.ExpiredBytes
		p.UncompressedQueueFull += b.QueueFull
		has := b.Sizes()
		p.Ghosts += uint64(has.Ghosts)
		p.ColdBytes += uint64(has.ColdBytes)
	})
	if z := Shared(c).Compression; z != nil {
		p.CompressErrors = z.Counts.Failed.Load()
		p.DecompressErrors = z.Counts.Wrong.Load()
	}
	return p
}
