package pack

import "math/rand/v2"

// Samples are values of one size class from which a dictionary is made: a random choice of those
// that were added.
type Samples struct {
	values [][]byte
	seen   int
	bytes  int
}

const (
	// sampleBytes is the maximum number of bytes of all samples of a dictionary.
	sampleBytes = 128 << 10

	// enough is the number of values that must be added before a dictionary is made.
	enough = 1000

	mostSamples = 1024
	longSample  = 8 << 10 // only so much of a longer value is a sample
)

// Add may keep a copy of v. Each value has the same chance to be kept (Vitter: Random sampling with
// a reservoir, ACM TOMS 1985), apart from the effect of the bound in bytes.
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

// Enough reports whether enough values were added to make a dictionary.
func (s *Samples) Enough() bool { return s.seen >= enough }

// Take removes and returns the samples.
func (s *Samples) Take() [][]byte {
	values := s.values
	*s = Samples{}
	return values
}
