package store

import (
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
)

// What the tests of this folder that need a whole cache see of a bucket.

const (
	LargeShare = largeShare
	ShrinkStep = shrinkStep
)

func (b *Store) Bytes() int               { return b.size() }
func (b *Store) Crowd(victim uint64)      { b.displace(victim) }
func (b *Store) FirstPages() int          { return b.firstPages() }
func (b *Store) Ghosts() [RingCount]int   { return b.ghosts() }
func (b *Store) GrowIndex(n int) error    { return b.growIndex(n) }
func (b *Store) IsCrowded() bool          { return b.isCrowded() }
func (b *Store) IsKnownFull() bool        { return b.hint == hintFull }
func (b *Store) IsKnownToFit() bool       { return b.hint == hintFits }
func (b *Store) IsNear(ghost uint64) bool { return b.isNear(ghost) }

// PassTail passes a tail, and moves at most so many records.
func (b *Store) PassTail(in policy.Ring, moves int) {
	b.passTail(in, &policy.Work{Records: moves, Bytes: 1 << 30})
}

func (b *Store) MaxPages() int             { return b.maxPages(b.quota()) }
func (b *Store) ShrinkIndex()              { b.keepPages(b.MaxPages()) }
func (b *Store) SoonestExpiry() uint32     { return b.expirer.soonest }
func (b *Store) Sought() uint32            { return b.sought[0].Load() + b.sought[1].Load() }
func (b *Store) StartIndex(size int) error { return b.startIndex(size) }
func (b *Store) WaitsForPages() bool       { return b.pageDelta > 0 }
func (b *Store) Windows() *index.Windows   { return &b.windows }

// SwapQuota sets the bytes that each small bucket may hold.
func (s *Shared) SwapQuota(n int64) (old int64) { return s.quota.Swap(n) }

// Distrust teaches the small buckets, for the next turns of the cache, that ghosts are not to be
// trusted.
func (s *Shared) Distrust() { s.learners[0].Learn(&policy.Evidence{Bad: 1 << 30}) }

// GrowsAsIfFull reports whether the index grows as in a bucket that has evicted records of 64 bytes
// and more.
func (b *Store) GrowsAsIfFull() bool {
	return int(b.growAt) == growAt(b.policy.Kind, fullRecord, true)
}

// BeginWalk begins a walk of the expirer.
func (b *Store) BeginWalk() { b.beginWalk() }
