package policy

import (
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
		{"fewer hits, and far fewer ghosts", [2]int{20, 60}, [2]int{100, 1000}, 1},
		{"as many hits as ghosts", [2]int{10, 100}, [2]int{100, 1000}, 0},
		{"no ghosts of main", [2]int{50, 0}, [2]int{1000, 0}, 0},
	} {
		e := Evidence{Hits: c.hits, Ghosts: c.ghosts, Drops: [2]int{60, 60}}
		one, many := lesson(e, 1), lesson(e, 200)
		got := 0
		switch {
		case one.Small > naive.Small*1.001:
			got = 1
		case one.Small < naive.Small/1.001:
			got = -1
		}
		assert.Equal(t, c.grows, got, "%s: small went from %v to %v", c.name, naive.Small, one.Small)
		assert.InEpsilon(t, naive.Small, one.Small, stepSize, "%s: one step", c.name)
		want := map[int]float64{-1: leastSmall, 0: naive.Small, 1: mostSmall}[c.grows]
		assert.InDelta(t, want, many.Small, 1e-9, "%s: after many steps", c.name)
	}
}

// Nothing changes before enough entries have been dropped and ghosts asked for.
func TestLearner_Waits(t *testing.T) {
	for name, e := range map[string]Evidence{
		"few drops": {Hits: [2]int{100, 0}, Ghosts: [2]int{100, 100}, Drops: [2]int{60, 0}},
		"few hits":  {Hits: [2]int{15, 0}, Ghosts: [2]int{100, 100}, Drops: [2]int{500, 0}},
	} {
		assert.Equal(t, naive.Small, lesson(e, 1).Small, name)
	}
}

// Ghosts are trusted if they are read more often than what they displace comes
// back, and this can change.
func TestLearner_Trust(t *testing.T) {
	l := &Learner{}
	l.Learn(&Evidence{Entries: 1000})
	require.False(t, l.Trust, "ghosts, before anything is known")
	good := Evidence{Good: 40, Bad: 10, Returned: 10, Drops: [2]int{0, 100}}
	loop := Evidence{Good: 50, Returned: 90, Drops: [2]int{0, 100}}
	bad := Evidence{Bad: 50, Returned: 10, Drops: [2]int{0, 100}}
	for i, c := range []struct {
		e    Evidence
		want bool
	}{{good, true}, {loop, false}, {good, true}, {bad, false}, {good, true}} {
		for range 50 {
			l.Learn(&c.e)
		}
		require.Equal(t, c.want, l.Trust, "phase %d", i)
	}
}

// A bucket tells what it has seen once, and takes over what all have learned.
func TestState_Exchange(t *testing.T) {
	l := &Learner{}
	a, b := New(S3FIFO), New(S3FIFO)
	for range 100 {
		a.GhostFound(Small, [2]int{10, 10}, true)
		a.GhostFound(Main, [2]int{10, 10}, false)
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
	s.full = true
	n := 0
	for range 10 * ghostProbe {
		if s.Admit(true, false, false) == Main {
			n++
		}
	}
	require.Equal(t, 10, n, "ghosts of %d let into main", 10*ghostProbe)
}
