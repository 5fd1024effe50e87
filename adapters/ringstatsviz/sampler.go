package ringstatsviz

import (
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// sampler reads the statistics of a cache, once for all series of its plots. Statsviz asks for
// every series in turn, in one goroutine.
type sampler struct {
	source  *metrics.Source
	now     func() time.Time
	round   int // number of times that the statistics were read
	at      time.Time
	seconds float64 // between the last two rounds
	stats   ringcache.Stats
	before  ringcache.Stats // those of the round before
	ratio   float64
}

func newSampler(source *metrics.Source) *sampler {
	s := &sampler{source: source, now: time.Now}
	s.at = s.now()
	s.stats, _ = s.source.Read()
	s.ratio = s.stats.HitRatio()
	return s
}

// series returns a function that statsviz calls once in each round. The first series that is called
// a second time begins the next round.
func (s *sampler) series(value func() float64) func() float64 {
	asked := 0
	return func() float64 {
		if asked == s.round {
			s.next()
		}
		asked = s.round
		return value()
	}
}

// next begins a round.
func (s *sampler) next() {
	s.round++
	now := s.now()
	s.seconds, s.at = now.Sub(s.at).Seconds(), now
	s.before = s.stats
	if stats, ok := s.source.Read(); ok { // otherwise the cache is gone, and its last statistics stay
		s.stats = stats
	}
	if span := s.stats.Sub(s.before); span.GetCalls > 0 {
		s.ratio = span.HitRatio()
	}
}

// valueOf returns a function that returns a sample: of a counter, its growth per second during the
// last round.
func (s *sampler) valueOf(m metrics.Metric, sample metrics.Sample) func() float64 {
	return func() float64 {
		value := sample.Value(&s.stats)
		switch {
		case m.Kind != metrics.Counter:
			return value
		case s.seconds <= 0:
			return 0 // statsviz cannot send NaN or Inf
		}
		return (value - sample.Value(&s.before)) / s.seconds
	}
}
