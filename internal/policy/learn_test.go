package policy

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lesson is what a learner has learned from so much evidence, told bit by bit.
func lesson(e Evidence, times int) *Learner {
	l := &Learner{}
	l.Learn(Follower, &Evidence{Entries: 1000})
	for range times {
		l.Learn(Follower, &e)
	}
	return l
}

// Small follows the ghosts: it grows where those that it dropped are asked for
// more often than those of main, each for itself, shrinks where less often, and
// stays where there is no difference.
func TestLearner_SizeOfSmall(t *testing.T) {
	for _, c := range []struct {
		name         string
		hits, ghosts [2]int
		grows        int
	}{
		{"more hits in small", [2]int{60, 20}, [2]int{1000, 1000}, 1},
		{"more hits in main", [2]int{20, 60}, [2]int{1000, 1000}, -1},
		{"the same", [2]int{40, 40}, [2]int{1000, 1000}, 0},
		{"no ghosts of small", [2]int{0, 50}, [2]int{0, 1000}, 0},
		{"fewer hits, and far fewer ghosts", [2]int{20, 60}, [2]int{100, 1000}, 1},
		{"as many hits as ghosts", [2]int{10, 100}, [2]int{100, 1000}, 0},
		{"no ghosts of main: it keeps what nobody reads", [2]int{50, 0}, [2]int{1000, 0}, 1},
		{"no ghosts left", [2]int{50, 0}, [2]int{0, 0}, 0},
	} {
		ghosts := [2]int64{int64(c.ghosts[0]), int64(c.ghosts[1])}
		e := Evidence{Hits: c.hits, Ghosts: ghosts, Drops: [2]int{60, 60}}
		one, many := lesson(e, 1), lesson(e, 200)
		got := 0
		switch {
		case one.Small > naive.Small*1.001:
			got = 1
		case one.Small < naive.Small/1.001:
			got = -1
		}
		assert.Equal(t, c.grows, got, "%s: small went from %v to %v", c.name, naive.Small, one.Small)
		assert.InEpsilon(t, naive.Small, one.Small, stepSize+1e-9, "%s: one step", c.name)
		want := map[int]float64{-1: leastSmall, 0: naive.Small, 1: mostSmall}[c.grows]
		assert.InDelta(t, want, many.Small, 1e-9, "%s: after many steps", c.name)
	}
}

// Nothing changes before enough entries have been dropped and ghosts asked for.
func TestLearner_Waits(t *testing.T) {
	for name, e := range map[string]Evidence{
		"few drops": {Hits: [2]int{100, 0}, Ghosts: [2]int64{100, 100}, Drops: [2]int{30, 0}},
		"few hits":  {Hits: [2]int{7, 0}, Ghosts: [2]int64{100, 100}, Drops: [2]int{500, 0}},
	} {
		assert.Equal(t, naive.Small, lesson(e, 1).Small, name)
	}
}

// Ghosts are trusted if what is on probation is read more often than what it displaces
// comes back, one read is not enough if it is read less often, and this can change.
func TestLearner_Trust(t *testing.T) {
	l := &Learner{}
	l.Learn(Follower, &Evidence{Entries: 1000})
	require.False(t, l.Trust, "ghosts, before anything is known")
	require.False(t, l.Twice, "before anything is known")
	good := Evidence{Good: 40, Bad: 10, Returned: 10, Drops: [2]int{0, 100}}
	loop := Evidence{Good: 50, Returned: 90, Drops: [2]int{0, 100}}
	bad := Evidence{Bad: 50, Returned: 10, Drops: [2]int{0, 100}}
	for i, c := range []struct {
		e            Evidence
		trust, twice bool
	}{
		{good, true, false}, {loop, false, false}, {good, true, false},
		{bad, false, true}, {good, true, false},
	} {
		for range 50 {
			l.Learn(Follower, &c.e)
		}
		require.Equal(t, c.trust, l.Trust, "phase %d: ghosts are trusted", i)
		require.Equal(t, c.twice, l.Twice, "phase %d: two reads are needed", i)
	}
}

// Ghosts are trusted, or not, where that has kept clearly more records from coming; whatever else
// was seen. Where it makes no difference, that decides.
func TestLearner_Duel(t *testing.T) {
	good := Evidence{Good: 40, Bad: 10, Returned: 10, Drops: [2]int{0, 100}}
	bad := Evidence{Bad: 50, Returned: 10, Drops: [2]int{0, 100}}
	for _, c := range []struct {
		name               string
		seen               Evidence
		trusting, doubting int // records that came
		trust              bool
	}{
		{"trust wins", bad, 90, 100, true},
		{"trust wins by too little", bad, 97, 100, false},
		{"no difference", bad, 100, 100, false},
		{"no difference, and trust was worth it", good, 100, 100, true},
		{"doubt wins by too little", good, 100, 97, true},
		{"doubt wins", good, 100, 90, false},
	} {
		l := &Learner{}
		l.Learn(Follower, &Evidence{Entries: 1_000_000})
		for range 200 {
			l.Learn(Follower, &c.seen)
			l.Learn(Trusting, &Evidence{Drops: [2]int{c.trusting, 0}})
			l.Learn(Doubting, &Evidence{Drops: [2]int{0, c.doubting - 1}, Entries: 1})
		}
		require.Equal(t, c.trust, l.Trust, "%s: %v", c.name, l.came)
		require.LessOrEqual(t, l.came[Trusting]+l.came[Doubting], duelMemory*float64(l.entries))
	}
}

