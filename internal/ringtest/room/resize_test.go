package room

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// resizable returns a cache of MaxBytes whose hashes are the same in every run.
func resizable(t *testing.T, maxBytes int) *ringcache.Cache {
	t.Helper()
	g := ringtest.Default(maxBytes)
	g.Seed = ringtest.TestSeed
	return ringtest.MustCache(t, g)
}

func TestResize_Bounds(t *testing.T) {
	for _, c := range []struct{ made, least int }{
		{ringtest.LeastMaxBytes, ringtest.LeastMaxBytes}, {4 << 20, 512 << 10},
		{ringtest.MinBytes, 4 << 20}, {256 << 20, 32 << 20}, {512 << 20, 64 << 20},
		{1 << 30, 128 << 20}, {math.MaxInt32, 128 << 20},
	} {
		cache := resizable(t, c.made)
		if c.least > ringtest.LeastMaxBytes {
			for _, n := range []int{ringtest.LeastMaxBytes, c.least - 1} {
				err := cache.Resize(n)
				assert.ErrorIs(t, err, ringcache.ErrInvalidOptions, "made with %d", c.made)
				assert.ErrorContains(t, err, fmt.Sprintf("%d bytes, must be from %d to ", n, c.least))
			}
		}
		if c.made == ringtest.LeastMaxBytes && math.MaxInt > math.MaxInt32 {
			most := 2 * int64(8<<30) // of two buckets
			ringtest.MustResize(t, cache, int(most))
			assert.ErrorIs(t, cache.Resize(int(most+1)), ringcache.ErrInvalidOptions)
		}
		if math.MaxInt > math.MaxInt32 {
			require.ErrorIs(t, cache.Resize(math.MaxInt), ringcache.ErrInvalidOptions)
		}
		ringtest.MustResize(t, cache, c.least)
		ringtest.CloseCache(t, cache)
		require.ErrorIs(t, cache.Resize(c.made), ringcache.ErrClosed)
	}
}

// The error of an excessive bound does not offer one that no cache can have.
func TestResize_RangeInError(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no bound is excessive")
	}
	cache := ringcache.New(1 << 20)
	defer ringtest.CloseCache(t, cache)
	err := cache.Resize(math.MaxInt >> 25) // 256 GB, of which 8 buckets can use 64
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	require.ErrorContains(t, err, "must be from 262144 to 68719476736 for")
}

// The longest value follows the bound.
func TestResize_LongestValue(t *testing.T) {
	c := resizable(t, 256<<20)
	key := []byte("key")
	for _, size := range []int{256 << 20, 32 << 20, 64 << 20, 400 << 20, 32 << 20} {
		ringtest.MustResize(t, c, size)
		v := make([]byte, size/16+1)
		require.ErrorIs(t, c.Set(key, v), ringcache.ErrTooLarge, "size %d, value of %d bytes", size,
			len(v))
		require.False(t, c.Has(key))
		require.NoError(t, c.Set(key, v[1:]), "size %d, value of %d bytes", size, len(v)-1)
		require.Len(t, c.Get(nil, key), len(v)-1)
	}
}

// survivors returns how many of the entries of FillCache from first to end-1
// are there.
func survivors(t *testing.T, c *ringcache.Cache, first, end, valueSize int) (n int) {
	t.Helper()
	var key [8]byte
	var dst []byte
	for id := first; id < end; id++ {
		binary.LittleEndian.PutUint64(key[:], uint64(id))
		var ok bool
		if dst, ok = c.Peek(dst[:0], key[:]); ok {
			n++
			if len(dst) != valueSize {
				require.Len(t, dst, valueSize, "entry %d", id)
			}
		}
	}
	return n
}

// What fits into the smaller cache stays, all of it.
func TestResize_KeepsWhatFits(t *testing.T) {
	c := resizable(t, 128<<20)
	ringtest.FillCache(t, c, 0, 150_000, 100)
	ringtest.FillCache(t, c, 1<<30, 80, 100_000)
	before := c.Len()
	ringtest.MustResize(t, c, 48<<20)
	require.GreaterOrEqual(t, c.Len(), before*999/1000)
	require.GreaterOrEqual(t, survivors(t, c, 1<<30, 1<<30+80, 100_000), 75, "large ones of 80")
}

