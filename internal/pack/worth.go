package pack

// Control, if set before a cache is made, gives its cold part the full share, but compresses
// nothing. Benchmarks compare with such a cache, to separate the effect of compression from that of
// a longer queue.
var Control bool

// Classes is the number of size classes of values. Each class has a dictionary and a ratio.
const Classes = 4

// Shortest is the length of the shortest value that is worth compressing. For a shorter value, the
// prefix takes as many bytes as compression saves.
const Shortest = 48

// ClassOf returns the size class of a value of n bytes.
func ClassOf(n int) int {
	switch {
	case n < 256:
		return 0
	case n < 1<<10:
		return 1
	case n < 4<<10:
		return 2
	default:
		return 3
	}
}

const (
	looks      = 64 // bytes of a value that IsIncompressible examines
	opaqueFrom = 46 // if so many of these differ from each other, the value is opaque
)

// IsIncompressible reports whether a value seems to be random, encrypted or already compressed. It
// examines only a few bytes. Among 64 random bytes, 57 are different on average, and rarely fewer
// than 51; in text, 20 to 30.
func IsIncompressible(v []byte) bool {
	if len(v) < looks {
		return false
	}
	var seen [4]uint64
	step, n := len(v)/looks, 0
	for i := range looks {
		b := v[i*step]
		bit := uint64(1) << (b & 63)
		if seen[b>>6]&bit == 0 {
			seen[b>>6] |= bit
			n++
		}
	}
	return n >= opaqueFrom
}

// Ratio is the running ratio of the size of records before packing to that after. The zero value is
// ready for use.
type Ratio struct{ from, to float64 }

// recent is about the number of bytes that a Ratio remembers.
const recent = 4 << 20

// Add counts a record of from bytes that now takes to bytes.
func (r *Ratio) Add(from, to int) {
	r.from += float64(from)
	r.to += float64(to)
	if r.from > recent {
		r.from, r.to = r.from/2, r.to/2
	}
}

// IsKnown reports whether the ratio is based on n bytes or more.
func (r *Ratio) IsKnown(n int) bool { return r.from >= float64(n) }

// Value returns the ratio; 1 if nothing is known.
func (r *Ratio) Value() float64 {
	if r.to == 0 {
		return 1
	}
	return r.from / r.to
}

// The cold part gets FullShare of the memory if the ratio is fullFrom or more, and nothing if it is
// below noneBelow, since a longer queue alone is worth little.
const (
	FullShare = 0.5
	noneBelow = 1.25
	fullFrom  = 1.5
)

// ShareFor returns the cold part's share of the memory for a ratio.
func ShareFor(ratio float64) float64 {
	return FullShare * min(max((ratio-noneBelow)/(fullFrom-noneBelow), 0), 1)
}

// If the ratio of a class is below leastRatio, only one in Probe of its values is compressed.
const (
	leastRatio = 1.1
	Probe      = 16
)

// WorthTrying reports whether values of a class with that ratio are worth compressing.
func WorthTrying(ratio float64) bool { return ratio >= leastRatio }

// IsWorse reports whether a ratio is so far below the best one of its dictionary that a new
// dictionary is worth making.
func IsWorse(ratio, best float64) bool { return ratio < 0.9*best }
