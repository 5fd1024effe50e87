// Package policy decides which entries of a bucket stay and which go.
//
// It sees only integers: frequencies, ring sizes, and whether a hash is remembered as a ghost. It
// has no bytes, locks or clock, so its tests need none.
//
// The default rule is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for
// cache eviction, SOSP 2023) on byte rings. A bucket has two rings, small and main. A new entry
// goes to small. When it reaches the tail of small, it moves to main if it has been read since, and
// is dropped otherwise. At the tail of main, an entry that has been read is written again at the
// head with one less read to its credit. A dropped entry is remembered as a ghost for a while; one
// that comes back in that time goes straight to main. The rule departs from the paper where that
// improved the hit ratios of real traces:
//
//   - One read is enough to move from small to main, as long as entries admitted that way are read
//     again; the paper requires two. A record of more than twice the mean size needs two reads, and
//     one of more than four times the mean size three.
//   - While main is being filled for the first time, everything at the tail of small moves to it:
//     there is room, and nothing to protect yet.
//   - What main drops is remembered as well as what small drops.
//   - The size of small is learned from the ghosts of both rings.
//   - Entries that are not read leave main in the end, even if no other entry is admitted.
//   - Ghosts are admitted to main only as long as that proves worthwhile, or when they return for
//     the second time: the paper's rule loses to FIFO on some loops. See [Learner] for this and for
//     the size of small.
package policy

// Kind is an eviction policy. FIFO uses one ring, main, counts no reads and learns nothing. Outside
// this package, internal/store and the root's options.go and snapshot*.go test for it. Reads only
// raise two bits of a slot, and only tails are decided on: a policy that orders by recency, such as
// LRU, cannot be had exactly.
type Kind uint8

const (
	S3FIFO Kind = iota // the default
	FIFO               // one ring, first in, first out
)

// HasOneRing reports whether all entries are in main, where no ghost decides anything. (Whether
// reads count is another property: Store.Touches.)
func (k Kind) HasOneRing() bool { return k == FIFO }

// Ring names a ring of a bucket. A slot of the index has two bits for it, so there can be no fifth.
type Ring uint8

const (
	Small Ring = iota
	Main

	// The rings of the cold part, if there is one, for entries that the policy has dropped: Queue
	// holds them unchanged, Cold compressed. The policy does not decide what happens to them there.
	// All other rings are less than Queue.
	Queue
	Cold

	Rings = iota // the number of rings
)

// MaxFreq is the value at which the count of reads saturates.
const MaxFreq = 3

// Work is the budget for the moves that one Set may make. When it is spent, records are dropped
// regardless of their frequency, unless main has never been filled.
type Work struct {
	Records  int
	Bytes    int
	Compacts bool // compaction: live records move to their ring's head, regardless of the policy
	Join     bool // and those of small to main's
}

// IsDone reports whether no work is left.
func (w *Work) IsDone() bool { return w.Records <= 0 || w.Bytes <= 0 }

// WorkFor returns the work that the Set of a record of n bytes may do, of up to most bytes. It
// bounds the time for which the lock is held, and is more than most Sets need.
func WorkFor(n, most int) Work {
	return Work{Records: 64, Bytes: min(max(64<<10, 16*min(n, most/16)), most)}
}

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

// Verdict is what happens to the record at a tail.
type Verdict uint8

const (
	Drop     Verdict = iota // it leaves the policy's rings; its slot stays behind as a ghost
	Promote                 // from small to the head of main
	Reinsert                // from the tail of its ring to the head
)

// State is the policy of one bucket.
type State struct {
	Kind         Kind
	Filled       bool  // main has been filled, so room for a new record comes from dropping others
	sinceMain    uint8 // entries dropped at small's tail since one was at main's
	sinceAdmit   uint8 // entries dropped at small's tail since one qualified for main
	doubted      uint8 // ghosts that were not trusted
	heldBack     uint8 // entries read once, which was not enough
	lastReported int32 // entries at the last Exchange
	mean         int   // bytes of a typical record
	lessons      Lessons
	evidence     Evidence
}

const (
	// One in this many of the ghosts, and of the entries read once, is admitted to main even if
	// that is not enough, to notice when it would be.
	ghostProbe = 16
	readProbe  = 16

	// When small has dropped this many entries and main none, the next one is admitted to main,
	// read or not, because entries that are not read must not stay there forever. If this were much
	// more frequent, a loop longer than the cache would lose its entries in main.
	ageing = 64

	// When small has dropped this many entries and none qualified for main, main needs no room.
	standing = 64
)

// New returns the policy of an empty bucket.
func New(k Kind) State {
	return State{Kind: k, Filled: k.HasOneRing(), lessons: naive, sinceAdmit: standing}
}

// Exchange passes the bucket's evidence to the learner and adopts the lessons of all buckets. The
// bucket now has the given number of entries, of mean bytes each.
func (s *State) Exchange(l *Learner, entries, mean int) {
	s.evidence.Entries = entries - int(s.lastReported)
	s.lastReported = int32(entries)
	l.Learn(&s.evidence)
	s.evidence = Evidence{}
	s.lessons = l.Lessons
	s.mean = mean
}

