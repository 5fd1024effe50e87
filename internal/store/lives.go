package store

import (
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

// mark is a place in a ring that was its head once. When the tail has passed it, the bucket knows
// how long entries stay in the ring. That takes five words for each ring, and nothing for each
// entry.
type mark struct {
	pos  uint64 // with markSet, unless there is none
	at   span   // the time when it was the head
	life span   // of the mark before; sets is 0 if there was none
}

// markSet tells that there is a mark: no position has that bit.
const markSet = 1 << 63

// watchEach is the number of chunks of records that are stored between two looks at the marks. (It
// is above 1 because recovery learns once, before all buckets have counted their records.)
const watchEach = 4

// watchMarks examines whether the tails have passed their marks. The time that a tail took to move
// beyond its mark is subtracted, on the assumption that it moved at an even pace.
func (b *Store) watchMarks() {
	for i := range b.Rings {
		r, m := &b.Rings[i], &b.marks[i]
		beyond := r.Gone(m.pos)
		if m.pos&markSet != 0 && (beyond == 0 || beyond > r.Mask/2) {
			continue // the head, or live
		}
		now := b.Shared.spanNow()
		if m.pos&markSet != 0 {
			part := float64(r.Size) / float64(r.Size+beyond)
			life := now.since(m.at)
			life.ticks = uint32(part*float64(life.ticks) + 0.5)
			life.sets = max(1, uint64(part*float64(life.sets)+0.5))
			m.life = life
		}
		m.pos, m.at = r.Head()|markSet, now
	}
}

// MeanLife is how long entries stay in a ring, on average over entries.
type MeanLife struct{ ticks, sets, entries float64 }

// Mean returns the average as a time and in Sets; 0 if nothing is known.
func (m *MeanLife) Mean() (time.Duration, uint64) {
	if m.entries == 0 {
		return 0, 0
	}
	return time.Duration(m.ticks / m.entries * float64(clock.Tick)), uint64(m.sets / m.entries)
}

// Lives are the mean lives in small and main, over several buckets.
type Lives [RingCount]MeanLife

// Add adds what a bucket knows. Entries set since the present mark have not left yet, so entries
// stay at least as long as that mark is old.
func (l *Lives) Add(b *Store) {
	b.watchMarks()
	now := b.Shared.spanNow()
	for i := range b.Rings {
		if m := &b.marks[i]; m.life.sets > 0 {
			n, since := float64(b.Rings[i].Entries), now.since(m.at)
			l[i].ticks += n * float64(max(m.life.ticks, since.ticks))
			l[i].sets += n * float64(max(m.life.sets, since.sets))
			l[i].entries += n
		}
	}
}
