package churn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/store"
)

// Load is what is done to a store.
type Load struct {
	Name    string
	Note    string
	Metrics []string // those worth a table, in their order

	lives []float64        // shares of the bound that are live, unless others are asked for
	fixed bool             // no others make sense
	mb    int              // the one bound that the load is for; 0: any
	mean  func(mb int) int // the one size of values that it is for; nil: any
	ttl   time.Duration

	keys    func(Case) int // ids that are used
	largest func(Case) int // bytes of the largest value
	do      func(*run) error
	check   func(*run) error
}

var (
	churnLives = []float64{0.3, 0.5, 0.7, 0.85, 0.95}
	growLives  = []float64{0.15, 0.4, 0.7}

	costs = []string{NsWrite, NsRead, Moved, Dead, Evicted, Resident, Peak}
)

func with(first ...string) []string { return append(first, costs...) }

// Loads lists all loads.
var Loads = []Load{
	{
		Name: "churn", Metrics: with(Found), lives: churnLives,
		Note: "Keys chosen uniformly at random get a value of a new length, from half to one and " +
			"a half of the mean; one operation in ten is a delete.",
		keys: churnKeys, largest: drawnLargest, do: doChurn, check: checkAll,
	},
	{
		Name: "churn-same", Metrics: with(Found), lives: churnLives,
		Note: "`churn`, but each key keeps the length of its value.",
		keys: churnKeys, largest: drawnLargest, do: doChurnSame, check: checkAll,
	},
	{
		Name: "churn-zipf", Metrics: with(Hits, Found), lives: churnLives,
		Note: "`churn` with Zipf popularity, exponent 0.99, and three reads by Zipf for each " +
			"write. The hit ratio is that of reads of live keys in the second half. A miss is " +
			"not followed by a Set.",
		keys: churnKeys, largest: drawnLargest, do: doChurnZipf, check: checkAll,
	},
	{
		Name: "churn-large", Metrics: with(Found), lives: churnLives,
		Note: "`churn` with values of 1/2048 of the bound on average, so that all are large ones " +
			"to ringcache.",
		mean: func(mb int) int { return mb << 20 / 2048 },
		keys: churnKeys, largest: drawnLargest, do: doChurn, check: checkAll,
	},
	{
		Name: "grow", Metrics: with(Lost, Found), lives: growLives,
		Note: "Sessions chosen uniformly at random are read, and written back 30 bytes longer; " +
			"at one and a half of the mean they begin anew with half of it, as does one that was " +
			"lost. Requests of the second half count.",
		keys: Case.entries, largest: drawnLargest, do: doGrow, check: checkAll,
	},
	{
		Name: "grow-ttl", Metrics: with(Lost, Found), lives: growLives, ttl: time.Hour,
		Note: "`grow` with entries that live for an hour, so that none expires.",
		keys: Case.entries, largest: drawnLargest, do: doGrow, check: checkAll,
	},
	{
		Name: "append", Metrics: with(Found, Parts), lives: growLives,
		Note: "Values grow as in `grow`, by appends without a read: a call of Append in " +
			"ringcache, a Get and a Set in the others. An append to a lost entry begins a value " +
			"with a part missing.",
		keys: Case.entries, largest: drawnLargest, do: doAppend, check: checkParts,
	},
	{
		Name: "invalidate", Metrics: with(Found, Untouched), lives: []float64{0.8}, fixed: true,
		Note: "Two namespaces of 40 % of the bound each. The second one is invalidated and " +
			"filled again ten times; the first one, which is older, is neither read nor written. " +
			"Stores without namespaces delete all keys of the second one.",
		keys: Case.entries, largest: drawnLargest, do: doInvalidate, check: checkInvalidated,
	},
	{
		Name: "invalidate-turns", Metrics: with(Found, Least), lives: []float64{0.8}, fixed: true,
		Note: "Four namespaces of 20 % each, which are invalidated and filled again in turn, ten " +
			"times.",
		keys: Case.entries, largest: drawnLargest, do: doInvalidateTurns, check: checkTurns,
	},
	{
		Name: "delete-half", Metrics: with(FoundOld, FoundNew), lives: []float64{0.72}, fixed: true,
		Note: "80 % of the bound is filled, a random half of it deleted, and 32 % of the bound " +
			"inserted.",
		keys: halfKeys, largest: drawnLargest, do: doDeleteHalf, check: checkHalf,
	},
	{
		Name: "mixed", Metrics: with(LostKeys, Found), lives: []float64{mixedLive}, fixed: true,
		Note: "27 MB of values from 1 KB to 260 KB (the logarithm of the length is uniform) in a " +
			"bound of 1 GB, under the writes of `churn`. Nothing has to be evicted.",
		mb: mixedMB, mean: func(int) int { return mixedMean },
		keys: churnKeys, largest: func(Case) int { return mixedMost }, do: doMixed, check: checkAll,
	},
}

// Names returns the names of all loads.
func Names() []string {
	var names []string
	for _, l := range Loads {
		names = append(names, l.Name)
	}
	return names
}

func find(name string) (*Load, error) {
	i := slices.IndexFunc(Loads, func(l Load) bool { return l.Name == name })
	if i < 0 {
		known := strings.Join(Names(), ", ")
		return nil, fmt.Errorf("churn: find load %q: known are %s", name, known)
	}
	return &Loads[i], nil
}

// Find returns the loads of the given names in the order of Loads.
func Find(names []string) ([]Load, error) {
	for _, name := range names {
		if _, err := find(name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(Loads),
		func(l Load) bool { return !slices.Contains(names, l.Name) }), nil
}

// Fits reports whether the store can take part.
func (l *Load) Fits(info store.Info) bool {
	_, deletes := info.Kind.(store.Deleter)
	return deletes && info.Bounded && info.Name != store.Null && (l.ttl == 0 || info.Expires)
}

// Cases lists the sizes that the load is run at. No lives means its own.
func (l *Load) Cases(mbs, means []int, lives []float64) []Case {
	if l.mb > 0 {
		mbs = []int{l.mb}
	}
	if l.fixed || len(lives) == 0 {
		lives = l.lives
	}
	var cases []Case
	for _, mb := range mbs {
		own := means
		if l.mean != nil {
			own = []int{l.mean(mb)}
		}
		for _, mean := range own {
			for _, live := range lives {
				cases = append(cases, Case{Load: l.Name, MB: mb, Mean: mean, Live: live})
			}
		}
	}
	return cases
}

// What operations take, in seconds, on two virtual cores of 2026.
const (
	opSeconds   = 0.6e-6
	byteSeconds = 0.4e-9
)

// Seconds estimates how long a run takes.
func (s Spec) Seconds() float64 {
	bytes := (float64(s.Turns) + 2*s.Live) * float64(s.bound())
	ops := bytes / float64(KeyBytes+s.Mean)
	if s.Load == "churn-zipf" {
		ops *= 3
	}
	return 0.2 + ops*opSeconds + bytes*byteSeconds
}
