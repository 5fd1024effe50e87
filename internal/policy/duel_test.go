package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tournament tells a learner how many records came to both buckets of each pair, in several rounds.
func tournament(l *Learner, rounds int, records func(pair int) (trusting, doubting int)) {
	for range rounds {
		for pair := range duelPairs {
			trusting, doubting := records(pair)
			l.Learn(Seat(1+2*pair), &Evidence{Drops: [2]int{trusting, 0}})
			l.Learn(Seat(2+2*pair), &Evidence{Drops: [2]int{0, doubting - 1}, Entries: 1})
		}
	}
}

// A side wins if it saves records in most pairs, and loses again when it no longer does.
func TestLearner_Duel(t *testing.T) {
	l := &Learner{}
	l.Learn(0, &Evidence{Entries: 1_000_000})
	for _, c := range []struct {
		name    string
		records func(pair int) (trusting, doubting int)
		want    Side
	}{
		{"no difference", func(int) (int, int) { return 100, 100 }, Neither},
		{"trust saves 10 % everywhere", func(int) (int, int) { return 90, 100 }, Trusting},
		{"too little", func(int) (int, int) { return 98, 100 }, Neither},
		{"doubt saves 10 % everywhere", func(int) (int, int) { return 100, 90 }, Doubting},
		{"a hot key in one pair", func(pair int) (int, int) {
			if pair == 3 {
				return 100, 1000
			}
			return 100, 100
		}, Neither},
		{"trust saves more than it loses", func(pair int) (int, int) {
			if pair < 2 {
				return 110, 100
			}
			return 80, 100
		}, Trusting},
		{"the pairs contradict each other", func(pair int) (int, int) {
			if pair < duelPairs/2 {
				return 60, 100
			}
			return 100, 68
		}, Neither},
	} {
		tournament(l, 500, c.records)
		require.Equal(t, c.want, l.Won, "%s: %+v", c.name, l.duel)
		require.Less(t, l.duel.came*duelPart, float64(l.entries), "%s: counts are forgotten", c.name)
	}
}

// A bucket that reports nothing decides nothing, even in an empty cache.
func TestLearner_DuelOfAnEmptyCache(t *testing.T) {
	l := &Learner{}
	l.Learn(1, &Evidence{})
	require.Equal(t, Neither, l.Won)
}

// Nothing is decided before the pairs have got enough records.
func TestLearner_DuelWaits(t *testing.T) {
	l := &Learner{}
	l.Learn(0, &Evidence{Entries: 1_000_000})
	for n := 0; n < 1_000_000/duelPart-1000; n += 150 * duelPairs {
		tournament(l, 1, func(int) (int, int) { return 50, 100 })
		require.Equal(t, Neither, l.Won, "after %d records", n)
	}
	tournament(l, 2, func(int) (int, int) { return 50, 100 })
	require.Equal(t, Trusting, l.Won)
}

// What else a bucket that takes part has seen teaches the others nothing.
func TestLearner_TakesOnlyRecordsFromTheDuel(t *testing.T) {
	l := &Learner{}
	l.Learn(0, &Evidence{Entries: 100_000})
	before := l.Lessons
	for range 100 {
		for seat := range Seat(2) {
			l.Learn(1+seat, &Evidence{Hits: [2]int{100, 0}, Ghosts: [2]int64{100, 100},
				Drops: [2]int{30, 30}, Returned: 30, Bad: 30})
		}
	}
	require.Equal(t, before, l.Lessons)
}

// Each pair consists of neighbors. A cache with fewer buckets than the pairs need has no duel.
func TestSeatOf(t *testing.T) {
	for _, buckets := range []int{1, 2, 256, duelEach*duelPairs - 1} {
		for i := range buckets {
			require.Zero(t, SeatOf(i, buckets), "bucket %d of %d", i, buckets)
		}
	}
	for _, buckets := range []int{duelEach * duelPairs, 512, 100_000} {
		sides, pairs := map[Side]int{}, [duelPairs]int{}
		for i := range buckets {
			seat := SeatOf(i, buckets)
			if sides[seat.side()]++; seat == 0 {
				continue
			}
			pairs[seat.pair()]++
			if seat.side() == Trusting {
				require.Equal(t, seat+1, SeatOf(i+1, buckets))
				require.Equal(t, seat.pair(), SeatOf(i+1, buckets).pair())
			}
		}
		require.Equal(t, map[Side]int{
			Neither: buckets - 2*duelPairs, Trusting: duelPairs, Doubting: duelPairs,
		}, sides)
		for pair, n := range pairs {
			require.Equal(t, 2, n, "buckets of pair %d of %d", pair, buckets)
		}
	}
}

// A bucket on a seat does what that side does, and all others what the winner does, if there is
// one. Ghosts that are not trusted are still tried now and then.
func TestState_TakesSides(t *testing.T) {
	const all, probes = 10 * ghostProbe, 10
	for _, c := range []struct {
		seat        Seat
		won         Side
		trust       bool
		old, recent int // ghosts that go straight to main, of all
	}{
		{0, Neither, false, probes, probes},
		{0, Neither, true, all, all},
		{0, Trusting, false, probes, all},
		{0, Trusting, true, probes, all},
		{0, Doubting, true, probes, probes},
		{1, Doubting, false, probes, all},
		{1, Neither, true, probes, all},
		{2, Trusting, true, probes, probes},
	} {
		for ghost, want := range map[Ghost]int{OldGhost: c.old, RecentGhost: c.recent} {
			s := New(S3FIFO, c.seat)
			s.full, s.lessons.Won, s.lessons.Trust = true, c.won, c.trust
			n := 0
			for range all {
				if s.Admit(ghost, false, false) == Main {
					n++
				}
			}
			assert.Equal(t, want, n, "%+v: ghosts of kind %d", c, ghost)
		}
	}
}

// A ghost is recent while its ring has not dropped what the bucket holds.
func TestGhostOf(t *testing.T) {
	assert.Equal(t, RecentGhost, GhostOf(0, 0))
	assert.Equal(t, RecentGhost, GhostOf(1000, 1000))
	assert.Equal(t, OldGhost, GhostOf(1001, 1000))
}
