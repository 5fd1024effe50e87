package pack

import "math/rand/v2"

// Samples are values of one size class, of which a dictionary is made: a random choice of
// those that it has seen.
type Samples struct {
	values [][]byte
	seen   int
	bytes  int
}

const (
	// sampleBytes is what the samples of a dictionary have together.
	sampleBytes = 128 << 10

	// enough is how many values are seen before a dictionary is made of some.
	enough = 1000

	mostSamples = 1024
	longSample  = 8 << 10 // of a longer value, its beginning
)

// Add takes a copy of v, or not: each value has the same chance (Vitter: Random sampling
// with a reservoir, ACM TOMS 1985), but for the bound in bytes.
func (s *Samples) Add(v []byte) {
	s.seen++
	v = v[:min(len(v), longSample)]
	if s.bytes+len(v) <= sampleBytes && len(s.values) < mostSamples {
		s.values = append(s.values, append([]byte(nil), v...))
		s.bytes += len(v)
		return
	}
	i := rand.IntN(s.seen)
	if i >= len(s.values) {
		return
	}
	if grown := s.bytes + len(v) - len(s.values[i]); grown <= sampleBytes {
		s.values[i] = append(s.values[i][:0], v...)
		s.bytes = grown
	}
}

// Enough reports whether so many were seen that a dictionary can be made.
func (s *Samples) Enough() bool { return s.seen >= enough }

// Take returns the samples, and forgets them.
func (s *Samples) Take() [][]byte {
	values := s.values
	*s = Samples{}
	return values
}
