package policy

import "testing"

func TestState_Admit(t *testing.T) {
	for _, c := range []struct {
		name                       string
		kind                       Kind
		full, ghost, smallFit, fit bool
		want                       Ring
	}{
		{name: "new", smallFit: true, fit: true, want: Small},
		{name: "ghost", ghost: true, smallFit: true, fit: true, want: Main},
		{name: "small is full, main is not yet", fit: true, want: Main},
		{name: "both are full", want: Small},
		{name: "main has been full and has room now", full: true, fit: true, want: Small},
		{name: "FIFO", kind: FIFO, smallFit: true, want: Main},
	} {
		s := State{Kind: c.kind, full: c.full}
		if got := s.Admit(c.ghost, c.smallFit, c.fit); got != c.want {
			t.Errorf("%s: ring %d, want %d", c.name, got, c.want)
		}
	}
}

func TestState_FullOnceMainIsFilled(t *testing.T) {
	var s State
	for range 3 {
		s.Admit(false, false, true)
	}
	if s.Full() {
		t.Error("full while main has room")
	}
	s.Admit(false, false, false)
	if !s.Full() {
		t.Error("not full although nothing fits")
	}
	s.Freed()
	if s.Full() {
		t.Error("still full after it was freed")
	}
}

func TestState_Tails(t *testing.T) {
	for _, c := range []struct {
		name        string
		s           State
		freq        int
		small, main Verdict
	}{
		{"cold", State{full: true}, 0, Drop, Drop},
		{"read once", State{full: true}, 1, Promote, Reinsert},
		{"hot", State{full: true}, MaxFreq, Promote, Reinsert},
		{"cold, main is being filled", State{}, 0, Promote, Drop},
		{"FIFO", State{Kind: FIFO, full: true}, MaxFreq, Promote, Drop},
	} {
		w := SetWork
		if got := c.s.SmallTail(c.freq, 100, &w); got != c.small {
			t.Errorf("%s: verdict %d at small's tail, want %d", c.name, got, c.small)
		}
		w = SetWork
		if got := c.s.MainTail(c.freq, 100, &w); got != c.main {
			t.Errorf("%s: verdict %d at main's tail, want %d", c.name, got, c.main)
		}
	}
}

// The moves of a Set are bounded in number and in bytes.
func TestWork_Bounds(t *testing.T) {
	for _, n := range []int{1, 100, 5000, SetWork.Bytes, SetWork.Bytes + 1} {
		s, w := State{full: true}, SetWork
		moves := 0
		for s.MainTail(MaxFreq, n, &w) == Reinsert {
			moves++
		}
		if want := min(SetWork.Records, SetWork.Bytes/n); moves != want {
			t.Errorf("%d moves of %d bytes, want %d", moves, n, want)
		}
	}
}

func TestState_SmallLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 1, 1: 1, 10: 1, 14: 1, 15: 2, 31: 3, 100: 10} {
		if got := (&State{}).SmallLimit(limit); got != want {
			t.Errorf("small has %d of %d, want %d", got, limit, want)
		}
		if got := (&State{Kind: FIFO}).SmallLimit(limit); got != 0 {
			t.Errorf("small has %d of %d with FIFO, want 0", got, limit)
		}
	}
}

// Ghosts that are never read again lose their privilege, but for a few that
// probe; ghosts that are keep it, and get it back.
func TestState_JudgesGhosts(t *testing.T) {
	s := State{full: true}
	trusted := func() (n int) {
		for range 10 * ghostProbe {
			if s.Admit(true, false, false) == Main {
				n++
			}
		}
		return n
	}
	if n := trusted(); n != 10*ghostProbe {
		t.Errorf("%d of %d ghosts trusted at the start", n, 10*ghostProbe)
	}
	for range 1000 {
		s.Judge(false)
	}
	if n := trusted(); n != 10 {
		t.Errorf("%d of %d ghosts trusted after 1000 bad ones, want one in %d", n, 10*ghostProbe, ghostProbe)
	}
	for range 1000 {
		s.Judge(true)
	}
	if n := trusted(); n != 10*ghostProbe {
		t.Errorf("%d of %d ghosts trusted after 1000 good ones", n, 10*ghostProbe)
	}
}
