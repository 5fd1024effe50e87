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
//   - One read is enough to leave small for main, as long as what it brings there
//     is read again; the paper asks for two. A record of more than twice the mean
//     size needs two, of four times, three.
//   - While main is being filled for the first time, whatever falls out of
//     small flows into it: there is room, and nothing to protect yet.
//   - What main drops is remembered as well as what small drops.
//   - How large small is, is learned from the ghosts of both rings.
//   - What nobody reads leaves main in the end, though nothing else comes there.
//   - Ghosts are let into main only as long as they prove to be worth it: the
//     paper's rule loses to FIFO on some loops. See [Learner] for both.
package policy

// Kind is a rule. Where FIFO differs beyond this package, internal/store compares with it, and so
// does snapshot_load.go of the root.
type Kind uint8

const (
	S3FIFO Kind = iota // the default
	FIFO               // one ring, first in, first out
)

// Ring names a ring of a bucket. A slot of the index has two bits for it: there is no fifth.
type Ring uint8

const (
	Small Ring = iota
	Main

	// The rings of the cold part, if there is one: what the policy has dropped, as it was,
	// and compressed. It does not decide what becomes of it there.
	Queue
	Cold

	Rings = iota // how many there are
)

// IsCold reports whether a ring is of the cold part.
func (r Ring) IsCold() bool { return r >= Queue }

// MaxFreq is what the count of reads saturates at.
const MaxFreq = 3

// Work bounds what the moves of one Set may cost. When it is spent, records
// are dropped whatever their frequency, unless main has never been filled.
type Work struct {
	Records int
	Bytes   int
	Keep    bool // compaction: what is live moves to its ring's head, whatever the policy says
}

// IsDone reports whether none is left.
func (w *Work) IsDone() bool { return w.Records <= 0 || w.Bytes <= 0 }

// SetWork returns the work that the Set of a record of n bytes may do: a bound on
// how long the lock is held, and more than most Sets ask for.
func SetWork(n int) Work { return Work{Records: 64, Bytes: max(64<<10, 16*n)} }

// Spend takes one record of n bytes from the budget and reports whether there
// was enough.
func (w *Work) Spend(n int) bool {
	if w.Records <= 0 || w.Bytes < n {
		return false
	}
	w.Records--
	w.Bytes -= n
	return true
}

