package ringstatsviz

import (
	"time"

	"github.com/ringcache/ringcache"
)

// sampler reads the statistics of a cache, once for all series of its plots. Statsviz
// asks for every series in turn, in one goroutine.
type sampler struct {
	update  func(s *ringcache.Stats) bool
	now     func() time.Time
	round   int // number of times that the statistics were read
	at      time.Time
	seconds float64 // between the last two rounds
	stats   ringcache.Stats
	span    ringcache.Stats // the difference between the last two rounds
	ratio   float64
}

func newSampler(update func(s *ringcache.Stats) bool) *sampler {
	s := &sampler{update: update, now: time.Now}
	s.at = s.now()
	s.update(&s.stats)
	s.ratio = s.stats.HitRatio()
	return s
}

// series returns a function that statsviz calls once in each round. The first series that is called
// a second time begins the next round.
func (s *sampler) series(value func(s *sampler) float64) func() float64 {
	asked := 0
	return func() float64 {
		if asked == s.round {
			s.next()
		}
		asked = s.round
		return value(s)
	}
}

// next begins a round.
func (s *sampler) next() {
	s.round++
	now := s.now()
	s.seconds, s.at = now.Sub(s.at).Seconds(), now
	before := s.stats
	var stats ringcache.Stats
	if s.update(&stats) { // otherwise the cache is gone, and its last statistics stay
		s.stats = stats
	}
	s.span = s.stats.Sub(before)
	if s.span.GetCalls > 0 {
		s.ratio = s.span.HitRatio()
	}
}

// rate returns the growth of a counter per second during the last round.
func (s *sampler) rate(counter func(s *ringcache.Stats) uint64) float64 {
	if s.seconds <= 0 {
		return 0 // statsviz cannot send NaN or Inf
	}
	return float64(counter(&s.span)) / s.seconds
}
