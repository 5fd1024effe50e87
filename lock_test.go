package ringcache

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spawn runs fn in a goroutine that wg waits for.
func spawn(wg *sync.WaitGroup, fn func()) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		fn()
	}()
}

// newLock returns a lock with lanes of its own, as that of a bucket has.
func newLock() *bucketLock {
	return &bucketLock{lanes: newLanes(), rest: &lockRest{known: new(atomic.Uint64)}}
}

// Lookups in lanes, lookups by the mutex, other readers and writers keep out of
// each other's way. A plain variable shows it here, and under -race.
func TestLock_Exclusive(t *testing.T) {
	l := newLock()
	var shared [2]int // always equal, but while a writer is at work
	var inLanes, closed int
	var count sync.Mutex
	var wg sync.WaitGroup
	steps := 20_000
	for range max(4, runtime.GOMAXPROCS(0)) {
		spawn(&wg, func() {
			lanes := 0
			for range steps {
				a := l.lookup(false)
				if a != nil {
					lanes++
				}
				if shared[0] != shared[1] {
					t.Error("a lookup meets a writer")
				}
				l.leave(a)
			}
			count.Lock()
			inLanes += lanes
			count.Unlock()
		})
	}
	spawn(&wg, func() {
		for range steps {
			l.hold()
			if shared[0] != shared[1] {
				t.Error("a reader meets a writer")
			}
			l.release()
		}
	})
	for range 2 {
		spawn(&wg, func() {
			for range steps / 10 {
				l.share()
				if shared[0] != shared[1] {
					t.Error("a viewer meets a writer")
				}
				l.unshare(false)
			}
		})
	}
	for range 2 {
		spawn(&wg, func() {
			for range steps / 50 {
				runtime.Gosched()
				l.Lock()
				if l.open.Load() != 0 || l.viewers != 0 {
					t.Error("a lane is open, or there is a viewer, while a writer has the lock")
				}
				shared[0]++
				runtime.Gosched()
				shared[1]++
				closed++
				l.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, [2]int{closed, closed}, shared)
	require.Positive(t, inLanes, "lookups in lanes")
	gets, _ := l.lookups()
	require.EqualValues(t, max(4, runtime.GOMAXPROCS(0))*steps+2*(steps/10), gets)
	require.Nil(t, l.rest.turn, "somebody still waits")
}

// A lane is one lookup's at a time. Lookups that miss are counted apart, and what is
// no lookup not at all.
func TestLane_Count(t *testing.T) {
	l := newLock()
	a, n := l.openLane()
	want := func(busy bool, done, misses uint64) {
		t.Helper()
		gets, missed := countsOf(a.state.Load())
		require.Equal(t, [2]uint64{done, misses}, [2]uint64{gets, missed})
		require.Equal(t, busy, a.state.Load()&laneBusy != 0)
		require.Equal(t, busy, !a.take())
		if !busy {
			a.forget()
		}
	}
	want(false, 0, 0)
	require.True(t, a.enter(l, 1<<n))
	require.False(t, a.enter(l, 1<<n), "busy")
	want(true, 0, 0)
	l.leaveMissed(a)
	want(false, 1, 1)
	require.True(t, a.enter(l, 1<<n))
	l.leave(a)
	want(false, 2, 1)
	require.True(t, a.enter(l, 1<<n))
	a.forget()
	want(false, 2, 1)
	gets, misses := l.lookups()
	require.EqualValues(t, 3, gets)
	require.EqualValues(t, 1, misses)
	l.Lock()
	require.Zero(t, l.open.Load())
	require.False(t, a.enter(l, 1<<n), "closed")
	l.Unlock()
	want(false, 0, 0)
	gets, misses = l.lookups()
	require.EqualValues(t, 3, gets)
	require.EqualValues(t, 1, misses)
}

// Who comes into a lane while it is being closed leaves no trace, whenever it does.
func TestLane_CloseBesideEnter(t *testing.T) {
	l := newLock()
	a, n := l.openLane()
	var wg sync.WaitGroup
	spawn(&wg, func() {
		for range 20_000 {
			if a.enter(l, 1<<n) {
				l.leaveMissed(a)
			}
		}
	})
	var want uint64
	for range 2_000 {
		l.Lock()
		gets, misses := l.lookups()
		for range 100 { // time to go wrong in
			if a.state.Load()&^laneBusy != 0 {
				t.Fatal("somebody has come in")
			}
		}
		require.Equal(t, misses+1, gets, "all but openLane's own missed")
		require.GreaterOrEqual(t, gets, want)
		want = gets
		l.open.Or(1 << n)
		l.Unlock()
	}
	wg.Wait()
}

// A lane that can count no more lookups is emptied, and nothing is lost. It may be open.
func TestLane_Full(t *testing.T) {
	l := newLock()
	a, n := l.openLane()
	const before = laneFull/laneOnce - 2
	a.state.Store(before * (laneOnce + laneMiss))
	for range 2 {
		require.True(t, a.enter(l, 1<<n))
		l.leaveMissed(a)
	}
	require.False(t, a.enter(l, 1<<n), "full")
	require.False(t, a.take(), "full")
	require.Nil(t, l.enterMutex(n, false))
	l.leave(nil)
	require.Zero(t, a.state.Load())
	require.True(t, a.enter(l, 1<<n))
	l.leave(a)
	gets, misses := l.lookups()
	require.EqualValues(t, before+2+3, gets)
	require.EqualValues(t, before+2, misses)
	a.state.Store(laneFull)
	require.Same(t, a, l.enterMutex(n, true), "emptied before it is looked for")
}

// Where its own lane is busy, a lookup goes by the next lane, which the first to come
// with the mutex has opened. There may be others than two.
func TestLock_NextLane(t *testing.T) {
	l := newLock()
	const last = 1<<laneBits - 1
	require.Nil(t, l.enterMutex(last, false))
	l.leave(nil)
	own, next := l.lanes.at(last, 0), l.lanes.at(0, 0)
	require.True(t, own.enter(l, 1<<last))
	require.Nil(t, l.enterMutex(last, false), "the next is closed")
	l.leave(nil)
	require.Same(t, next, l.enterMutex(last, false))
	require.Nil(t, l.enterMutex(last, false), "both are busy")
	l.leave(nil)
	l.leave(own)
	l.leaveMissed(next)
	l.Lock()
	require.Zero(t, l.open.Load())
	l.Unlock()
	gets, misses := l.lookups()
	require.EqualValues(t, 5, gets)
	require.EqualValues(t, 1, misses)
}

// Where its own lane is busy and a lookup may be long, it goes by the next free lane; if
// there is none, it has the mutex to itself.
func TestLock_BusyLane(t *testing.T) {
	l := newLock()
	n := laneHere()
	require.Nil(t, l.enterMutex(n, false))
	l.leave(nil)
	own := l.lanes.at(n, 0)
	require.True(t, own.enter(l, 1<<n))
	lanes := map[*lane]bool{own: true}
	for range 1<<laneBits - 1 {
		a := l.enterMutex(n, true)
		require.NotNil(t, a)
		lanes[a] = true
	}
	require.Len(t, lanes, 1<<laneBits)
	require.False(t, own.enter(l, 1<<n))
	require.Nil(t, l.enterMutex(n, true))
	require.False(t, l.mu.TryLock())
	l.leave(nil)
	for a := range lanes {
		l.leave(a)
	}
	gets, misses := l.lookups()
	require.EqualValues(t, 2+1<<laneBits, gets)
	require.Zero(t, misses)
}

// openLane opens a lane with a lookup, and returns it and its number. (A later lookup may
// have another lane, since stacks move.)
func (l *bucketLock) openLane() (a *lane, n uint) {
	l.leave(l.lookup(false))
	n = uint(bits.TrailingZeros64(l.open.Load()))
	return l.lanes.at(n, 0), n
}

// A writer closes the lanes, and they stay closed until lookups have been calm.
func TestLock_Calm(t *testing.T) {
	l := newLock()
	get := func() (inLane bool) {
		a := l.lookup(false)
		defer l.leave(a)
		return a != nil
	}
	require.False(t, get(), "the first lookup opens the lane")
	require.True(t, get(), "in the lane")
	l.Lock()
	require.Zero(t, l.open.Load())
	l.Unlock()
	for range 1 << calmLeast {
		require.False(t, get(), "not calm yet")
	}
	require.True(t, get(), "calm")
	gets, misses := l.lookups()
	require.EqualValues(t, 1<<calmLeast+3, gets)
	require.Zero(t, misses)
}

// A writer opens the lanes again that have served so many lookups since the last one
// that they outweigh closing them.
func TestLock_Again(t *testing.T) {
	for name, served := range map[string][]int{
		"one, unused": {0}, "one, used once": {1}, "one": {2},
		"two, unused": {0, 0}, "two, one used": {16, 15}, "two": {16, 100}, "two, hardly used": {15, 2},
		"three": {3, 16, 17},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLock()
			var want, total uint64
			for n, times := range served {
				l.open.Or(1 << n)
				for range times {
					a := l.lanes.at(uint(n), 0)
					require.True(t, a.enter(l, 1<<n))
					l.leave(a)
				}
				total += uint64(times)
				if times >= 2 && len(served) == 1 || times >= 16 {
					want |= 1 << n
				}
			}
			l.Lock()
			require.Zero(t, l.open.Load())
			require.EqualValues(t, total, l.rest.gets)
			l.Unlock()
			require.Equal(t, want, l.open.Load())
			require.Equal(t, want == 0, l.calm > 0)
			l.Lock() // nobody has come since
			require.Zero(t, l.open.Load())
			l.Unlock()
			require.Zero(t, l.open.Load())
			require.EqualValues(t, 1<<calmLeast, l.calm)
		})
	}
}

// Who has held the lock to read, and then alone, opens lanes again as well.
func TestLock_AgainAfterHold(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, l *bucketLock){
		"release": func(_ *testing.T, l *bucketLock) { l.release() },
		"linger": func(t *testing.T, l *bucketLock) {
			require.True(t, l.linger())
			require.NotZero(t, l.open.Load(), "while it lingers")
			l.unshare(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLock()
			a, n := l.openLane()
			for range worthAlone {
				require.True(t, a.enter(l, 1<<n))
				l.leave(a)
			}
			l.hold()
			l.exclude()
			require.Zero(t, l.open.Load())
			end(t, l)
			require.Equal(t, uint64(1)<<n, l.open.Load())
		})
	}
}