// GhostFound notes that n keys were found among the ghosts of a ring. ghosts is the number of
// ghosts of each ring at that time, and near the result of [IsNear].
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

// IsNear reports whether a ring, if it were larger, could still hold an entry that it dropped gone
// bytes ago. small and main are the sizes of the rings in bytes. In a long loop no ghost is near.
func IsNear(of Ring, gone, small, main uint64) bool {
	if of == Small {
		return float64(gone) <= mostSmall*float64(small+main)-float64(small)
	}
	return gone <= small+main
}

// Dropped notes that an entry was dropped at the tail of a ring.
func (s *State) Dropped(of Ring) {
	s.evidence.Drops[of]++
	if s.sinceMain++; of == Main {
		s.sinceMain = 0
	} else {
		s.sinceAdmit = min(s.sinceAdmit+1, standing)
	}
}

// Judge notes whether an entry on probation was read again before it reached main's tail.
func (s *State) Judge(read bool) {
	if read {
		s.evidence.Good++
	} else {
		s.evidence.Bad++
	}
}

// trusts reports whether a ghost may go straight to main.
func (s *State) trusts(g Ghost) bool {
	if s.lessons.Trust || g == DroppedTwice {
		return true
	}
	s.doubted++
	return s.doubted%ghostProbe == 0
}

// Limits returns how many of total units of memory small and main may hold, given that they hold
// hasSmall and hasMain. Small gets the learned share, and main the rest. Once main has been full,
// each may also use memory that the other does not, so that no record is dropped while memory is
// idle. However, as long as records are admitted to main, a small ring above its share leaves main
// room units to grow into, enough for a few records.
func (s *State) Limits(total, hasSmall, hasMain, room int) (small, main int) {
	if s.Kind.HasOneRing() {
		return 0, max(0, total-hasSmall)
	}
	share := max(1, int(float64(s.lessons.Small*float64(total))+0.5))
	main = max(0, total-max(share, hasSmall))
	if !s.Filled {
		return share, main
	}
	if s.sinceAdmit >= standing {
		room = 0
	}
	return max(share, total-hasMain-room), main
}

// Ghost tells whether the hash of a new record is remembered.
type Ghost uint8

const (
	NoGhost      Ghost = iota
	DroppedOnce        // or long ago
	DroppedTwice       // recently, and also before it was set the last time
)

// GhostOf returns the kind of a ghost whose ring has dropped gone bytes since, in a bucket with
// rings of size bytes. again tells that its entry had been a ghost before.
//
// A key that returns twice is worth a place in main even where ghosts are not trusted. A ghost is
// too old for that if the ring has since dropped as much as the bucket holds: an index with room
// for several times as many ghosts as entries remembers every key of a long loop, and if all of
// them went to main, main would be a FIFO.
func GhostOf(again bool, gone, size uint64) Ghost {
	if again && gone <= size {
		return DroppedTwice
	}
	return DroppedOnce
}

// Admit returns the ring that a new record goes to with S3FIFO. smallFits and mainFits report
// whether the rings have room for it without dropping a record.
func (s *State) Admit(g Ghost, smallFits, mainFits bool) Ring {
	switch {
	case g != NoGhost && s.trusts(g):
		s.sinceAdmit = 0
		return Main
	case smallFits || s.Filled:
		return Small
	case mainFits:
		// Small would only hand its oldest record on to main: this saves a copy.
		return Main
	default:
		s.Filled = true
		return Small
	}
}

// Entry returns the ring for new records without a ghost, once main has been filled.
func (s *State) Entry() Ring {
	if s.Kind.HasOneRing() {
		return Main
	}
	return Small
}

// Emptied notes that the bucket has been emptied.
func (s *State) Emptied() { s.Filled, s.sinceAdmit = s.Kind.HasOneRing(), standing }

// SmallTail decides about the record of n bytes at the tail of small, with the given frequency.
func (s *State) SmallTail(freq, n int, w *Work) Verdict {
	if !s.Filled || s.Kind.HasOneRing() { // nothing is dropped in small, even without work left
		w.Spend(n)
		s.sinceMain = 0
		return Promote
	}
	enough := freq >= s.reads(n)
	if enough && freq == 1 && s.lessons.Twice {
		s.heldBack++
		enough = s.heldBack%readProbe == 0
	}
	if enough {
		s.sinceAdmit = 0
	}
	if (enough || s.sinceMain >= ageing) && w.Spend(n) {
		s.sinceMain = 0
		return Promote
	}
	return Drop
}

// reads returns how often a record of n bytes must have been read to move from small to main: one
// twice as large as the others displaces two of them.
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

// MainTail decides about the record of n bytes at the tail of main, with the given frequency.
func (s *State) MainTail(freq, n int, w *Work) Verdict {
	if s.Kind == S3FIFO && freq > 0 && w.Spend(n) {
		return Reinsert
	}
	return Drop
}
