package ringcache

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// bucketLock is the lock of a bucket: a mutex that lookups go past as long as
// nobody writes.
//
// Readers that take turns with a lock pass its cache line from core to core, which
// is most of what a lookup costs in a cache that fits into the processor's. So a
// lookup has a lane, a word in a cache line that other cores hardly touch.
// Where the bit of its lane is set in open, it makes the lane busy instead
// of taking the mutex. Writers close all lanes before they go on, and wait until
// those that had been open are empty. They open those again that have served so many
// lookups since the last write that closing them cost less than ways by the mutex would have.
// A lookup that holds the mutex opens its lane; where no lane was worth it, not before there
// have been some such lookups.
//
// This is the biased lock of Dice and Kogan, "BRAVO: Biased Locking for
// Reader-Writer Locks" (USENIX ATC 2019), with lanes in a table of each cache
// and a bit for each of them, so that a writer looks only at those in use, and
// without the reader-writer lock behind it: who finds its lane closed reads alone,
// for the moment that a lookup takes. What may take longer reads beside others:
// in its lane where values are long, as a viewer where it is up to the caller.
//
// On amd64 a glance goes past lanes that are closed, too: it reads beside whoever writes, and finds out afterwards that
// somebody has, by seq (a sequence lock). So lookups wait for nobody, and writers wait for no glance, but to take away memory that it may
// read (outwaitGlances): therefore it makes its lane busy all the same, which also counts it. Lanes that are open are for
// what is not assembly, and for batches.
//
// There are these ways to take it:
//
//	Lock    alone, to write
//	lookup  to read; beside lookups in lanes and viewers
//	hold    the same for more than a lookup
//	share   the same for as long as it takes; beside all that read
//
// Invariant (number as in docs/design.md):
//
//	I13  who has taken the lock to write finds no lane open, nobody in one but glances, and
//	     no viewer; seq is odd as long as that, and different afterwards
//
// A lane is opened only by who has the mutex, and has written all it wants to. A
// lookup makes its lane busy before it looks for its bit a second time, and a writer
// clears the bits before it looks at the lanes, so one of the two sees the other.
type bucketLock struct {
	mu      sync.Mutex
	seq     uint64 // odd while somebody writes, and another one afterwards; for glances alone
	sets    uint64 // in the cache line that a Set has to write
	seen    uint64 // lookups by the mutex, and misses, as a lane counts them
	viewers int32  // who shares the lock
	calm    uint16 // lookups by the mutex before the next that opens its lane
	wait    uint8  // log2 of what calm was set to; 0: not at all; reopens: rest.again are to be opened
	long    bool   // copying a value takes so long that nobody is to wait for it
	rest    *lockRest
	open    atomic.Uint64 // lanes that lookups may go through; in the next cache line
	lanes   *lane         // the first of this bucket
}

// lockRest is what of a lock is seldom needed. It is apart: a Cache that referred to itself could not have a
// finalizer.
type lockRest struct {
	known   *atomic.Uint64 // commons.known
	again   uint64         // lanes that a writer opens again
	gets    uint64         // lookups, but for those that lanes and seen know of
	misses  uint64         // of them
	writers int32          // who waits for viewers, and lets no more in
	turn    chan struct{}  // closed when viewers or writers have come to 0; nil: nobody waits
	_       [16]byte       // a cache line for each
}

// lane is where one lookup at a time goes past a bucket's mutex. The same lane of
// other buckets may be in its cache line, other lanes may not.
//
// Who is inside has the lane to itself, and so needs no locked instruction to
// leave it. Who finds it busy, which takes two goroutines that have the same lane
// and are in the same bucket, goes by the next lane, or by the mutex. A batch is inside
// for all its keys in the bucket at once, and in lanes of other buckets meanwhile; it
// waits for nothing there.
type lane struct {
	state atomic.Uint64 // laneBusy, laneOnce for each lookup since it was emptied, laneMiss for each miss
}

