package pack

import "math"

// Control, set before a cache is made, has a cold part with its full share that compresses
// nothing: what benchmarks compare with, to tell what compression brings from what a longer
// queue does.
var Control bool

// Classes is how many size classes of values there are. Each has a dictionary and a ratio.
const Classes = 4

// Shortest is the length of the shortest value that is worth a try: what stands before a
// compressed form takes up what a shorter one saves.
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
	looks      = 64 // bytes of a value that IsOpaque looks at
	opaqueFrom = 46 // different ones of these, from which on it is opaque
)

// IsOpaque takes a cheap look at a value and reports whether it seems to be random,
// encrypted or compressed already. Of 64 random bytes, 57 are different on average, and
// seldom fewer than 51; of a text, 20 to 30.
func IsOpaque(v []byte) bool {
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

// Ratio is the running ratio of what records take as they are to what they take packed.
// The zero value is ready for use.
type Ratio struct{ from, to float64 }

// recent is how many bytes a Ratio remembers, about.
const recent = 4 << 20

// Add counts a record of from bytes that takes to bytes now.
func (r *Ratio) Add(from, to int) {
	r.from += float64(from)
	r.to += float64(to)
	if r.from > recent {
		r.from, r.to = r.from/2, r.to/2
	}
}

// IsKnown reports whether the ratio is of n bytes or more.
func (r *Ratio) IsKnown(n int) bool { return r.from >= float64(n) }

// Value returns the ratio; 1 if nothing is known.
func (r *Ratio) Value() float64 {
	if r.to == 0 {
		return 1
	}
	return r.from / r.to
}

// The cold part has FullShare of the memory where records take 1/fullFrom of it there, and
// nothing where they take more than 1/noneBelow: a longer queue alone is worth little.
const (
	FullShare = 0.5
	noneBelow = 1.25
	fullFrom  = 1.5
)

// ShareFor returns the cold part's share of the memory for a ratio.
func ShareFor(ratio float64) float64 {
	return FullShare * min(max((ratio-noneBelow)/(fullFrom-noneBelow), 0), 1)
}

// A value whose class has a lower ratio is tried only once in Probe times.
const (
	leastRatio = 1.1
	Probe      = 16
)

// WorthTrying reports whether values of a class with that ratio are worth it.
func WorthTrying(ratio float64) bool { return ratio >= leastRatio }

// IsWorse reports whether a ratio has fallen so far below what a dictionary has brought
// when it was new that another one is worth making.
func IsWorse(ratio, best float64) bool { return ratio < 0.9*best }

// Comparison compares the inserts of buckets with a cold part to those of as many without. The
// zero value is ready for use.
type Comparison struct {
	seen        [2]uint64
	with, other float64 // lately
}

// recentInserts is how many a Comparison remembers, about.
const recentInserts = 1 << 16

// Note takes in how many inserts there have been since the beginning.
func (t *Comparison) Note(with, without uint64) {
	t.with += float64(with - t.seen[0])
	t.other += float64(without - t.seen[1])
	t.seen = [2]uint64{with, without}
	if t.with+t.other > recentInserts {
		t.with, t.other = t.with/2, t.other/2
	}
}

// leastHarm is the least difference that counts, as a part of all inserts: a smaller one comes
// of which keys a bucket has.
const leastHarm = 0.03

// IsHarmful reports whether buckets with a cold part insert more, and so find less, by more
// than chance explains: two standard deviations of the difference, and leastHarm.
func (t *Comparison) IsHarmful() bool {
	more := t.with - t.other
	return t.other > 0 && more > max(2*math.Sqrt(t.with+t.other), leastHarm*t.other)
}