// Entries that fit in the chunks that are left stay, also where the small ring holds all of them.
func TestResize_KeepsASmallRingOfManyChunks(t *testing.T) {
	c := resizable(t, 256<<20)
	const n = 30_000
	ringtest.FillCache(t, c, 0, n, 290)
	require.Equal(t, n, c.Len())
	ringtest.MustResize(t, c, 32<<20)
	require.Equal(t, n, c.Len())
}

// A much smaller cache is full of what was there, where short entries become large ones and chunks
// are shorter than the system's pages, too.
func TestResize_SmallerCacheIsFull(t *testing.T) {
	for _, size := range []int{600, 1000, 1400} {
		c := resizable(t, 64<<20)
		ringtest.FillCache(t, c, 0, 64<<20/size, size)
		ringtest.MustResize(t, c, 8<<20)
		require.GreaterOrEqual(t, c.Len(), 8<<20/(size+30)*8/10, size)
	}
}

// Of what does not fit, what has been read stays.
func TestResize_KeepsWhatIsRead(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	c := resizable(t, 128<<20)
	const n, size = 400_000, 250
	ringtest.FillCache(t, c, 0, n, size)
	for round := range 2 {
		var key [8]byte
		for id := n / 2; id < n/2+n/10; id++ {
			binary.LittleEndian.PutUint64(key[:], uint64(id))
			if !c.Has(key[:]) && round == 0 && id%1000 == 0 {
				t.Logf("entry %d is not there", id)
			}
		}
	}
	ringtest.MustResize(t, c, 40<<20)
	read := survivors(t, c, n/2, n/2+n/10, size)
	require.GreaterOrEqual(t, read, n/10*9/10, "left of those that were read")
	require.GreaterOrEqual(t, c.Len(), n/5)
}

// A cache that was resized holds as much as one that was made with that size,
// whatever was in it before: no index is left too large, no memory idle. It has up to twice as many
// buckets, and each of their rings leaves half a chunk unused: with a cold part, there are four.
func TestResize_HoldsAsMuch(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	sizes := []int{48 << 20, 16 << 20, 24 << 20}
	if *ringtest.LongRun {
		sizes = []int{96 << 20, 32 << 20, 48 << 20}
	}
	if testing.Short() {
		sizes = sizes[:2]
	}
	share := 0.9
	if *ringtest.ColdOn {
		share = 0.85
	}
	for _, values := range [][]int{{100}, {300, 100_000}} {
		c := resizable(t, sizes[0])
		fill := func(c *ringcache.Cache, first int) {
			t.Helper()
			for i, size := range values {
				var s ringcache.Stats
				c.UpdateStats(&s)
				ringtest.FillCache(t, c, first+i<<24, int(s.MaxBytesSize)/(size+40)*3/2/len(values), size)
			}
		}
		for i, size := range sizes {
			ringtest.MustResize(t, c, size)
			after := liveBytes(c) // before anything new comes
			fill(c, i<<28)
			plain := resizable(t, size)
			fill(plain, i<<28)
			what := fmt.Sprintf("values of %v bytes, resized to %d", values, size)
			want := liveBytes(plain)
			assert.GreaterOrEqual(t, liveBytes(c), int(share*float64(want)),
				"%s: a new one holds %d", what, want)
			if i > 0 && size < sizes[i-1] {
				assert.GreaterOrEqual(t, after, want*3/4, "%s: %d would have fitted", what, want)
			}
		}
	}
}

// Pages that indexes do not need any more become chunks again, even if each
// bucket had chunks of pages to itself.
func TestResize_IndexGivesPagesBack(t *testing.T) {
	t.Parallel()
	g := ringtest.Default(256 << 20)
	g.Seed = ringtest.TestSeed
	g.ExpectedEntries = 3_000_000
	c := ringtest.MustCache(t, g)
	ringtest.FillCache(t, c, 0, 300_000, 250)
	ringtest.MustResize(t, c, 64<<20)
	held := 0
	ringtest.EachBucket(c, func(b ringtest.Bucket) { held += b.Sizes().Held })
	assert.LessOrEqual(t, ringtest.Shared(c).Pool.Used()-held, 3<<20,
		"bytes of idle pages between those in use")
	plain := resizable(t, 64<<20)
	ringtest.FillCache(t, plain, 0, 300_000, 250)
	assert.GreaterOrEqual(t, liveBytes(c), liveBytes(plain)*7/10, "left of what would fit")
}

