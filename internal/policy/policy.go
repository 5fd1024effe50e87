// Package policy decides which entries of a bucket stay and which go.
//
// It sees integers alone: frequencies, ring sizes, whether a hash is
// remembered as a ghost. It knows no bytes, no locks and no clock, so the same
// decisions run in the cache, in its tests, and in a simulator that replays a
// trace in seconds.
//
// The default rule is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are
// all you need for cache eviction, SOSP 2023) on byte rings. A bucket has two
// rings, small and main. A new entry goes to small. When it comes to the tail
// of small, it moves on to main if it has been read since, and is dropped
// otherwise. At the tail of main, an entry that has been read is written again
// at the head with one less read to its credit. A dropped entry is remembered
// as a ghost for a while; one that comes back in that time goes straight to
// main. It departs from the paper where that served real traces better:
//
//   - One read is enough to leave small for main; the paper asks for two.
//   - While main is being filled for the first time, whatever falls out of
//     small flows into it: there is room, and nothing to protect yet.
//   - What main drops is remembered as well as what small drops.
//   - Ghosts are let into main only as long as they prove to be worth it (see
//     [State.Judge]): the paper's rule loses to FIFO on some loops.
package policy

// Kind is a rule.
type Kind uint8

const (
	S3FIFO Kind = iota // the default
	FIFO               // one ring, first in, first out
)

// Ring names a ring of a bucket.
type Ring uint8

const (
	Small Ring = iota
	Main
)

// MaxFreq is what the count of reads saturates at.
const MaxFreq = 3

// Work bounds what the moves of one Set may cost. When it is spent, records
// are dropped whatever their frequency.
type Work struct {
	Records int
	Bytes   int
}

// SetWork is the work that one Set may do: a bound on how long the lock is held,
// and more than most Sets ask for.
var SetWork = Work{Records: 64, Bytes: 64 << 10}

// spend takes one record of n bytes from the budget and reports whether there
// was enough.
func (w *Work) spend(n int) bool {
	if w.Records <= 0 || w.Bytes < n {
		return false
	}
	w.Records--
	w.Bytes -= n
	return true
}

// Verdict is what becomes of the record at a tail.
type Verdict uint8

const (
	Drop     Verdict = iota // it goes; its slot stays behind as a ghost
	Promote                 // from small to the head of main
	Reinsert                // from the tail of main to its head
)

// State is the policy of one bucket. The zero value is S3FIFO at its start.
type State struct {
	Kind Kind
	full bool // main has been filled

	// What became of ghosts that went straight to main: read again before they
	// reached its tail, or not.
	good, bad uint16
	doubted   uint8 // ghosts since the score turned bad
}

// Ghosts are a gain where what comes back will come back again, and a loss on
// a loop that is longer than the cache: there each of them takes the place of
// an entry of main that would have been hit in time. So each bucket keeps
// score. An entry that came to main as a ghost is judged when it first reaches
// main's tail: good if it was read again, bad if not. While bad ones prevail by
// more than ghostWorth to one, only one ghost in ghostProbe is still let in, to
// notice when that changes.
const (
	ghostWorth  = 2
	ghostProbe  = 16
	ghostCredit = 8   // bad ones that a bucket starts with to its credit
	ghostScore  = 256 // both counts are halved when they reach this together
)

// Judge tells whether an entry that came to main as a ghost was read again
// before it reached the tail.
func (s *State) Judge(read bool) {
	if read {
		s.good++
	} else {
		s.bad++
	}
	if s.good+s.bad >= ghostScore {
		s.good /= 2
		s.bad /= 2
	}
}

// trusts reports whether the next ghost may go straight to main.
func (s *State) trusts() bool {
	if s.good*ghostWorth+ghostCredit >= s.bad {
		return true
	}
	s.doubted++
	return s.doubted%ghostProbe == 0
}

// smallPart: small holds 1/smallPart of a bucket's bytes. Between 1/5 and 1/20
// the hit ratios of real traces differ by less than half a point.
const smallPart = 10

// SmallLimit returns how many of limit units of memory small may hold.
func (s *State) SmallLimit(limit int) int {
	if s.Kind == FIFO {
		return 0
	}
	return max(1, (limit+smallPart/2)/smallPart)
}

// Admit returns the ring that a new record goes to. ghost tells that its hash
// is remembered; smallFits and mainFits, whether the rings have room for it
// without a record being dropped.
func (s *State) Admit(ghost, smallFits, mainFits bool) Ring {
	switch {
	case s.Kind == FIFO || ghost && s.trusts():
		return Main
	case smallFits || s.full:
		return Small
	case mainFits:
		// Small would only hand its oldest record on to main: this saves a copy.
		return Main
	default:
		s.full = true
		return Small
	}
}

// Freed tells that main has a quarter of its room free, other than at the
// start: the bucket has been given more memory.
func (s *State) Freed() { s.full = false }

// Full reports whether main has been filled.
func (s *State) Full() bool { return s.full }

// SmallTail returns what becomes of the record of n bytes at the tail of
// small, with the given frequency.
func (s *State) SmallTail(freq, n int, w *Work) Verdict {
	if (freq > 0 || !s.full) && w.spend(n) {
		return Promote
	}
	return Drop
}

// MainTail returns what becomes of the record of n bytes at the tail of main,
// with the given frequency.
func (s *State) MainTail(freq, n int, w *Work) Verdict {
	if s.Kind == S3FIFO && freq > 0 && w.spend(n) {
		return Reinsert
	}
	return Drop
}