// Who has closed lanes and finds that a writer waits opens them again before it gives the
// mutex up: others may open lanes meanwhile, and a writer must not forget these.
func TestLock_AgainBeforeAwait(t *testing.T) {
	l := newLock()
	first, second := l.lanes.at(1, 0), l.lanes.at(2, 0)
	l.open.Or(1 << 1)
	for range worthAlone {
		require.True(t, first.enter(l, 1<<1))
		l.leave(first)
	}
	l.hold()
	l.exclude()
	l.rest.writers = 1
	var wg sync.WaitGroup
	spawn(&wg, func() { require.False(t, l.linger()) })
	for waits := false; !waits; {
		runtime.Gosched()
		l.mu.Lock()
		waits = l.rest.turn != nil
		l.mu.Unlock()
	}
	require.Nil(t, l.enterMutex(2, false)) // opens the second
	l.leave(nil)
	require.True(t, second.enter(l, 1<<2))
	l.hold()
	l.release()
	require.EqualValues(t, 1<<1|1<<2, l.open.Load())
	l.hold()
	l.rest.writers = 0
	l.wake()
	l.release()
	wg.Wait()
	l.leave(second)
}

// A writer waits for a lookup in a lane, and a lookup that comes after it waits
// for the writer.
func TestLock_WriterWaits(t *testing.T) {
	l := newLock()
	l.leave(l.lookup(false))
	a := l.lookup(false)
	require.NotNil(t, a)
	var order []string // guarded by l
	var writer, reader sync.WaitGroup
	spawn(&writer, func() {
		l.Lock()
		order = append(order, "write")
		l.Unlock()
	})
	for l.open.Load() != 0 {
		runtime.Gosched()
	}
	spawn(&reader, func() {
		a := l.lookup(false)
		order = append(order, "second lookup")
		l.leave(a)
	})
	order = append(order, "first lookup")
	l.leaveMissed(a)
	writer.Wait()
	reader.Wait()
	require.Equal(t, []string{"first lookup", "write", "second lookup"}, order)
	gets, misses := l.lookups()
	require.EqualValues(t, 3, gets)
	require.EqualValues(t, 1, misses)
}

