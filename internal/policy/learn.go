package policy

// What is learned is learned by all buckets of a cache together: a bucket sees
// a few hundred entries, too few to tell a trend from chance. Each gathers
// Evidence, hands it to the Learner from time to time, and takes over the
// Lessons. Who calls guards the Learner.
//
// All lessons come from the ghosts, which say what the entries that were dropped
// would have been worth. A Set finds them, or a Get, after which no Set may come.
//
// How large small should be: a ghost that is found is a hit that a larger ring
// would have had. The ring whose ghosts are found more often, each for itself, is
// the one where one more byte brings more hits; so small grows or shrinks until
// they are equal. It is the idea of ARC (Megiddo, Modha: ARC: A self-tuning, low
// overhead replacement cache, FAST 2003), with the number of ghosts taken as it is
// and the counts of a whole cache.
//
// What it takes to come to main: each newcomer takes the place of an entry there.
// Those that come for one sign only, a read in small or their ghost, are on probation:
// are they read again more often than those that had to go come back? If less often,
// it takes two reads; if more often, ghosts may go straight to main. In a loop longer
// than the cache all are read again, and whatever moves does harm.

// Lessons are what the buckets of a cache have learned.
type Lessons struct {
	Small float64 // small's share of the memory
	Trust bool    // a ghost goes straight to main
	Twice bool    // one read is not enough to leave small for main
}

// Evidence is what a bucket has seen since it last told.
type Evidence struct {
	Hits     [2]int   // near ghosts of each ring that were found
	Ghosts   [2]int64 // how many ghosts there were each time, summed up
	Returned int      // ghosts of main that were found
	Drops    [2]int   // entries dropped at each tail
	Good     int      // entries on probation that were read before they reached main's tail
	Bad      int      // and that were not
	Entries  int      // by how many more there are
}

// Learner draws the Lessons. The zero value is ready for use.
type Learner struct {
	Lessons
	entries int

	// For the size of small; all are halved with each step.
	hits, ghosts [2]float64
	drops        int // since the last step

	// For what comes to main; all are halved when as many entries have been dropped
	// as there are.
	good, bad          float64
	returned, leftMain float64
	dropped            int // since then
}

// naive are the Lessons to begin with.
var naive = Lessons{Small: 0.1}

const (
	leastSmall = 0.02
	mostSmall  = 0.85

	// A step changes small by no more than a tenth of itself. There is one each
	// time that 1/stepPart of the entries have been dropped, and stepHits ghosts
	// were found: the figures lag behind by the time that ghosts live.
	stepSize = 0.1
	stepPart = 32
	stepHits = 8

	// priorHits is how many ghosts of each ring are taken to have been found as often
	// as the others, lest a few decide.
	priorHits = 8

	// A main that drops nothing has no ghosts that could be found: where they are
	// fewer than this share of all, it is worth that much less.
	leastGhosts = 0.01

	// Ghosts are trusted if entries on probation are read trustMargin times as often
	// as those that they displace come back. These are only found while their own
	// ghosts last, hence the margin; it is also what a move costs.
	trustMargin = 1.5
	priorTrust  = 4  // entries taken to have been good
	priorReturn = 16 // entries taken to have left main and come back
)

// Learn takes in the evidence of one bucket.
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
	if all > 0 { // they may be gone since a Get has found them
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

// judge decides what it takes to come to main.
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
