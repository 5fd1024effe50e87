package cold

import "bytes"

// Which values are worth compressing, and how much memory that is worth.

// Classes is the number of size classes of values. Each class has a dictionary and a ratio.
const Classes = 4

// class is a size class of values.
type class struct {
	Dict    uint8
	next    uint8 // number of the next dictionary
	built   bool  // Dict was built from samples, if any was needed
	tried   uint64
	Ratio   Ratio
	Best    float64 // best ratio of this dictionary
	Samples Samples
}

// classOf returns the size class of a value of n bytes.
func (s *Compression) classOf(n int) *class {
	switch {
	case n < 256:
		return &s.Classes[0]
	case n < 1<<10:
		return &s.Classes[1]
	case n < 4<<10:
		return &s.Classes[2]
	}
	return &s.Classes[3]
}

const (
	// shortest is the length of the shortest value that is worth compressing. For a shorter value,
	// the prefix takes as many bytes as compression saves.
	shortest = 48

	// If the ratio of a class is below leastRatio, only one in probe of its values is compressed.
	leastRatio = 1.1
	probe      = 16

	// A dictionary is made anew if its ratio falls below so much of its best one.
	worse = 0.9

	// ClassKnown is how many bytes of values make the ratio of a class known.
	ClassKnown = 256 << 10
)

// wants reports whether a value is worth a try.
func (cl *class) wants(v []byte) bool {
	if len(v) < shortest {
		return false
	}
	cl.tried++
	known := cl.built && cl.Ratio.IsKnown()
	if known && cl.Ratio.Value() < leastRatio && cl.tried%probe != 0 || IsIncompressible(v) {
		return false
	}
	if cl.next < Dicts && (!cl.built || known && cl.Ratio.Value() < worse*cl.Best) {
		cl.Samples.Add(v)
	}
	return true
}

// add counts a value of from bytes that compression turns into to bytes.
func (cl *class) add(from, to int) {
	if cl.Ratio.Add(from, to); cl.Ratio.IsKnown() {
		cl.Best = max(cl.Best, cl.Ratio.Value())
	}
}

const (
	examined   = 64 // bytes of a value that IsIncompressible examines
	opaqueFrom = 46 // if so many of these differ from each other, the value is opaque
)

// IsIncompressible reports whether a value seems to be random, encrypted or already compressed. It
// examines only a few bytes. Among 64 random bytes, 57 are different on average, and rarely fewer
// than 51; in text, 20 to 30.
func IsIncompressible(v []byte) bool {
	if len(v) < examined {
		return false
	}
	var seen [4]uint64
	step, n := len(v)/examined, 0
	for i := range examined {
		b := v[i*step]
		bit := uint64(1) << (b & 63)
		if seen[b>>6]&bit == 0 {
			seen[b>>6] |= bit
			n++
		}
	}
	return n >= opaqueFrom
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
func (r *Ratio) IsKnown() bool { return r.from >= ClassKnown }

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

// Samples are values of one size class from which a dictionary is made: the first ones.
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
