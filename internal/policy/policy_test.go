package policy

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestState_Admit(t *testing.T) {
	for _, c := range []struct {
		name                       string
		ghost                      Ghost
		full, smallFit, fit, trust bool
		want                       Ring
	}{
		{name: "new", smallFit: true, fit: true, want: Small},
		{name: "ghost", ghost: DroppedOnce, smallFit: true, fit: true, trust: true, want: Main},
		{name: "ghost that is not trusted", ghost: DroppedOnce, smallFit: true, fit: true, want: Small},
		{name: "ghost for the second time", ghost: DroppedTwice, smallFit: true, want: Main},
		{name: "small is full, main is not yet", fit: true, want: Main},
		{name: "both are full", want: Small},
		{name: "main has been full and has room now", full: true, fit: true, want: Small},
	} {
		s := New(S3FIFO)
		s.Filled, s.lessons.Trust = c.full, c.trust
		assert.Equal(t, c.want, s.Admit(c.ghost, c.smallFit, c.fit), c.name)
	}
}

// A past counts while the ring has not dropped what the bucket holds.
func TestGhostOf(t *testing.T) {
	assert.Equal(t, DroppedOnce, GhostOf(false, 0, 1000))
	assert.Equal(t, DroppedTwice, GhostOf(true, 0, 0))
	assert.Equal(t, DroppedTwice, GhostOf(true, 1000, 1000))
	assert.Equal(t, DroppedOnce, GhostOf(true, 1001, 1000))
}

func TestState_FullOnceMainIsFilled(t *testing.T) {
	s := New(S3FIFO)
	for range 3 {
		s.Admit(NoGhost, false, true)
	}
	require.False(t, s.Filled, "main has room")
	s.Admit(NoGhost, false, false)
	require.True(t, s.Filled, "nothing fits")
	s.Emptied()
	require.False(t, s.Filled, "it was emptied")
}

func TestState_Tails(t *testing.T) {
	for _, c := range []struct {
		name        string
		s           State
		freq        int
		small, main Verdict
	}{
		{"cold", State{Filled: true}, 0, Drop, Drop},
		{"read once", State{Filled: true}, 1, Promote, Reinsert},
		{"hot", State{Filled: true}, MaxFreq, Promote, Reinsert},
		{"cold, main is being filled", State{}, 0, Promote, Drop},
		{"FIFO", State{Kind: FIFO, Filled: true}, MaxFreq, Promote, Drop},
	} {
		w := WorkFor(100, math.MaxInt)
		assert.Equal(t, c.small, c.s.SmallTail(c.freq, 100, &w), "%s: at small's tail", c.name)
		w = WorkFor(100, math.MaxInt)
		assert.Equal(t, c.main, c.s.MainTail(c.freq, 100, &w), "%s: at main's tail", c.name)
	}
}

// Where one read has not been enough, two are, and one still is now and then. Nothing
// stays in main for ever: when it has dropped nothing for long, the next entry comes.
func TestState_WhatComesToMain(t *testing.T) {
	s := State{Filled: true, lessons: Lessons{Twice: true}}
	promoted := func(freq int) bool {
		w := WorkFor(100, math.MaxInt)
		return s.SmallTail(freq, 100, &w) == Promote
	}
	n := 0
	for range 10 * readProbe {
		if promoted(1) {
			n++
		}
		require.True(t, promoted(2), "read twice")
	}
	require.Equal(t, 10, n, "entries read once that came to main")
	s.Dropped(Main)
	for range ageing {
		require.False(t, promoted(0), "not read")
		s.Dropped(Small)
	}
	require.True(t, promoted(0), "not read, and nothing has come for long")
	require.False(t, promoted(0), "not read")
}

// Near is what a larger ring could hold, which for small is not all there is.
func TestIsNear(t *testing.T) {
	for _, c := range []struct {
		of                Ring
		gone, small, main uint64
		want              bool
	}{
		{Main, 1000, 100, 900, true},
		{Main, 1001, 100, 900, false},
		{Small, 740, 100, 900, true},
		{Small, 760, 100, 900, false},
		{Small, 1, 950, 50, false},
		{Small, 0, 0, 0, true},
	} {
		assert.Equal(t, c.want, IsNear(c.of, c.gone, c.small, c.main), "%+v", c)
	}
}

// A record that takes the place of several must be read as often to leave small.
func TestState_LargeRecordsProveThemselves(t *testing.T) {
	s := State{Filled: true, mean: 100}
	for n, reads := range map[int]int{1: 1, 200: 1, 201: 2, 400: 2, 401: 3, 10_000: 3} {
		for freq := range MaxFreq + 1 {
			w := WorkFor(n, math.MaxInt)
			promoted := s.SmallTail(freq, n, &w) == Promote
			assert.Equal(t, freq >= reads, promoted, "%d bytes read %d times", n, freq)
		}
	}
}

// The moves of a Set are bounded in number and in bytes.
func TestWork_Bounds(t *testing.T) {
	for _, set := range []int{0, 100, 1 << 20} {
		all := WorkFor(set, math.MaxInt).Bytes
		for _, n := range []int{1, 100, 5000, all, all + 1} {
			s, w := State{Filled: true}, WorkFor(set, math.MaxInt)
			moves := 0
			for s.MainTail(MaxFreq, n, &w) == Reinsert {
				moves++
			}
			want := min(64, max(64<<10, 16*set)/n)
			assert.Equal(t, want, moves, "moves of %d bytes for a set of %d", n, set)
		}
	}
}

func TestState_Limits(t *testing.T) {
	for total, want := range map[int]int{0: 1, 1: 1, 10: 1, 14: 1, 15: 2, 31: 3, 100: 10} {
		s := New(S3FIFO)
		small, main := s.Limits(total, 0, 0, 1)
		assert.Equal(t, want, small, "of %d", total)
		assert.Equal(t, max(0, total-want), main, "of %d", total)
		s = New(FIFO)
		small, main = s.Limits(total, 0, 0, 1)
		assert.Zero(t, small, "of %d with FIFO", total)
		assert.Equal(t, total, main, "of %d with FIFO", total)
	}
}

// Each ring may hold what the other does not; main has room to grow into while records come.
func TestState_NoMemoryIsIdle(t *testing.T) {
	s := New(S3FIFO)
	s.Filled = true
	for _, c := range []struct{ hasSmall, hasMain, standing, coming, main int }{
		{10, 90, 10, 10, 90},
		{0, 100, 10, 10, 90}, // small has its share
		{10, 50, 50, 45, 90}, // 40 are idle
		{50, 50, 50, 45, 50},
		{45, 50, 50, 45, 55}, // main may grow by 5
		{100, 0, 100, 95, 0},
		{12, 88, 12, 10, 88}, // but not beyond small's share
	} {
		s.sinceAdmit = standing
		small, main := s.Limits(100, c.hasSmall, c.hasMain, 5)
		assert.Equal(t, []int{c.standing, c.main}, []int{small, main}, "%+v", c)
		s.sinceAdmit = standing - 1
		small, main = s.Limits(100, c.hasSmall, c.hasMain, 5)
		assert.Equal(t, []int{c.coming, c.main}, []int{small, main}, "%+v", c)
	}
}

// The budget does not fall where an int of 32 bits does not hold sixteen times the record.
func TestWork_OfLongRecords(t *testing.T) {
	for _, n := range []int{1 << 26, 1 << 28, 1<<31 - 1} {
		require.Equal(t, 1<<30, WorkFor(n, 1<<30).Bytes)
	}
}
