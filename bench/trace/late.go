package trace

import (
	"fmt"

	"github.com/ringcache/ringcache/bench/load"
)

// Late reads: keys that are set one after the other, and read once each, later:
// sessions, tokens, queues. The lag is how many other keys are set in between, as
// a share of what the cache holds. With hot keys, an eighth of what it holds is
// popular besides: two reads of these come with each Set.

const (
	latePercent = 10 // of the keys are in the cache that the lag is a share of
	lateWarm    = 3  // turns of the cache before reads count
	hotPart     = 8
)

var lags = []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// late lists the loads of late reads.
func late() []Source {
	var all []Source
	for _, hot := range []bool{false, true} {
		for _, lag := range lags {
			name := fmt.Sprintf("lag=%v", lag)
			if hot {
				name += "+hot"
			}
			all = append(all, Source{Name: name, Group: Late, Percent: latePercent,
				open: func(scale int) (*Trace, error) { return newLate(baseKeys*scale, lag, hot), nil }})
		}
	}
	return all
}

// newLate makes a load of n keys.
func newLate(n int, lag float64, hot bool) *Trace {
	held := n * latePercent / 100
	behind := uint64(max(1, lag*float64(held)))
	t := &Trace{Cycle: []Step{Write, Read}}
	var beside *load.Zipf
	popular := 0
	if hot {
		popular = held / hotPart
		beside = load.NewZipf(1, uint64(popular), 0.99)
		t.Cycle = []Step{Write, ReadThrough, Read, ReadThrough}
	}
	t.Warm = lateWarm * held * len(t.Cycle)
	i, next := 0, uint64(popular) // the popular ids come first
	made := record(func() uint64 {
		step := t.Cycle[i%len(t.Cycle)]
		i++
		switch step {
		case Write:
			next++
			return next - 1
		case Read:
			return max(uint64(popular), next-1-min(next-1, behind))
		default:
			return beside.Next()
		}
	}, (n-popular)*len(t.Cycle))
	t.Requests, t.Keys = made.Requests, made.Keys
	return t
}
