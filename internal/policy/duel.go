package policy

// Whether it pays to trust ghosts is not only inferred but also measured, by set dueling (Qureshi,
// Jaleel, Patt, Steely, Emer: Adaptive insertion policies for high performance caching, ISCA
// 2007). A few pairs of neighboring buckets, which have the same quota, are set aside: one bucket
// of a pair trusts every recent ghost, and the other trusts none. If one side does better, all
// other buckets do as it does; otherwise Lessons.Trust decides.
//
// Only recent ghosts are trusted that way. An index with room for several times as many ghosts as
// entries remembers every key of a long loop, and if all of them went to main, main would be a
// FIFO.
//
// The side with fewer new records does better: in a read-through cache each new record is a miss,
// so lookups need not count anything. The buckets of a pair always differ, because keys are dealt
// to them by chance and some are far hotter than others. So the sum of the differences counts only
// if chance would not make it as large. If the sign of each difference were random, the standard
// deviation of the sum would be the root of the sum of their squares.

// Side is what a bucket does with ghosts.
type Side uint8

const (
	Neither  Side = iota // it does as Lessons.Trust says
	Trusting             // recent ghosts go straight to main
	Doubting             // none does, except for probes
)

// Seat is the place of a bucket in the duel. The zero value is the seat of a bucket that does not
// take part.
type Seat uint8

const (
	// Of duelEach buckets, one trusts ghosts and one does not. Their losses are the price of the
	// duel, but with far fewer pairs hardly any difference would be larger than chance.
	duelEach  = 40
	duelPairs = 12

	// A side wins if it got fewer new records than the other, by at least duelMargin of their number
	// and duelSigmas standard deviations.
	duelMargin = 0.03
	duelSigmas = 2

	// The sides are compared whenever the counts reach 1/duelPart of the entries of the cache, about
	// twice what the pairs hold. Then duelMemory of the counts is kept.
	duelPart   = 10
	duelMemory = 0.75
)

// SeatOf returns the seat of the nth bucket.
func SeatOf(n, buckets int) Seat {
	pair, member := n/duelEach, n%duelEach
	if buckets < duelEach*duelPairs || pair >= duelPairs || member > 1 {
		return 0
	}
	return Seat(1 + 2*pair + member)
}

func (s Seat) pair() int { return int(s-1) / 2 }

func (s Seat) side() Side {
	switch {
	case s == 0:
		return Neither
	case s%2 == 1:
		return Trusting
	}
	return Doubting
}

// duel holds the counts.
type duel struct {
	saved [duelPairs]float64 // how many more records the doubting bucket of each pair got
	came  float64            // the records that all of them got
}

// count notes that a bucket got n new records. It reports whether the sides are to be compared, in
// a cache of that many entries.
func (d *duel) count(s Seat, n, entries int) bool {
	d.came += float64(n)
	if s.side() == Trusting {
		n = -n
	}
	d.saved[s.pair()] += float64(n)
	return d.came*duelPart >= float64(entries)
}

// winner compares the sides, and forgets a part of the counts.
func (d *duel) winner() Side {
	var sum, squares float64
	for i, n := range d.saved {
		sum += n
		squares += float64(n * n) // rounded, on platforms that fuse products and sums too
		d.saved[i] *= duelMemory
	}
	least := duelMargin / 2 * d.came
	d.came *= duelMemory
	switch {
	case sum*sum <= duelSigmas*duelSigmas*squares || max(sum, -sum) < least:
		return Neither
	case sum > 0:
		return Trusting
	}
	return Doubting
}
