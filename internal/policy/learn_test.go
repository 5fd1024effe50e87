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
	l.Learn(&Evidence{Entries: 1000})
	for range times {
		l.Learn(&e)
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
	l.Learn(&Evidence{Entries: 1000})
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
			l.Learn(&c.e)
		}
		require.Equal(t, c.trust, l.Trust, "phase %d: ghosts are trusted", i)
		require.Equal(t, c.twice, l.Twice, "phase %d: two reads are needed", i)
	}
}

// A bucket tells what it has seen once, and takes over what all have learned.
func TestState_Exchange(t *testing.T) {
	l := &Learner{}
	a, b := New(S3FIFO), New(S3FIFO)
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
	s := New(S3FIFO)
	s.Filled = true
	n := 0
	for range 10 * ghostProbe {
		if s.Admit(DroppedOnce, false, false) == Main {
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
			l.Learn(&e)
			if !(l.Small >= leastSmall && l.Small <= mostSmall) {
				t.Fatalf("small has %v after %+v", l.Small, e)
			}
			if before > 0 && !(math.Abs(l.Small/before-1) <= stepSize+1e-9) {
				t.Fatalf("small went from %v to %v", before, l.Small)
			}
			if l.Trust && l.Twice {
				t.Fatalf("a ghost is trusted, and one read is not: %+v", *l)
			}
			sums := append(l.hits[:], l.ghosts[:]...)
			for _, v := range append(sums, l.good, l.bad, l.returned, l.leftMain) {
				if !(v >= 0 && v < 1e15) { // one that grew without end would learn nothing
					t.Fatalf("evidence of %v after %+v", v, e)
				}
			}
		}
	})
}