const (
	laneBits   = 6                                     // log2 of the number of lanes, for which open has bits
	laneBusy   = 1                                     // somebody is inside
	laneOnce   = 1 << 1                                // one lookup
	laneFull   = 1 << 31                               // no more lookups can be counted
	laneMiss   = 1 << 32                               // one that missed
	laneStride = (bucketCount + largeBuckets + 7) &^ 7 // a lane's words for all buckets lie side by side, in lines of their own
	calmLeast  = 4                                     // log2 of the lookups before lanes that were closed are opened again, at least
	calmMost   = 10                                    // and at most
	reopens    = 255                                   // bucketLock.wait of a writer that opens lanes again
	worthAlone = 2                                     // lookups in the only open lane that outweigh closing it
	worthMany  = 16                                    // the same in one of several: its cache line comes from another core, and goes back
	stackShift = 11                                    // log2 of the smallest stack
	laneMix    = 0x9e3779b97f4a7c15                    // 2^64 divided by the golden ratio
)

// newLanes returns the lanes of all buckets of a cache. Most of it is never
// touched.
func newLanes() *lane { return unsafe.SliceData(make([]lane, laneStride<<laneBits)) }

// laneHere returns the number of the calling goroutine's lane. Goroutines have
// no numbers, but stacks of their own.
func laneHere() uint {
	var here byte
	// Sound: the address is a number to be mixed, and not a pointer again.
	return laneOf(uintptr(unsafe.Pointer(&here)))
}

// laneOf returns the number of the lane for a stack at addr: stacks that lie side
// by side have lanes far from each other.
func laneOf(addr uintptr) uint {
	return uint(uint64(addr>>stackShift) * laneMix >> (64 - laneBits))
}

// take makes the caller the one who is inside, unless somebody is.
func (a *lane) take() bool {
	state := a.state.Load()
	return state&(laneBusy|laneFull) == 0 && a.state.CompareAndSwap(state, state+laneBusy)
}

// countsOf returns how many lookups, and of them misses, a lane has counted.
func countsOf(state uint64) (gets, misses uint64) {
	return state % laneMiss / laneOnce, state / laneMiss
}

// empty waits until nobody is inside, forgets the lookups, and returns their counts.
func (a *lane) empty() (gets, misses uint64) {
	for n := 0; ; n++ {
		state := a.state.Load()
		if state&laneBusy == 0 && a.state.CompareAndSwap(state, 0) {
			return countsOf(state)
		}
		if n > 64 { // it has lost its processor
			runtime.Gosched()
		}
	}
}

// at returns the lane that is n*laneStride + bucket lanes behind a, the first.
func (a *lane) at(n uint, bucket uint64) *lane {
	// Sound: n is less than 1<<laneBits and bucket less than laneStride, so this
	// is one of the lanes that newLanes has made.
	return (*lane)(unsafe.Add(unsafe.Pointer(a), (uintptr(n)*laneStride+uintptr(bucket))*unsafe.Sizeof(*a)))
}

// enter takes lock l for a lookup, which is counted when it leaves, shared with
// others, and reports whether it has: a is the lock's lane of that bit, and lanes
// may be closed, busy or full.
func (a *lane) enter(l *bucketLock, bit uint64) bool {
	if l.open.Load()&bit == 0 {
		return false
	}
	state := a.state.Load()
	if state&(laneBusy|laneFull) != 0 || !a.state.CompareAndSwap(state, state+laneBusy) {
		return false
	}
	if l.open.Load()&bit == 0 {
		a.state.Store(state)
		return false
	}
	return true
}

// leave ends a lookup.
func (a *lane) leave() { addOwned(&a.state, laneOnce-laneBusy) }

// leaveMissed ends a lookup that counts as a miss.
func (a *lane) leaveMissed() { addOwned(&a.state, laneMiss+laneOnce-laneBusy) }

// forget ends a lookup that does not count.
func (a *lane) forget() { addOwned(&a.state, ^uint64(laneBusy-1)) }

