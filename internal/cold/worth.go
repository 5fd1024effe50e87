package cold

import "bytes"

// Which values are worth compressing, and how much memory that is worth.

const (
	// shortest is the length of the shortest value that is worth compressing. For a shorter value,
	// the prefix takes as many bytes as compression saves.
	shortest = 48

	// If the ratio is below leastRatio, only one in probe of the values is compressed.
	leastRatio = 1.1
	probe      = 16

	// A dictionary is made anew if its ratio falls below so much of its best one.
	worse = 0.9

	// Known is how many bytes make a ratio known.
	Known = 256 << 10
)

// wants reports whether a value is worth a try.
func (s *Compression) wants(v []byte) bool {
	if len(v) < shortest {
		return false
	}
	s.tried++
	known := s.built && s.Ratio.IsKnown()
	if known && s.Ratio.Value() < leastRatio && s.tried%probe != 0 {
		return false
	}
	if s.next < Dicts && (!s.built || known && s.Ratio.Value() < worse*s.Best) {
		s.Samples.Add(v)
	}
	return true
}

// count counts a value of from bytes that compression turns into to bytes.
func (s *Compression) count(from, to int) {
	if s.Ratio.Add(from, to); s.Ratio.IsKnown() {
		s.Best = max(s.Best, s.Ratio.Value())
	}
}

// Ratio is the running ratio of sizes before packing to those after. The zero value is ready for
// use.
type Ratio struct{ from, to float64 }

// recent is about the number of bytes that a Ratio remembers.
const recent = 4 << 20

// Add counts from bytes that now take to bytes.
func (r *Ratio) Add(from, to int) {
	r.from += float64(from)
	r.to += float64(to)
	if r.from > recent {
		r.from, r.to = r.from/2, r.to/2
	}
}

// IsKnown reports whether the ratio is based on enough bytes.
func (r *Ratio) IsKnown() bool { return r.from >= Known }

// Value returns the ratio, once something was added.
func (r *Ratio) Value() float64 { return r.from / r.to }

// The cold part gets FullShare of the memory if the ratio is fullFrom or more, and nothing if it is
// below noneBelow, since a longer queue alone is worth little.
const (
	FullShare = 0.5
	noneBelow = 1.25
	fullFrom  = 1.5
)

// shareFor returns the cold part's share of the memory for a ratio.
func shareFor(ratio float64) float64 {
	return FullShare * min(max((ratio-noneBelow)/(fullFrom-noneBelow), 0), 1)
}

// Samples are values from which a dictionary is made: the first ones.
type Samples struct {
	values [][]byte
	seen   int
	bytes  int
}

const (
	sampleBytes = 128 << 10 // of all samples of a dictionary
	longSample  = 8 << 10   // only so much of a longer value is a sample
	enough      = 1000      // values that must be added before a dictionary is made
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
