package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// All interleavings of one reader and one writer, on a cache of one key whose record is
// two words. Each step is one load or store, which is seen by all at once.

// seqState is all that there is. An index page holds one slot: the number of the record
// and its frequency. Records are places of two words; each write changes them by halves.
type seqState struct {
	seq   int
	slot  int // 0: empty; else 1 + place, and freqStep for each read counted
	words [2][2]int
	spare int // what the freed place is used for next

	rpc, rseq, rslot, ra, rb int // the reader's own
	wpc, round               int // the writer's own
}

const freqStep = 4

// seqRules are the checks of the reader, and the order of the writer.
type seqRules struct{ odd, second, oddStore, pagesApart bool }

// stepReader makes the reader's next step. A read that is not conclusive ends: trying
// again is the same as beginning later.
func (s *seqState) stepReader(r seqRules) {
	switch s.rpc {
	case 0:
		if s.rseq = s.seq; s.rseq%2 == 1 && r.odd {
			s.rpc = -1
			return
		}
	case 1:
		if s.rslot = s.slot; s.rslot == 0 {
			s.rpc = 4 // a miss
			return
		}
	case 2:
		s.ra = s.words[s.rslot%freqStep-1][0]
	case 3:
		s.rb = s.words[s.rslot%freqStep-1][1]
	case 4: // the raise comes before the second look, as in lookup
		if s.rslot != 0 && s.slot == s.rslot {
			s.slot += freqStep
		} else if s.rslot != 0 && !r.pagesApart && s.words[0][0] == s.rslot {
			s.words[0][0] += freqStep // what was a page is a record now
		}
	case 5:
		if s.seq != s.rseq && r.second {
			s.rpc = -1
			return
		}
	}
	s.rpc++
}

// stepWriter makes the writer's next step. Round 0 overwrites the record in place; round 1
// puts a new record into the other place, and another key's into the old one.
func (s *seqState) stepWriter(r seqRules) {
	version := 10 * (s.round + 2)
	old := (s.slot - 1) % freqStep
	switch s.wpc {
	case 0, 4:
		if r.oddStore {
			s.seq++
		} else if s.wpc == 4 {
			s.seq += 2
		}
	case 1:
		s.words[s.at(old)][0] = version
	case 2:
		s.words[s.at(old)][1] = version
	case 3:
		if s.round == 1 {
			s.spare = old
			s.slot = 1 + s.at(old)
			s.words[old] = [2]int{1, 99} // reused: its bytes may look like a slot
		}
	}
	if s.wpc++; s.wpc > 4 {
		s.wpc, s.round = 0, s.round+1
	}
}

// at returns the place that this round writes to.
func (s *seqState) at(old int) int { return (old + s.round) % 2 }

// explore makes every interleaving from s on. It returns how many there are, how many of
// them end in a conclusive read, and the first fault.
func (s seqState) explore(r seqRules) (all, conclusive int, fault string) {
	if s.rpc < 0 || s.rpc > 5 {
		for s.round < 2 {
			s.stepWriter(r)
		}
		if s.words[s.spare] != [2]int{1, 99} {
			return 1, 0, "a record that a reader changed"
		}
		if s.rpc < 0 {
			return 1, 0, ""
		}
		return 1, 1, s.judge()
	}
	next := s
	next.stepReader(r)
	all, conclusive, fault = next.explore(r)
	if s.round < 2 && fault == "" {
		next = s
		next.stepWriter(r)
		n, c, f := next.explore(r)
		all, conclusive, fault = all+n, conclusive+c, f
	}
	return all, conclusive, fault
}

// judge returns what is wrong with a conclusive read.
func (s *seqState) judge() string {
	switch {
	case s.rslot == 0:
		return "a miss of a key that is there"
	case s.ra != s.rb:
		return "a torn read"
	case s.ra != 10 && s.ra != 20 && s.ra != 30:
		return "the record of another key"
	}
	return ""
}

func TestSequence_EveryInterleaving(t *testing.T) {
	begin := seqState{slot: 1, words: [2][2]int{{10, 10}, {7, 7}}}
	all := seqRules{odd: true, second: true, oddStore: true, pagesApart: true}
	n, conclusive, fault := begin.explore(all)
	require.Empty(t, fault)
	require.Greater(t, n, 500, "interleavings")
	require.GreaterOrEqual(t, conclusive, 3, "before, between and after the writes")
	for want, without := range map[string]func(r *seqRules){
		"the second look":    func(r *seqRules) { r.second = false },
		"the test for odd":   func(r *seqRules) { r.odd = false },
		"the odd store":      func(r *seqRules) { r.oddStore = false },
		"pages that stay so": func(r *seqRules) { r.pagesApart = false },
	} {
		r := all
		without(&r)
		_, _, fault := begin.explore(r)
		require.NotEmpty(t, fault, "without %s nothing is wrong", want)
	}
}