// enterMutex takes the lock for a lookup, which is counted, where lane n is closed,
// busy or full: by the next lane if n is busy, else with the mutex. It may open the
// lane. Where the lookup may be long it goes on in one, and the mutex is free for
// others.
func (l *bucketLock) enterMutex(n uint, long bool) *lane {
	open := l.open.Load()>>n&1 != 0
	full := l.lanes.at(n, 0).state.Load()&laneFull != 0
	if open && !full {
		n = (n + 1) % (1 << laneBits)
		if a := l.lanes.at(n, 0); a.enter(l, 1<<n) {
			return a
		}
	}
	l.mu.Lock()
	if full {
		l.collect(n)
	}
	if l.long || long {
		if a := l.openFree(n); a != nil {
			l.mu.Unlock()
			return a
		}
	}
	l.count()
	if l.calm > 1 {
		l.calm--
	} else {
		l.open.Or(1 << n)
	}
	return nil
}

// collect empties lane n, takes over its counts, and returns how many lookups there
// were.
func (l *bucketLock) collect(n uint) (gets uint64) {
	gets, misses := l.lanes.at(n, 0).empty()
	l.rest.gets += gets
	l.rest.misses += misses
	return gets
}

// count counts a lookup by the mutex.
func (l *bucketLock) count() {
	if l.seen += laneOnce; l.seen&laneFull != 0 {
		gets, misses := countsOf(l.seen)
		l.rest.gets += gets
		l.rest.misses += misses
		l.seen = 0
	}
}

// openFree takes and opens a lane in which nobody is, n if it can. The mutex is held.
// It returns nil if there are more lookups than lanes.
func (l *bucketLock) openFree(n uint) *lane {
	for range 1 << laneBits {
		if a := l.lanes.at(n, 0); a.take() {
			l.open.Or(1 << n)
			return a
		}
		n = (n + 1) % (1 << laneBits)
	}
	return nil
}

// lookup takes the lock for a lookup, which is counted, and may be long. It returns
// what leave wants.
func (l *bucketLock) lookup(long bool) *lane {
	n := laneHere()
	if a := l.lanes.at(n, 0); a.enter(l, 1<<n) {
		return a
	}
	return l.enterMutex(n, long)
}

// leave ends a lookup that is in lane a, or has the mutex if a is nil.
func (l *bucketLock) leave(a *lane) {
	if a != nil {
		a.leave()
		return
	}
	l.leaveMutex(0)
}

// leaveMissed is leave for a lookup that counts as a miss.
func (l *bucketLock) leaveMissed(a *lane) {
	if a != nil {
		a.leaveMissed()
		return
	}
	l.leaveMutex(laneMiss)
}

// leaveMutex is apart so that its callers can be inlined.
//
//go:noinline
func (l *bucketLock) leaveMutex(misses uint64) {
	l.seen += misses
	l.mu.Unlock()
}

// hold takes the lock to read for more than a lookup.
func (l *bucketLock) hold() { l.mu.Lock() }

// release gives back what hold took, or exclude made of it.
func (l *bucketLock) release() { l.Unlock() }

// share takes the lock for a lookup, which is counted, that may take its time.
func (l *bucketLock) share() {
	l.mu.Lock()
	for l.rest.writers > 0 {
		l.await()
	}
	l.count()
	l.viewers++
	l.mu.Unlock()
}

// linger turns what hold took into what share takes, uncounted, unless a writer
// waits already: then it gives it back.
func (l *bucketLock) linger() bool {
	l.reopen()
	if l.rest.writers > 0 {
		l.await()
		l.mu.Unlock()
		return false
	}
	l.viewers++
	l.mu.Unlock()
	return true
}

// unshare gives back what share or linger took. missed tells that the lookup was a miss.
func (l *bucketLock) unshare(missed bool) {
	l.mu.Lock()
	if missed {
		l.seen += laneMiss
	}
	if l.viewers--; l.viewers == 0 {
		l.wake()
	}
	l.mu.Unlock()
}

// Lock takes the lock to write. Like Unlock it is a call, around which the compiler moves no store: seq is odd before
// the first one, and even after the last.
//
//go:noinline
func (l *bucketLock) Lock() {
	l.mu.Lock()
	l.exclude()
}