// writerWaits reports whether a writer waits for viewers.
func (l *bucketLock) writerWaits() bool {
	l.hold()
	defer l.release()
	return l.rest.writers > 0
}

// spawnWaiting has a goroutine, that wg waits for, note in order when it writes. It
// returns when that waits for viewers, of whom there must be some.
func spawnWaiting(wg *sync.WaitGroup, l *bucketLock, order *[]string) {
	spawn(wg, func() {
		l.Lock()
		*order = append(*order, "write")
		l.Unlock()
	})
	for !l.writerWaits() {
		runtime.Gosched()
	}
}

// A writer waits for the viewers that are there, and is not overtaken by more of
// them. Lookups wait for neither.
func TestLock_ViewersWait(t *testing.T) {
	l := newLock()
	l.share()
	l.share()
	var order []string // guarded by l
	var writer, viewer sync.WaitGroup
	spawnWaiting(&writer, l, &order)
	spawn(&viewer, func() {
		l.share()
		order = append(order, "late view")
		l.unshare(true)
	})
	for range 1000 { // time to go wrong in
		runtime.Gosched()
	}
	l.leave(l.lookup(false))
	l.unshare(false)
	require.True(t, l.writerWaits(), "one viewer is still there")
	order = append(order, "early view")
	l.unshare(false)
	writer.Wait()
	viewer.Wait()
	require.Equal(t, []string{"early view", "write", "late view"}, order)
	gets, misses := l.lookups()
	require.EqualValues(t, 4, gets)
	require.EqualValues(t, 1, misses)
	require.Nil(t, l.rest.turn)
}