// What a bucket that duels has seen teaches the others nothing else.
func TestLearner_TakesOnlyTheDuelFromThoseThatDuel(t *testing.T) {
	l := &Learner{}
	l.Learn(Follower, &Evidence{Entries: 100_000})
	before := l.Lessons
	for range 100 {
		for _, r := range []Role{Trusting, Doubting} {
			l.Learn(r, &Evidence{Hits: [2]int{100, 0}, Ghosts: [2]int64{100, 100},
				Drops: [2]int{30, 30}, Returned: 30, Bad: 30})
		}
	}
	require.Equal(t, before, l.Lessons)
}

// In each group of buckets two neighbors duel, if there is a whole one.
func TestRoleOf(t *testing.T) {
	for _, buckets := range []int{1, 2, duelEach / 2} {
		for i := range buckets {
			require.Equal(t, Follower, RoleOf(i, buckets), "bucket %d of %d", i, buckets)
		}
	}
	var n [roles]int
	for i := range 512 {
		role := RoleOf(i, 512)
		n[role]++
		if role == Trusting {
			require.Equal(t, Doubting, RoleOf(i+1, 512))
		}
	}
	require.Equal(t, [roles]int{512 - 2*512/duelEach, 512 / duelEach, 512 / duelEach}, n)
}

// A bucket that duels does as its role says, whatever was learned, but for probes.
func TestState_DuelsWhateverWasLearned(t *testing.T) {
	for role, want := range map[Role][2]int{
		Follower: {10, 10 * ghostProbe}, Trusting: {10 * ghostProbe, 10 * ghostProbe}, Doubting: {10, 10},
	} {
		for i, trust := range []bool{false, true} {
			s := New(S3FIFO, role)
			s.full, s.lessons.Trust = true, trust
			n := 0
			for range 10 * ghostProbe {
				if s.Admit(true, false, false) == Main {
					n++
				}
			}
			require.Equal(t, want[i], n, "role %d, trust learned: %t", role, trust)
		}
	}
}

// A bucket tells what it has seen once, and takes over what all have learned.
func TestState_Exchange(t *testing.T) {
	l := &Learner{}
	a, b := New(S3FIFO, Follower), New(S3FIFO, Follower)
	for range 100 {
		a.GhostFound(Small, 1, [2]int{10, 10}, true)
		a.GhostFound(Main, 1, [2]int{10, 10}, false)
		a.Dropped(Small)
	}
	a.Judge(true)
	a.Judge(false)
	a.Exchange(l, 500, 120)
	require.Greater(t, a.lessons.Small, naive.Small)
	require.Equal(t, l.Lessons, a.lessons)
	require.Zero(t, a.evidence, "it is told once")
	b.Exchange(l, 300, 80)
	require.Equal(t, a.lessons, b.lessons)
	require.EqualValues(t, 80, b.mean)
	require.EqualValues(t, 800, l.entries)
}

// Ghosts that are not trusted are still tried now and then.
func TestState_ProbesGhosts(t *testing.T) {
	s := New(S3FIFO, Follower)
	s.full = true
	n := 0
	for range 10 * ghostProbe {
		if s.Admit(true, false, false) == Main {
			n++
		}
	}
	require.Equal(t, 10, n, "ghosts of %d let into main", 10*ghostProbe)
}

// Whatever the evidence, the lessons stay within bounds and are numbers.
func FuzzLearner(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 200))
	f.Add(append(bytes.Repeat([]byte{0xff, 0xff}, 2), make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &Learner{}
		next := func() (n int) {
			if len(data) >= 4 {
				n, data = int(binary.LittleEndian.Uint32(data)&math.MaxInt32), data[4:]
			}
			return n
		}
		for range 64 {
			before := l.Small
			e := Evidence{
				Hits: [2]int{next(), next()}, Ghosts: [2]int64{int64(next()), int64(next())},
				Drops: [2]int{next(), next()}, Returned: next(), Good: next(), Bad: next(),
				Entries: next() - math.MaxInt32/2,
			}
			l.Learn(Role(next()%roles), &e)
			if !(l.Small >= leastSmall && l.Small <= mostSmall) {
				t.Fatalf("small has %v after %+v", l.Small, e)
			}
			if before > 0 && !(math.Abs(l.Small/before-1) <= stepSize+1e-9) {
				t.Fatalf("small went from %v to %v", before, l.Small)
			}
			sums := append(append(l.hits[:], l.ghosts[:]...), l.came[:]...)
			for _, v := range append(sums, l.good, l.bad, l.returned, l.leftMain) {
				if !(v >= 0 && v < 1e15) { // one that grew without end would learn nothing
					t.Fatalf("evidence of %v after %+v", v, e)
				}
			}
		}
	})
}