// tryLock is Lock if nobody has the lock, but for lookups in lanes, and reports whether it has taken it.
func (l *bucketLock) tryLock() bool {
	if !l.mu.TryLock() {
		return false
	}
	if l.viewers > 0 {
		l.mu.Unlock()
		return false
	}
	l.begin()
	return true
}

// exclude turns what hold took into what Lock takes. Others may write before it
// does, if there are viewers.
func (l *bucketLock) exclude() {
	if l.viewers > 0 {
		l.outwaitViewers()
	}
	l.begin()
}

// begin makes the mutex, with no viewer, the lock to write. Glances are turned away first: who waits until lanes are
// empty would have to compete with them.
func (l *bucketLock) begin() {
	l.seq++
	if l.open.Load() != 0 {
		l.closeLanes()
	}
}

// Unlock gives back what Lock took.
//
//go:noinline
func (l *bucketLock) Unlock() {
	l.reopen()
	l.mu.Unlock()
}

// reopen opens the lanes that are worth it again. Whoever has closed lanes does so before
// the mutex is given up: others may open some then.
func (l *bucketLock) reopen() {
	l.seq += l.seq & 1
	if l.wait == reopens {
		l.open.Or(l.rest.again)
		l.wait = 0
	}
}

// outwaitViewers waits until there is no viewer. The mutex is held, and given up
// meanwhile.
func (l *bucketLock) outwaitViewers() {
	l.rest.writers++
	for l.viewers > 0 {
		l.await()
	}
	if l.rest.writers--; l.rest.writers == 0 {
		l.wake()
	}
}

// await gives up the mutex until somebody calls wake, and takes it again. (A
// sync.Cond would lead back to the mutex, and so from the cache to itself.)
func (l *bucketLock) await() {
	if l.rest.turn == nil {
		l.rest.turn = make(chan struct{})
	}
	turn := l.rest.turn
	l.mu.Unlock()
	<-turn
	l.mu.Lock()
}

// wake lets those go on that wait. The mutex is held.
func (l *bucketLock) wake() {
	if l.rest.turn != nil {
		close(l.rest.turn)
		l.rest.turn = nil
	}
}

// outwaitGlances waits until there is no glance that has begun before: what it may have found is not to be found any more,
// and is about to go. The lock is held to write, and an atomic operation has been done since: what has made the index
// empty (index.reset). So either a glance that takes its lane sees seq, or its lane is seen here.
func (l *bucketLock) outwaitGlances() {
	for known := l.rest.known.Load(); known != 0; known &= known - 1 {
		a := l.lanes.at(uint(bits.TrailingZeros64(known)), 0)
		for a.state.Load()&laneBusy != 0 {
			runtime.Gosched()
		}
	}
}

// closeLanes waits until there is nobody in a lane, and takes over the counts.
// The mutex is held, so no lane will be opened.
func (l *bucketLock) closeLanes() {
	open := l.open.Swap(0)
	worth := uint64(worthAlone)
	if open&(open-1) != 0 {
		worth = worthMany
	}
	var again uint64
	for ; open != 0; open &= open - 1 {
		n := uint(bits.TrailingZeros64(open))
		if l.collect(n) >= worth {
			again |= 1 << n
		}
	}
	if again != 0 {
		l.rest.again, l.wait, l.calm = again, reopens, 0
	} else {
		l.wait = min(max(l.wait+1, calmLeast), calmMost)
		l.calm = 1 << l.wait
	}
}

// lookups returns how many lookups there have been, and how many of them
// missed. The lock is held.
func (l *bucketLock) lookups() (gets, misses uint64) {
	gets, misses = countsOf(l.seen)
	gets += l.rest.gets
	misses += l.rest.misses
	for open := l.open.Load() | l.rest.known.Load(); open != 0; open &= open - 1 {
		got, missed := countsOf(l.lanes.at(uint(bits.TrailingZeros64(open)), 0).state.Load())
		gets += got
		misses += missed
	}
	return gets, misses
}
