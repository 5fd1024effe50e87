package hitratio

import (
	"math"

	"github.com/ringcache/ringcache/bench/store"
)

// Search finds the MaxBytes with which a store has what it should.
type Search struct {
	Store     store.Info
	Target    int64
	Memory    bool    // of resident memory, instead of bytes held
	Tolerance float64 // share of the target
	Guess     int     // to begin with
}

func (s *Search) of(o *Outcome) float64 {
	if s.Memory {
		return float64(o.Memory)
	}
	return float64(o.Held)
}

// mostReplays bounds a search. It converges in two or three, but for stores that
// move in steps or jumps.
const mostReplays = 6

// Run replays until the outcome is within the tolerance, and else returns the
// nearest one.
func (s *Search) Run(replay func(nominal int) (*Outcome, error)) (best *Outcome, err error) {
	tried := map[int]*Outcome{}
	var last *Outcome
	for nominal := s.round(float64(s.Guess)); len(tried) < mostReplays && tried[nominal] == nil; {
		o, err := replay(nominal)
		if err != nil {
			return nil, err
		}
		tried[nominal] = o
		if best == nil || s.Off(o) < s.Off(best) {
			best = o
		}
		if s.Off(o) <= s.Tolerance {
			break
		}
		nominal = s.round(s.next(last, o))
		last = o
	}
	return best, nil
}

// Off returns how far an outcome is from the target, as a share of it.
func (s *Search) Off(o *Outcome) float64 {
	return math.Abs(s.of(o)/float64(s.Target) - 1)
}

// next extrapolates: through zero first, then through the last two outcomes, as
// long as those lead to something similar.
func (s *Search) next(last, o *Outcome) float64 {
	n, v, target := float64(o.Nominal), s.of(o), float64(s.Target)
	if v <= 0 {
		return 2 * n
	}
	straight := n * min(max(target/v, 0.1), 10)
	if last == nil {
		return straight
	}
	slope := (v - s.of(last)) / (n - float64(last.Nominal))
	next := n + (target-v)/slope
	if slope <= 0 || next < straight/2 || next > straight*2 {
		return straight
	}
	return next
}

// round returns the nearest MaxBytes that the store keeps to.
func (s *Search) round(nominal float64) int {
	step := float64(max(1, s.Store.Step))
	nominal = max(step, math.Round(nominal/step)*step)
	return max(int(nominal), s.Store.Least)
}