// Begin is Spend that allows a record of any length as long as some work is left.
func (w *Work) Begin(n int) bool {
	if w.Records <= 0 || w.Bytes <= 0 {
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

// State is the policy of one bucket.
type State struct {
	Kind     Kind
	full     bool  // main has been filled
	idle     uint8 // entries dropped at small's tail since one was at main's
	still    uint8 // entries dropped at small's tail since one was to come to main for its reads
	doubted  uint8 // ghosts that were not trusted
	heldBack uint8 // entries read once for which that was not enough
	told     int32 // entries that the learner knows of
	mean     int   // bytes of a typical record
	lessons  Lessons
	evidence Evidence
}

const (
	// One in so many of the ghosts, and of the entries read once, comes to main even
	// if that is not enough, to notice when it is.
	ghostProbe = 16
	readProbe  = 16

	// When small has dropped so many entries, and main none, the next one comes to
	// main, read or not: what nobody reads must not stay for ever. A loop that is
	// longer than the cache loses what it has in main if this is much quicker.
	ageing = 64

	// When small has dropped so many entries, and none was to come to main, main needs no room.
	standing = 64
)

// New returns a policy at its start.
func New(k Kind) State { return State{Kind: k, lessons: naive, still: standing} }

// Exchange tells what the bucket has seen and takes over what all have learned.
// The bucket has now so many entries, with mean bytes.
func (s *State) Exchange(l *Learner, entries, mean int) {
	s.evidence.Entries = entries - int(s.told)
	s.told = int32(entries)
	l.Learn(&s.evidence)
	s.evidence = Evidence{}
	s.lessons = l.Lessons
	s.mean = mean
}

// Follow takes over what others have learned, and tells nothing.
func (s *State) Follow(l *Learner, mean int) {
	s.evidence = Evidence{}
	if l.Small > 0 { // else nobody has learned anything
		s.lessons = l.Lessons
	}
	s.mean = mean
}

// GhostFound notes that n keys were found among the ghosts of a ring, when the rings
// had so many of them. near is what [IsNear] says.
func (s *State) GhostFound(of Ring, n int, ghosts [2]int, near bool) {
	if of == Main {
		s.evidence.Returned += n
	}
	if near {
		s.evidence.Hits[of] += n
		s.evidence.Ghosts[Small] += int64(n) * int64(ghosts[Small])
		s.evidence.Ghosts[Main] += int64(n) * int64(ghosts[Main])
	}
}

// IsNear reports whether a larger ring could still hold what it has dropped since
// so many bytes ago, when the rings have so many. In a long loop all ghosts are far.
func IsNear(of Ring, gone, small, main uint64) bool {
	if of == Small {
		return float64(gone) <= mostSmall*float64(small+main)-float64(small)
	}
	return gone <= small+main
}

// Dropped notes that an entry was dropped at the tail of a ring.
func (s *State) Dropped(of Ring) {
	s.evidence.Drops[of]++
	if s.idle++; of == Main {
		s.idle = 0
	}
	if of == Small {
		s.still = min(s.still+1, standing)
	}
}

// Judge tells whether an entry on probation was read again before it reached main's
// tail.
func (s *State) Judge(read bool) {
	if read {
		s.evidence.Good++
	} else {
		s.evidence.Bad++
	}
}

// trusts reports whether the next ghost may go straight to main.
func (s *State) trusts() bool {
	if s.lessons.Trust {
		return true
	}
	s.doubted++
	return s.doubted%ghostProbe == 0
}

// Limits returns how many of total units of memory small and main may hold, when they hold
// hasSmall and hasMain. Small has the share that was learned, and main the rest. Once main has
// been full, each may also hold what the other does not: no record is dropped while memory is
// idle. But as long as records come to main, a small above its share leaves it room units to
// grow into, the size of a few records.
func (s *State) Limits(total, hasSmall, hasMain, room int) (small, main int) {
	if s.Kind == FIFO {
		return 0, max(0, total-hasSmall)
	}
	share := max(1, int(float64(s.lessons.Small*float64(total))+0.5))
	main = max(0, total-max(share, hasSmall))
	if !s.full {
		return share, main
	}
	if s.still >= standing {
		room = 0
	}
	return max(share, total-hasMain-room), main
}

// Admit returns the ring that a new record goes to. ghost tells that its hash
// is remembered; smallFits and mainFits, whether the rings have room for it
// without a record being dropped.
func (s *State) Admit(ghost, smallFits, mainFits bool) Ring {
	switch {
	case s.Kind == FIFO:
		return Main
	case ghost && s.trusts():
		s.still = 0
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

// Entry returns the ring that new records go to that no ghost remembers, once main has been filled.
func (s *State) Entry() Ring {
	if s.Kind == FIFO {
		return Main
	}
	return Small
}

// Dropping reports whether a new record has no room but what the ring that it goes to gives up.
func (s *State) Dropping() bool { return s.full || s.Kind == FIFO }

// Emptied tells that the bucket has been emptied.
func (s *State) Emptied() { s.full, s.still = false, standing }

// Full reports whether main has been filled.
func (s *State) Full() bool { return s.full }

// SmallTail returns what becomes of the record of n bytes at the tail of
// small, with the given frequency.
func (s *State) SmallTail(freq, n int, w *Work) Verdict {
	if !s.full { // there is room in main: none is dropped, whatever it takes
		w.Spend(n)
		s.idle = 0
		return Promote
	}
	enough := freq >= s.reads(n)
	if enough && freq == 1 && s.lessons.Twice {
		s.heldBack++
		enough = s.heldBack%readProbe == 0
	}
	if enough {
		s.still = 0
	}
	if (enough || s.idle >= ageing) && w.Spend(n) {
		s.idle = 0
		return Promote
	}
	return Drop
}

// reads returns how often a record of n bytes must have been read to leave small
// for main: one twice as large as others takes the place of two.
func (s *State) reads(n int) int {
	switch {
	case n <= 2*s.mean || s.mean == 0:
		return 1
	case n <= 4*s.mean:
		return 2
	default:
		return MaxFreq
	}
}

// MainTail returns what becomes of the record of n bytes at the tail of main,
// with the given frequency.
func (s *State) MainTail(freq, n int, w *Work) Verdict {
	if s.Kind == S3FIFO && freq > 0 && w.Spend(n) {
		return Reinsert
	}
	return Drop
}
