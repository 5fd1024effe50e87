package policy

// All buckets of a cache learn together, because one bucket has only a few hundred entries, too few
// to tell a trend from chance. Each bucket gathers Evidence, passes it to the Learner from time to
// time, and adopts the Lessons. Callers must synchronize access to the Learner.
//
// Lessons come from the ghosts, which show what the dropped entries would have been worth, and
// from entries on probation. A Set can find a ghost, and so can a Get, which need not be followed
// by a Set.
//
// The size of small: a ghost that is found is a hit that a larger ring would have had. The ring
// whose ghosts are found at the higher rate, per ghost, is the one in which another byte gains more
// hits, so small grows or shrinks until the rates are equal. This is the idea of ARC (Megiddo,
// Modha: ARC: A self-tuning, low overhead replacement cache, FAST 2003), except that the number of
// ghosts is given, and that the counts are those of the whole cache.
//
// Admission to main: each new entry of main displaces another. Entries admitted on weak evidence, a
// single read in small or their ghost, are on probation. If they are read again less often than the
// entries dropped from main come back, admission takes two reads; if they are read again
// sufficiently more often, ghosts may go straight to main. In a loop longer than the cache, all
// entries are read again, and any move does harm.

// Lessons are what the buckets of a cache have learned.
type Lessons struct {
	Small float64 // small's share of the memory
	Trust bool    // a ghost goes straight to main
	Twice bool    // one read is not enough to leave small for main
}

// Evidence is what a bucket has observed since its last Exchange.
type Evidence struct {
	Hits     [2]int   // near ghosts of each ring that were found
	Ghosts   [2]int64 // sum of the numbers of ghosts at each of these hits
	Returned int      // ghosts of main that were found
	Drops    [2]int   // entries dropped at each tail
	Good     int      // entries on probation that were read before they reached main's tail
	Bad      int      // entries on probation that were not
	Entries  int      // change in the number of entries
}

// Learner draws the Lessons. The zero value is ready for use.
type Learner struct {
	Lessons
	entries int

	// For the size of small; all are halved with each step.
	hits, ghosts [2]float64
	drops        int // since the last step

	// For admission to main; all are halved when as many entries have been dropped as the cache
	// holds.
	good, bad          float64
	returned, leftMain float64
	dropped            int // since then
}

// naive are the initial Lessons.
var naive = Lessons{Small: 0.1}

const (
	leastSmall = 0.02
	mostSmall  = 0.85

	// A step changes small by no more than a tenth of itself. It is made when 1/stepPart of the
	// entries have been dropped and stepHits ghosts found. Steps are small because the counts lag
	// behind by the lifetime of a ghost.
	stepSize = 0.1
	stepPart = 32
	stepHits = 8

	// priorHits is the number of assumed hits of each ring, at equal rates, so that a few real hits
	// do not decide.
	priorHits = 8

	// A main ring that drops nothing has no ghosts to find. If its ghosts are less than this share
	// of all, its prior is reduced in proportion.
	leastGhosts = 0.01

	// Ghosts are trusted if entries on probation are read trustMargin times as often as the entries
	// that they displace come back. The margin is needed because the latter are noticed only while
	// their own ghosts last; it also pays for the cost of a move.
	trustMargin = 1.5
	priorTrust  = 4  // entries assumed to have been good
	priorReturn = 16 // entries assumed to have left main and come back
)

// Learn takes in the evidence of a bucket.
func (l *Learner) Learn(e *Evidence) {
	if l.Small == 0 {
		l.Lessons = naive
	}
	l.entries += e.Entries
	for i := range l.hits {
		l.hits[i] += float64(e.Hits[i])
		l.ghosts[i] += float64(e.Ghosts[i])
		l.drops += e.Drops[i]
		l.dropped += e.Drops[i]
	}
	if l.drops*stepPart >= l.entries && l.hits[Small]+l.hits[Main] >= stepHits {
		l.resize()
	}
	l.good += float64(e.Good)
	l.bad += float64(e.Bad)
	l.returned += float64(e.Returned)
	l.leftMain += float64(e.Drops[Main])
	l.judge()
}

// resize makes small a little larger or smaller.
func (l *Learner) resize() {
	all := l.ghosts[Small] + l.ghosts[Main]
	if all > 0 { // it is 0 if the ghosts that a Get found have gone since
		// The prior belief is that both kinds of ghosts are found equally often.
		prior := priorHits * all / (l.hits[Small] + l.hits[Main])
		small := (l.hits[Small] + priorHits) / (l.ghosts[Small] + prior)
		belief := priorHits * min(1, l.ghosts[Main]/(leastGhosts*all))
		main := (l.hits[Main] + belief) / (l.ghosts[Main] + prior)
		// The conversion keeps platforms that fuse products and sums to the same result.
		change := 1 + float64(stepSize*((small-main)/(small+main)))
		l.Small = min(max(l.Small*change, leastSmall), mostSmall)
	}
	for i := range l.hits {
		l.hits[i] /= 2
		l.ghosts[i] /= 2
	}
	l.drops = 0
}

// judge decides what admission to main takes.
func (l *Learner) judge() {
	read := (l.good + priorTrust) / (l.good + l.bad + priorTrust)
	returned := (l.returned + priorReturn) / (l.leftMain + priorReturn)
	l.Trust = read >= trustMargin*returned
	l.Twice = trustMargin*read < returned
	if l.dropped > l.entries {
		l.good, l.bad, l.returned, l.leftMain = l.good/2, l.bad/2, l.returned/2, l.leftMain/2
		l.dropped = 0
	}
}