// A value that is longer than the new bound allows is not kept, however often it
// is read.
func TestResize_LongValuesGo(t *testing.T) {
	c := resizable(t, 256<<20)
	long := []byte("long")
	lb := ringtest.LargeBucketOf(c, ringtest.HashOf(c, long))
	require.NoError(t, c.Set(long, make([]byte, 7<<20)))
	ringtest.MustResize(t, c, 96<<20)
	sets := 0
	for id := uint32(0); c.Has(long); id++ {
		k := ringtest.TrafficKey(nil, id)
		if ringtest.LargeBucketOf(c, ringtest.HashOf(c, k)) != lb {
			continue
		}
		if err := c.Set(k, make([]byte, 5<<20)); err != nil {
			require.NoError(t, err)
		}
		c.Has(k) // so that it goes to main, where the long one is
		sets++
		require.LessOrEqual(t, sets, 100, "it is still there")
	}
}

func liveBytes(c *ringcache.Cache) int {
	var s ringcache.Stats
	c.UpdateStats(&s)
	return int(s.BytesSize)
}

// A Set that comes to its bucket with the figures of a larger cache is sent back, until it goes by
// those of the smaller one.
func TestResize_LateSet(t *testing.T) {
	c := resizable(t, 256<<20)
	small, large := make([]byte, 60_000), make([]byte, 16<<20)
	k := []byte("key")
	size := len(small) + record.LongHeader + len(k)
	require.False(t, ringtest.Shared(c).IsLarge(size), "the test proves nothing")
	b := ringtest.BucketOf(c, ringtest.HashOf(c, k))
	ringtest.Change(c, int(b.Number), func(s *store.Store) { s.Longest = size - 1 })
	late := make(chan error)
	go func() { late <- c.Set(k, small) }()
	for range 100 {
		runtime.Gosched()
	}
	ringtest.MustResize(t, c, 32<<20)
	require.NoError(t, <-late)
	require.Len(t, c.Get(nil, k), len(small))
	require.NoError(t, ringtest.Validate(c))

	ringtest.MustResize(t, c, 256<<20)
	ringtest.Arena(c).Lock() // a large Set waits
	go func() { late <- c.Set(k, large) }()
	for range 100 {
		runtime.Gosched()
	}
	ringtest.Shared(c).MaxBytes.Store(32 << 20)
	ringtest.Arena(c).Unlock()
	require.ErrorIs(t, <-late, ringcache.ErrTooLarge)
	require.Zero(t, c.Len())
}

// OnRemove is told of every entry that a smaller cache has no room for, and may use the
// cache meanwhile.
func TestResize_TellsOnRemove(t *testing.T) {
	g := ringtest.Default(256 << 20)
	told := 0
	var c *ringcache.Cache
	g.OnRemove = func(gone ringcache.Removal) {
		told++
		assert.Equal(t, ringcache.RemovedEvicted, gone.Reason, "%x", gone.Key)
		assert.False(t, c.Has(gone.Key), "%x", gone.Key)
	}
	c = ringtest.MustCache(t, g)
	ringtest.FillCache(t, c, 0, 100_000, 400)
	ringtest.FillCache(t, c, 1<<30, 200, 500_000)
	before, toldBefore := c.Len(), told
	ringtest.MustResize(t, c, 32<<20)
	gone := before - c.Len()
	require.GreaterOrEqual(t, gone, 1000)
	require.Equal(t, gone, told-toldBefore)
}

// A value that is too long by now is lost when Touch has to write it again, and
// OnRemove is told.
func TestResize_TouchTooLong(t *testing.T) {
	g := ringtest.Default(256 << 20)
	g.Policy = ringcache.PolicyFIFO // else it may lie in the small ring, and is moved by Resize
	var reasons []ringcache.RemovalReason
	g.OnRemove = func(gone ringcache.Removal) {
		reasons = append(reasons, gone.Reason)
	}
	c := ringtest.MustCache(t, g)
	k := []byte("long")
	require.NoError(t, c.Set(k, make([]byte, 7<<20)))
	ringtest.MustResize(t, c, 96<<20)
	require.True(t, c.Has(k), "gone already: the test proves nothing")
	require.False(t, c.Touch(k, time.Hour))
	require.False(t, c.Has(k))
	require.Equal(t, []ringcache.RemovalReason{ringcache.RemovedEvicted}, reasons)
}