// Where values are long, lookups never have the mutex to themselves.
func TestLock_Long(t *testing.T) {
	l := newLock()
	l.long = true
	for range 3 {
		a, b := l.lookup(false), l.lookup(false)
		require.NotNil(t, a)
		require.NotNil(t, b)
		require.True(t, l.mu.TryLock())
		l.mu.Unlock()
		l.leave(a)
		l.leaveMissed(b)
		l.Lock()
		require.Zero(t, l.open.Load())
		l.Unlock()
	}
	gets, misses := l.lookups()
	require.EqualValues(t, 6, gets)
	require.EqualValues(t, 3, misses)
}

// A lookup that may have to go on in a large bucket does not keep others out of its
// small one while it waits.
func TestLock_LongByStrays(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	k := []byte("key")
	h := c.shared.hash(k)
	b, lb := c.bucket(h), c.largeBucket(h)
	require.NoError(t, c.Set(k, make([]byte, 1<<20))) // closes all lanes of b
	require.NotZero(t, c.shared.strays(h).Load())
	lb.lock()
	var get, has sync.WaitGroup
	spawn(&get, func() { assert.Len(t, c.Get(nil, k), 1<<20) })
	spawn(&has, func() { assert.True(t, c.Has(k)) })
	inside := 0
	for end := time.Now().Add(20 * time.Second); inside < 2 && time.Now().Before(end); runtime.Gosched() {
		_, inside = b.mu.inUse()
	}
	assert.Equal(t, 2, inside, "lookups in lanes")
	if free := b.mu.mu.TryLock(); assert.True(t, free) {
		b.mu.mu.Unlock()
	}
	lb.mu.Unlock()
	get.Wait()
	has.Wait()
}

// A step of a loop and a peek read beside lookups that have the mutex, and let no
// writer in; where one waits already, they wait for it.
func TestLock_Linger(t *testing.T) {
	l := newLock()
	l.hold()
	require.True(t, l.linger())
	a := l.lookup(false)
	require.Nil(t, a)
	l.leave(a)
	var writer, other sync.WaitGroup
	var order []string // guarded by l
	spawnWaiting(&writer, l, &order)
	spawn(&other, func() {
		for l.hold(); !l.linger(); l.hold() {
		}
		order = append(order, "late")
		l.unshare(false)
	})
	for range 1000 { // time to go wrong in
		runtime.Gosched()
	}
	order = append(order, "early")
	l.unshare(false)
	writer.Wait()
	other.Wait()
	require.Equal(t, []string{"early", "write", "late"}, order)
	gets, _ := l.lookups()
	require.EqualValues(t, 1, gets)
}

