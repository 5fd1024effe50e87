package policy

// What is learned is learned by all buckets of a cache together: a bucket sees
// a few hundred entries, too few to tell a trend from chance. Each gathers
// Evidence, hands it to the Learner from time to time, and takes over the
// Lessons. Who calls guards the Learner.
//
// Both lessons come from the ghosts, which say what the entries that were
// dropped would have been worth.
//
// How large small should be: a ghost that is asked for is a hit that a larger
// ring would have had. The ring whose ghosts are asked for more often, each for
// itself, is the one where one more byte brings more hits; so small grows or
// shrinks until they are equal. It is the idea of ARC (Megiddo, Modha: ARC: A
// self-tuning, low overhead replacement cache, FAST 2003), with the number of
// ghosts taken as it is and the counts of a whole cache.
//
// Whether ghosts may go straight to main: each takes the place of an entry at
// main's tail. It is worth it if those that were let in were read again more
// often than those that had to go. In a loop that is longer than the cache both
// are, always, and whatever moves only does harm.

// Lessons are what the buckets of a cache have learned.
type Lessons struct {
	Small float64 // small's share of the memory
	Trust bool    // a ghost goes straight to main
}

// Evidence is what a bucket has seen since it last told.
type Evidence struct {
	Hits     [2]int // new entries that were found among the near ghosts of each ring
	Ghosts   [2]int // how many ghosts there were each time, summed up
	Returned int    // new entries that were found among the ghosts of main
	Drops    [2]int // entries dropped at each tail
	Good     int    // entries that came to main as ghosts and were read before they reached its tail
	Bad      int    // and that were not
	Entries  int    // by how many more there are
}

// Learner draws the Lessons. The zero value is ready for use.
type Learner struct {
	Lessons
	entries int

	// For the size of small; all are halved with each step.
	hits, ghosts [2]float64
	drops        int // since the last step

	// For trust; all are halved when as many entries have left main as there are.
	good, bad          float64
	returned, leftMain float64
}

// naive are the Lessons to begin with.
var naive = Lessons{Small: 0.1}

const (
	leastSmall = 0.02
	mostSmall  = 0.9

	// A step changes small by no more than a tenth of itself. There is one each
	// time that 1/stepPart of the entries have been dropped, and stepHits ghosts
	// were asked for: the figures lag behind by the time that ghosts live.
	stepSize = 0.1
	stepPart = 16
	stepHits = 16

	// priorHits is how many ghosts of each ring are taken to have been asked for
	// as often as the others, lest a few decide.
	priorHits = 16

	// Ghosts are trusted if they are read again trustMargin times as often as
	// those that they displace come back. These are only found while their own
	// ghosts last, hence the margin; it is also what a move costs.
	trustMargin = 1.5
	priorTrust  = 4  // ghosts taken to have been good
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
	// The prior belief is that both kinds of ghosts are asked for equally often.
	prior := priorHits * (l.ghosts[Small] + l.ghosts[Main]) / (l.hits[Small] + l.hits[Main])
	small := (l.hits[Small] + priorHits) / (l.ghosts[Small] + prior)
	main := (l.hits[Main] + priorHits) / (l.ghosts[Main] + prior)
	// The conversion keeps platforms that fuse products and sums to the same result.
	change := 1 + float64(stepSize*((small-main)/(small+main)))
	l.Small = min(max(l.Small*change, leastSmall), mostSmall)
	for i := range l.hits {
		l.hits[i] /= 2
		l.ghosts[i] /= 2
	}
	l.drops = 0
}

// judge decides whether ghosts are trusted.
func (l *Learner) judge() {
	read := (l.good + priorTrust) / (l.good + l.bad + priorTrust)
	returned := (l.returned + priorReturn) / (l.leftMain + priorReturn)
	l.Trust = read >= trustMargin*returned
	if l.leftMain > float64(l.entries) {
		l.good, l.bad, l.returned, l.leftMain = l.good/2, l.bad/2, l.returned/2, l.leftMain/2
	}
}
