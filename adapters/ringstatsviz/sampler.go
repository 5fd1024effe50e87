package ringstatsviz

import (
	"time"
	"weak"

	"github.com/ringcache/ringcache"
)

// updater adds the statistics of a cache to s, and returns false when the cache is gone.
type updater func(s *ringcache.Stats) bool

// sizingOf returns a function that sets z to what tells whether the cache is too small,
// unless the cache is gone.
func sizingOf(cache *ringcache.Cache) func(z *ringcache.Sizing) {
	ref := weak.Make(cache)
	return func(z *ringcache.Sizing) {
		if cache := ref.Value(); cache != nil {
			*z = cache.Sizing()
		}
	}
}

func updaterOf(cache *ringcache.Cache) updater {
	ref := weak.Make(cache)
	return func(s *ringcache.Stats) bool {
		cache := ref.Value()
		if cache == nil {
			return false
		}
		cache.UpdateStats(s)
		return true
	}
}

// sampler reads the statistics of a cache, once for all series of its plots. Statsviz
// asks for every series in turn, in one goroutine.
type sampler struct {
	update  updater
	now     func() time.Time
	round   int // how often the statistics have been read
	at      time.Time
	seconds float64 // between the last two rounds
	stats   ringcache.Stats
	span    ringcache.Stats // what happened between the last two rounds
	ratio   float64

	size   func(z *ringcache.Sizing)
	sizing ringcache.Sizing
}

func newSampler(update updater, size func(z *ringcache.Sizing)) *sampler {
	s := &sampler{update: update, now: time.Now, size: size}
	s.at = s.now()
	s.update(&s.stats)
	s.size(&s.sizing)
	s.ratio = s.stats.HitRatio()
	return s
}

// series returns a function that statsviz may ask for a value once in each round. Who
// asks a second time begins another round.
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
	s.size(&s.sizing)
	if s.span.GetCalls > 0 {
		s.ratio = s.span.HitRatio()
	}
}

// rate returns how much a counter has grown in a second of the last round.
func (s *sampler) rate(counter func(s *ringcache.Stats) uint64) float64 {
	if s.seconds <= 0 {
		return 0 // statsviz cannot send what is no number
	}
	return float64(counter(&s.span)) / s.seconds
}
