package policy

import "testing"

func TestState_Admit(t *testing.T) {
	for _, c := range []struct {
		name                              string
		kind                              Kind
		full, ghost, smallFit, fit, trust bool
		want                              Ring
	}{
		{name: "new", smallFit: true, fit: true, want: Small},
		{name: "ghost", ghost: true, smallFit: true, fit: true, trust: true, want: Main},
		{name: "ghost that is not trusted", ghost: true, smallFit: true, fit: true, want: Small},
		{name: "small is full, main is not yet", fit: true, want: Main},
		{name: "both are full", want: Small},
		{name: "main has been full and has room now", full: true, fit: true, want: Small},
		{name: "FIFO", kind: FIFO, smallFit: true, want: Main},
	} {
		s := New(c.kind)
		s.full, s.lessons.Trust = c.full, c.trust
		if got := s.Admit(c.ghost, c.smallFit, c.fit); got != c.want {
			t.Errorf("%s: ring %d, want %d", c.name, got, c.want)
		}
	}
}

func TestState_FullOnceMainIsFilled(t *testing.T) {
	s := New(S3FIFO)
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
	s.Emptied()
	if s.Full() {
		t.Error("still full after it was emptied")
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
		w := SetWork(100)
		if got := c.s.SmallTail(c.freq, 100, &w); got != c.small {
			t.Errorf("%s: verdict %d at small's tail, want %d", c.name, got, c.small)
		}
		w = SetWork(100)
		if got := c.s.MainTail(c.freq, 100, &w); got != c.main {
			t.Errorf("%s: verdict %d at main's tail, want %d", c.name, got, c.main)
		}
	}
}

// A record that takes the place of several must be read as often to leave small.
func TestState_LargeRecordsProveThemselves(t *testing.T) {
	s := State{full: true, mean: 100}
	for n, reads := range map[int]int{1: 1, 200: 1, 201: 2, 400: 2, 401: 3, 10_000: 3} {
		for freq := range MaxFreq + 1 {
			w := SetWork(n)
			if got, want := s.SmallTail(freq, n, &w) == Promote, freq >= reads; got != want {
				t.Errorf("%d bytes read %d times: promoted %v, want %v", n, freq, got, want)
			}
		}
	}
}

// The moves of a Set are bounded in number and in bytes.
func TestWork_Bounds(t *testing.T) {
	for _, set := range []int{0, 100, 1 << 20} {
		for _, n := range []int{1, 100, 5000, SetWork(set).Bytes, SetWork(set).Bytes + 1} {
			s, w := State{full: true}, SetWork(set)
			moves := 0
			for s.MainTail(MaxFreq, n, &w) == Reinsert {
				moves++
			}
			if want := min(64, max(64<<10, 16*set)/n); moves != want {
				t.Errorf("set of %d bytes: %d moves of %d bytes, want %d", set, moves, n, want)
			}
		}
	}
}

func TestState_SmallLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 1, 1: 1, 10: 1, 14: 1, 15: 2, 31: 3, 100: 10} {
		s := New(S3FIFO)
		if got := s.SmallLimit(limit, 0, 1); got != want {
			t.Errorf("small has %d of %d, want %d", got, limit, want)
		}
		s = New(FIFO)
		if got := s.SmallLimit(limit, 0, 1); got != 0 {
			t.Errorf("small has %d of %d with FIFO, want 0", got, limit)
		}
	}
}

// What main leaves goes to small, but for room to grow into.
func TestState_SmallTakesWhatIsLeft(t *testing.T) {
	s := New(S3FIFO)
	s.full = true
	for main, want := range map[int]int{100: 10, 90: 10, 85: 10, 50: 45, 0: 95} {
		if got := s.SmallLimit(100, main, 5); got != want {
			t.Errorf("small has %d of 100 beside %d of main, want %d", got, main, want)
		}
	}
}