// Large buckets have such a lock from the start, small ones once they have learned
// that records are long.
func TestLock_LongByValues(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	b := c.bucket(c.shared.hash([]byte("key")))
	lb := &c.region.buckets[0]
	require.True(t, lb.mu.long)
	lb.lock()
	lb.learnLocked() // that it has no records
	lb.mu.Unlock()
	require.True(t, lb.mu.long)
	require.False(t, b.mu.long)
	for range 100 {
		require.NoError(t, c.Set([]byte("key"), make([]byte, longRecord)))
	}
	require.True(t, b.mu.long)
	for range 100_000 {
		require.NoError(t, c.Set([]byte("key"), make([]byte, 100)))
	}
	require.False(t, b.mu.long)
}

// No cache line holds parts of two lanes.
func TestLane_Lines(t *testing.T) {
	first, laneOf := newLanes(), map[uintptr]uint{}
	require.Zero(t, uintptr(unsafe.Pointer(first))%cacheLine)
	for n := range uint(1) << laneBits {
		for bucket := range uint64(bucketCount + largeBuckets) {
			line := uintptr(unsafe.Pointer(first.at(n, bucket))) / cacheLine
			if other, ok := laneOf[line]; ok && other != n {
				t.Fatalf("lanes %d and %d share a line, at bucket %d", other, n, bucket)
			}
			laneOf[line] = n
		}
	}
}

// Stacks that lie side by side lead to different lanes, wherever they begin, and
// whatever the size of all of them is.
func TestLock_LanesDiffer(t *testing.T) {
	const stacks = 1 << laneBits
	for _, start := range []uintptr{0, 0x40000, 0xc0000 << 4, 1<<31 - 1<<20} {
		for shift := stackShift; shift <= stackShift+3; shift++ {
			lanes := map[uint]int{}
			for i := range uintptr(stacks) {
				lanes[laneOf(start+i<<shift)]++
			}
			for n, count := range lanes {
				require.Less(t, n, uint(stacks))
				require.LessOrEqual(t, count, 4, "lane %d, from %#x, stacks of %d", n, start, 1<<shift)
			}
			require.GreaterOrEqual(t, len(lanes), stacks/3)
		}
	}
}

// Goroutines have different lanes. Where their stacks lie is not ours to say, so
// this asks only for some.
func TestLock_LanesOfGoroutines(t *testing.T) {
	const goroutines = 64
	lanes := map[uint]bool{}
	var mu sync.Mutex
	var start, wg sync.WaitGroup
	start.Add(goroutines)
	for range goroutines {
		spawn(&wg, func() {
			start.Done()
			start.Wait() // all have their stacks at once
			n := laneHere()
			mu.Lock()
			lanes[n] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, len(lanes), goroutines/8)
	for n := range lanes {
		require.Less(t, n, uint(1)<<laneBits)
	}
}

// tryLock takes the lock as Lock does, or nothing.
func TestLock_TryLock(t *testing.T) {
	l := newLock()
	l.Lock()
	require.False(t, l.tryLock(), "somebody has it")
	l.Unlock()
	l.share()
	require.False(t, l.tryLock(), "there is a viewer")
	l.unshare(false)
	l.open.Or(1<<3 | 1<<5)
	require.True(t, l.tryLock())
	require.Zero(t, l.open.Load(), "I13")
	require.False(t, l.tryLock())
	l.Unlock()
	require.True(t, l.tryLock())
	l.Unlock()
}

// Lookups by the mutex are counted in half a word, and go on where that is full.
func TestLock_CountIsFull(t *testing.T) {
	l := newLock()
	const most = laneFull/laneOnce - 1
	l.seen = 7*laneMiss + most*laneOnce
	for i := range uint64(3) {
		gets, misses := l.lookups()
		require.Equal(t, []uint64{most + i, 7 + i}, []uint64{gets, misses})
		l.hold()
		l.count()
		l.leaveMissed(nil)
	}
}
