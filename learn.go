package ringcache

import (
	"math"
	"sync"

	"github.com/ringcache/ringcache/internal/policy"
)

// What buckets tell each other. Each does so once it has taken in a chunk of
// records, and not on every Set: a bucket waits for no other.

// learner is a policy.Learner and its lock, which is the last to be taken.
type learner struct {
	mu sync.Mutex
	policy.Learner
}

// learner returns the one for large buckets, or that for small ones. What is
// good for values that fill a bucket by tens need not be for small ones.
func (s *commons) learner(large bool) *learner {
	if large {
		return &s.learners[1]
	}
	return &s.learners[0]
}

// learnLocked looks at how large records are, tells what the bucket has seen,
// and takes over what all have learned.
func (b *bucket) learnLocked() {
	live := b.liveLocked()
	mean := b.liveBytesLocked() / max(live, 1)
	b.mean = int32(min(mean, math.MaxInt32))
	b.shapeLocked(mean)
	b.mu.long = b.large || mean >= longRecord
	if b.policy.Kind == policy.FIFO {
		return
	}
	l := b.shared.learner(b.large)
	if !l.mu.TryLock() {
		return // there is a next time
	}
	b.policy.Exchange(&l.Learner, live-int(b.told), mean)
	b.told = int32(live)
	l.mu.Unlock()
}

// shapeLocked sets what depends on the mean size of records.
func (b *bucket) shapeLocked(mean int) {
	for i := range b.rings {
		b.rings[i].expect(mean)
	}
	b.roomy = mean >= roomyRecord
}

// longRecord is the mean size from which lookups do not wait for each other: the
// copy of a value takes longer than a lane costs.
const longRecord = 4 << 10
