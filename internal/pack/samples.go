package pack

import "bytes"

// Samples are values of one size class from which a dictionary is made: the first ones.
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

	longSample = 8 << 10 // only so much of a longer value is a sample
)

// Add keeps a copy of v if there is room for it.
func (s *Samples) Add(v []byte) {
	s.seen++
	v = v[:min(len(v), longSample)]
	if s.bytes+len(v) <= sampleBytes {
		s.values = append(s.values, bytes.Clone(v))
		s.bytes += len(v)
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