// A bucket with too little memory for an entry takes that of another one, where a Resize has left
// none: for its first entry, and for one longer than the chunk that it has.
func TestResize_BucketWithoutMemory(t *testing.T) {
	c := ringtest.NewCache(ringtest.Tiny(2, 4096, 64)) // without a cold part, which leaves some
	t.Cleanup(func() { ringtest.CloseCache(t, c) })
	set := func(bucket int16, n, size int) (last []byte) {
		for id := uint32(0); n > 0; id++ {
			k := ringtest.TrafficKey(nil, id)
			if ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number == bucket {
				require.NoError(t, c.Set(k, make([]byte, size)))
				last, n = k, n-1
			}
		}
		return last
	}
	set(0, 600, 500)
	const bound = 200 << 10
	ringtest.MustResize(t, c, bound)
	pool := ringtest.Shared(c).Pool
	require.Less(t, pool.Spare(), pool.ChunkSize(), "the test proves nothing")
	for _, size := range []int{10, 4500} { // the second one needs two chunks
		require.True(t, c.Has(set(1, 1, size)))
		require.LessOrEqual(t, pool.Used(), bound)
	}
	require.NoError(t, ringtest.Validate(c))
}

// Resize up and down, again and again, under everybody else's traffic.
func TestResize_Concurrent(t *testing.T) {
	t.Parallel()
	for _, g := range ringtest.ConcurrentCases() {
		for _, clock := range []*ringtest.HistoryClock{new(ringtest.HistoryClock), nil} {
			t.Run(fmt.Sprintf("%s/history=%v", ringtest.Describe(g), clock != nil), func(t *testing.T) {
				for seed := range uint64(ringtest.Rounds()) {
					tr := ringtest.NewTraffic(t, g)
					tr.Clock, tr.Resized = clock, true
					// All values together are about three times the least bound.
					tr.Usual = max(tr.Usual, ringtest.LeastBytes(g)/1000)
					var check func()
					resizeDuring(t, tr, g, func() {
						all := tr.Run(t, seed, ringtest.ConcurrentSteps())
						check = func() { tr.CheckHistories(t, seed, all) }
					})
					if clock != nil {
						check() // if nothing was evicted before, the last Resize did it
					}
				}
			})
		}
	}
}

// resizeDuring resizes the cache until run returns.
func resizeDuring(t *testing.T, tr *ringtest.Traffic, g ringtest.Shape, run func()) {
	t.Helper()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Add(1)
	go func() {
		defer wg.Done()
		least := ringtest.LeastBytes(g)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if !ringtest.Resize(tr.C, least+(g.MaxBytes*2-least)*(i*3%7)/6) {
				return // closed
			}
		}
	}()
	run()
	close(stop)
	wg.Wait()
	if ringtest.Resize(tr.C, ringtest.LeastBytes(g)) {
		var s ringcache.Stats
		tr.C.UpdateStats(&s)
		assert.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
	}
}

func TestResize_CloseMeanwhile(t *testing.T) {
	g := ringtest.Tiny(16, 4096, 64)
	for seed := range uint64(3) {
		tr := ringtest.NewTraffic(t, g)
		tr.Resized = true
		resizeDuring(t, tr, g, func() {
			var wg sync.WaitGroup
			wg.Add(1)
			go func() {
				defer wg.Done()
				for tr.C.Len() < 200 {
					runtime.Gosched()
				}
				tr.Closing.Store(true)
				ringtest.CloseCache(t, tr.C)
				tr.Closed.Store(true)
			}()
			tr.Run(t, seed, 2000)
			wg.Wait()
		})
		ringtest.RequireNothingHeld(t, tr.C)
	}
}

// A full cache that grows evicts nothing until its new bound is reached.
func TestResize_GrowingEvictsNothing(t *testing.T) {
	c := resizable(t, 32<<20)
	ringtest.FillCache(t, c, 0, 200_000, 300)
	before := ringtest.StatsOf(c).EvictedEntries
	require.NotZero(t, before)
	ringtest.MustResize(t, c, 64<<20)
	ringtest.FillCache(t, c, 200_000, 70_000, 300) // 21 MB
	require.Equal(t, before, ringtest.StatsOf(c).EvictedEntries)
}
