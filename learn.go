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
	b.policy.Exchange(&l.Learner, live, mean)
	l.mu.Unlock()
}

// shapeLocked sets what depends on the mean size of records.
func (b *bucket) shapeLocked(mean int) {
	for i := range b.rings {
		b.rings[i].expect(mean)
	}
	b.crowdedAt = whenCrowded(b.policy.Kind, mean, b.evictedSmall+b.evictedMain > 0)
}

// lengths finds out whether nearly all values have the same length. A glance takes
// that for granted until it has read the record's header (LIKELY in glance_amd64.h).
type lengths struct {
	usual uint16
	trust uint8
}

const (
	lengthTrusted  = 64  // values of one length in a row, more or less, until it is usual
	lengthMost     = 128 // of them that count
	lengthPerOther = 8   // of them that one of another length counts for
)

// note takes note of a value of n bytes, and returns the length that nearly all have had: of
// the last ones more than eight in nine. It returns 0 if there is none.
func (l *lengths) note(n int) uint16 {
	switch {
	case uint16(n) == l.usual:
		l.trust = min(l.trust+1, lengthMost)
	case l.trust > lengthPerOther:
		l.trust -= lengthPerOther
	default:
		l.usual, l.trust = uint16(n), 1
	}
	if l.trust < lengthTrusted {
		return 0
	}
	return l.usual
}

// noteLengthLocked takes note of a value of n bytes. What lookups guess by is in a cache line that they
// read, and is written only where it changes.
func (b *bucket) noteLengthLocked(n int) {
	if usual := b.lengths.note(n); usual != b.rings[0].guess {
		b.rings[0].guess, b.rings[1].guess = usual, usual
	}
}

// longRecord is the mean size from which lookups do not wait for each other: the
// copy of a value takes longer than a lane costs.
const longRecord = 4 << 10
