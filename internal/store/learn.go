package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
)

// learn measures the mean size of records, passes the bucket's evidence to the learner, and adopts
// what all buckets have learned. It does not wait for the learner's lock.
func (b *Store) learn() {
	b.hint = hintUnknown // limits may have changed
	b.tellNeed()
	live, small, main := b.live(), &b.Rings[policy.Small], &b.Rings[policy.Main]
	mean := (small.EntryBytes + main.EntryBytes) / max(small.Entries+main.Entries, 1)
	b.mean = int32(min(mean, math.MaxInt32))
	b.shape(mean)
	// The pages that an index had for many short records are room for others, before any is evicted.
	// It keeps a sixteenth of the bucket: many ghosts for little room.
	n, few := b.fewPages()
	if few && b.Index.Pages()*b.Shared.Pool.PageSize() > b.held()/16 && b.free(b.limits()) <= 2 {
		b.keepPages(n)
	}
	if b.policy.Kind.HasOneRing() {
		return
	}
	l := &b.Shared.learners[0]
	if b.Large {
		l = &b.Shared.learners[1]
	}
	if !l.mu.TryLock() {
		return // there is a next time
	}
	for i := range b.sought { // by lookups
		n := b.sought[i].Swap(0)
		b.policy.GhostFound(policy.Ring(i), int(n), b.ghosts(), true)
	}
	b.policy.Exchange(&l.Learner, live, mean)
	l.mu.Unlock()
}

// shape sets what depends on the mean size of records.
func (b *Store) shape(mean int) {
	for i := range b.Rings {
		b.Rings[i].Expect(mean)
	}
	b.shapeCold()
	b.growAt = int16(growAt(b.policy.Kind, mean, b.Evicted > 0))
}

// hint is what a bucket knows of the room for the next new record, which saves the computation of
// its limits. They are computed again once records of a chunk's size were set (Arrived).
type hint uint8

const (
	hintUnknown hint = iota
	hintFits         // its ring has a place for it, if it is no longer than what is left of a chunk
	hintFull         // its ring has all the chunks it may have, and only live records to give room
)

// setHint sets the hint for the next new records, after one of n bytes went to a ring that may hold
// limit chunks. chosen tells that the policy was free to choose another ring.
func (b *Store) setHint(to policy.Ring, n, limit int, chosen bool) {
	r := &b.Rings[to]
	usual := b.policy.Filled && to == b.policy.Entry()
	b.entry = to
	_, worth := b.deadest()
	switch {
	case worth || b.Large || b.hasTTL || b.pageDelta != 0 || r.Held() > limit:
	case r.Left() >= n:
		if usual || chosen {
			b.hint = hintFits
		}
	case usual && r.Held() == limit && !r.Fits(n, limit):
		b.hint = hintFull
	}
}

// ghosts returns how many ghosts there are of each ring: a live entry has one slot
// (I7), and all others are stale (I9).
func (b *Store) ghosts() [RingCount]int {
	used := b.Index.Used
	var n [RingCount]int
	for i := range n {
		n[i] = int(used[i]) - b.Rings[i].Entries
	}
	b.cold.addGhosts(&n, int(used[policy.Queue]+used[policy.Cold]))
	return n
}
