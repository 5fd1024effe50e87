package ringcache_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The contract of a Cache, in the order of docs/design.md: what holds for all calls,
// then method by method. Tests of more than one or two calls are in internal/ringtest.

// ---- Any number of goroutines

func TestCache_ManyGoroutines(t *testing.T) {
	c := ringtest.Small(t)
	var wg sync.WaitGroup
	for id := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var dst []byte
			for i := range 3000 {
				k := []byte(strconv.Itoa(i % 100))
				var ok bool
				switch (i + id) % 5 {
				case 0, 1:
					assert.NoError(t, c.Set(k, ringtest.Pattern(string(k), 10+i%300)))
				case 2:
					c.Del(k)
				default:
					dst, ok = c.HasGet(dst[:0], k)
					if ok && !bytes.Equal(dst, ringtest.Pattern(string(k), len(dst))) {
						assert.Fail(t, "a mixture", "key %s", k)
					}
				}
			}
		}()
	}
	wg.Wait()
}

// ---- Read your own write

func TestSet_IsSeenByTheNextGet(t *testing.T) {
	c := ringtest.Small(t)
	for i := range 20_000 {
		k, v := []byte(strconv.Itoa(i%5000)), ringtest.Pattern(strconv.Itoa(i), i%300)
		if err := c.Set(k, v); err != nil {
			require.NoError(t, err)
		}
		ringtest.RequireHas(t, c, k, v)
	}
}

// ---- A Get returns exactly the bytes of one Set, or nothing

func TestGet_ReturnsExactlyWhatWasSet(t *testing.T) {
	sizes := []int{0, 1, 62, 63, 64, 65, 127, 255, 256, 257, ringtest.MaxKey - 1, ringtest.MaxKey}
	values := append([]int{65536, 65537, 3*65536 - 1, 3 * 65536, 3*65536 + 1,
		ringtest.MaxValue - 1, ringtest.MaxValue}, sizes...)
	for chunk := 512; chunk <= 32<<10; chunk *= 2 {
		for d := -8; d <= 1; d++ { // headers are of 3 to 7 bytes
			values = append(values, chunk+d, 2*chunk+d)
		}
	}
	c := ringtest.Small(t)
	for _, kn := range sizes {
		for _, vn := range values {
			k, v := ringtest.Pattern("k", kn), ringtest.Pattern("v", vn)
			require.NoError(t, c.Set(k, v), "key of %d, value of %d bytes", kn, vn)
			ringtest.RequireHas(t, c, k, v)
		}
	}
}

func TestSet_OverwritesAnySizeWithAnyOther(t *testing.T) {
	c := ringtest.Small(t)
	k := []byte("key")
	for i, n := range []int{
		10, 10, 0, 5, 100, 100, 3, 70_000, 70_000, 69_999, 1, 1 << 20, 12, 0,
	} {
		v := ringtest.Pattern(strconv.Itoa(i), n)
		require.NoError(t, c.Set(k, v))
		ringtest.RequireHas(t, c, k, v)
		require.Equal(t, 1, c.Len())
	}
}

// Keys that agree in their first 65,535 bytes, or in their lengths cut to 16 bits, are
// different keys.
func TestGet_ComparesWholeKeys(t *testing.T) {
	c := ringtest.Small(t)
	require.NoError(t, c.Set(nil, []byte("empty key")))
	require.NoError(t, c.Set(ringtest.Pattern("k", ringtest.MaxKey), []byte("longest key")))
	require.False(t, c.Has(make([]byte, 1<<16)))
	require.False(t, c.Has(append(ringtest.Pattern("k", ringtest.MaxKey), 0)))
	require.Equal(t, "longest key", string(c.Get(nil, ringtest.Pattern("k", ringtest.MaxKey))))
}

func TestCache_NilAndEmptyAreTheSame(t *testing.T) {
	none, empty := []byte(nil), []byte{}
	for _, k := range [][]byte{none, empty} {
		for _, v := range [][]byte{none, empty} {
			c := ringtest.Small(t)
			require.False(t, c.Has(k))
			require.NoError(t, c.Set(k, v))
			for _, k2 := range [][]byte{none, empty} {
				ringtest.RequireHas(t, c, k2, nil)
				require.Empty(t, c.Get(nil, k2))
				require.Equal(t, "abc", string(c.Get([]byte("abc"), k2)))
			}
			require.Equal(t, 1, c.Len())
			require.True(t, c.Del(k))
			require.False(t, c.Has(k))
		}
	}
	c := ringtest.Small(t)
	require.NoError(t, c.Set(nil, []byte("value")))
	require.Equal(t, "value", string(c.Get(nil, empty)))
}

// ---- k and v are the caller's again as soon as a call returns

func TestSet_CopiesKeyAndValue(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range []int{1, 10, 100, 5000, ringtest.MaxValue} {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		require.NoError(t, c.Set(k, v))
		name, want := bytes.Clone(k), bytes.Clone(v)
		clear(k)
		clear(v)
		ringtest.RequireHas(t, c, name, want)
		clear(c.Get(nil, name)) // what Get returned is the caller's, too
		ringtest.RequireHas(t, c, name, want)
	}
}

// ---- No goroutines, and memory that goes with the cache

func TestCache_StartsNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	c := ringtest.Small(t)
	ringtest.FillCache(t, c, 0, 1000, 100)
	ringtest.FillCache(t, c, 0, 100, 100_000)
	require.NoError(t, c.SetWithTTL([]byte("k"), nil, 100*time.Millisecond))
	c.DeleteExpired()
	require.NoError(t, c.Resize(2*ringtest.MinBytes))
	require.NoError(t, c.Resize(ringtest.MinBytes))
	c.Reset()
	// The runtime's goroutine for cleanups counts while it runs those of other tests.
	for end := time.Now().Add(ringtest.HangLimit); runtime.NumGoroutine() > before; {
		require.True(t, time.Now().Before(end), "%d before", before)
		runtime.Gosched()
	}
}

// TestRSS_Dropped checks that the memory of a dropped cache comes back.
func TestCache_MayHaveAFinalizer(t *testing.T) {
	ran := make(chan struct{})
	func() {
		c := ringcache.New(ringtest.MinBytes)
		ringtest.FillCache(t, c, 0, 1000, 100)
		runtime.SetFinalizer(c, func(*ringcache.Cache) { close(ran) })
	}()
	for from := time.Now(); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		select {
		case <-ran:
			return
		default:
			require.Less(t, time.Since(from), 30*time.Second, "it was not collected")
		}
	}
}

// ---- maxBytes bounds all memory

func TestNew_MaxBytesBoundsRecordsAndIndex(t *testing.T) {
	for _, size := range []int{100, 5000, 1 << 20} {
		c := ringtest.Small(t)
		for i := range 10 {
			ringtest.FillCache(t, c, i<<24, 6<<20/(size+20), size)
			s := ringtest.StatsOf(c)
			require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize, "values of %d bytes", size)
			require.GreaterOrEqual(t, s.ReservedBytes, s.BytesSize+s.IndexBytes)
		}
		require.NotZero(t, ringtest.StatsOf(c).EvictedEntries, "never full: the test proves nothing")
	}
}

// No room is reserved for indexes that turn out to be unnecessary.
func TestNew_MaxBytesAreUsed(t *testing.T) {
	t.Parallel()
	if ringtest.RaceEnabled {
		t.Skip("it sets many entries")
	}
	const maxBytes = ringtest.MinBytes / 8
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes})
	require.NoError(t, err)
	defer ringtest.CloseCache(t, c)
	ringtest.FillCache(t, c, 0, 2_500_000/8, 0)
	require.GreaterOrEqual(t, ringtest.StatsOf(c).ReservedBytes, uint64(maxBytes/8*7))
	require.LessOrEqual(t, ringtest.StatsOf(c).ReservedBytes, uint64(maxBytes))
}

// Small records regain the memory that a burst of large ones took.
func TestNew_MaxBytesServeOtherSizesLater(t *testing.T) {
	c := ringtest.Small(t)
	ringtest.FillCache(t, c, 0, 100, 1<<20)
	require.LessOrEqual(t, c.Len(), 32, "values of 1 MB in 32 MB")
	ringtest.FillCache(t, c, 1<<30, 250_000, 500)
	require.GreaterOrEqual(t, c.Len(), 50_000, "entries of 508 bytes in 32 MB")
}

func TestNew_CostsNextToNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := ringcache.New(1 << 30)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "on the Go heap")
	require.Zero(t, ringtest.StatsOf(c).ReservedBytes)
	ringtest.CloseCache(t, c)
}

// With the right hint, indexes have their final size immediately, close to the size to which they
// would have grown.
func TestNew_ExpectedEntriesSaveGrowth(t *testing.T) {
	const entries, size = 300_000, 40
	index := func(o ringcache.Options) (first, last float64) {
		o.MaxBytes = ringtest.MinBytes
		c, err := ringcache.NewWithOptions(o)
		require.NoError(t, err)
		ringtest.FillCache(t, c, 0, entries/10, size)
		first = float64(ringtest.StatsOf(c).IndexBytes)
		ringtest.FillCache(t, c, 0, entries, size)
		require.GreaterOrEqual(t, c.Len(), entries*999/1000)
		last = float64(ringtest.StatsOf(c).IndexBytes)
		ringtest.CloseCache(t, c)
		return first, last
	}
	plainFirst, plainLast := index(ringcache.Options{})
	first, last := index(ringcache.Options{ExpectedEntries: entries})
	require.Greater(t, first, plainFirst)
	require.InEpsilon(t, first, last, 0.05, "it has grown")
	require.Less(t, first, 1.25*plainLast, "it is too large")
}

// An excessive hint takes little memory from the entries.
func TestNew_ExpectedEntriesMayBeTooMany(t *testing.T) {
	const size = 500
	held := func(entries int) float64 {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: ringtest.MinBytes,
			ExpectedEntries: entries})
		require.NoError(t, err)
		ringtest.FillCache(t, c, 0, 100_000, size)
		defer c.Close()
		return float64(c.Len())
	}
	require.Greater(t, held(math.MaxInt), held(0)*0.8)
}

func TestNew_HugePagesAreOfAKnownKind(t *testing.T) {
	names := map[ringcache.HugePages]string{
		ringcache.HugePagesWhenFull: "when full",
		ringcache.HugePagesOff:      "off",
		ringcache.HugePagesAtOnce:   "at once",
	}
	require.Equal(t, ringcache.HugePagesWhenFull, ringcache.Options{}.HugePages, "the default")
	for huge, name := range names {
		require.Equal(t, name, huge.String())
		c, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: ringtest.MinBytes, HugePages: huge})
		require.NoError(t, err)
		ringtest.FillCache(t, c, 0, 1000, 100)
		ringtest.CloseCache(t, c)
	}
	_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: ringtest.MinBytes, HugePages: 3})
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	require.ErrorContains(t, err, "HugePages is 3, must be when full, off or at once")
}

// ---- Set

func TestSet_TooLargeValueRemovesTheOldOne(t *testing.T) {
	for _, maxBytes := range []int{ringtest.MinBytes, 64 << 20} {
		c := ringcache.New(maxBytes)
		most := maxBytes / 16
		k := []byte("key")
		require.NoError(t, c.Set([]byte("other"), []byte("kept")))
		require.NoError(t, c.Set(k, make([]byte, most)))
		require.True(t, c.Has(k))

		err := c.Set(k, make([]byte, most+1))
		require.ErrorIs(t, err, ringcache.ErrTooLarge)
		require.ErrorContains(t, err, strconv.Itoa(most+1))
		require.ErrorContains(t, err, strconv.Itoa(most))
		require.False(t, c.Has(k), "the old value is out of date")
		require.Equal(t, "kept", string(c.Get(nil, []byte("other"))))
		ringtest.CloseCache(t, c)
	}
}

func TestSet_TooLongKeyIsInNoCache(t *testing.T) {
	c := ringtest.Small(t)
	long := make([]byte, ringtest.MaxKey+1)
	err := c.Set(long, nil)
	require.ErrorIs(t, err, ringcache.ErrTooLarge)
	require.ErrorContains(t, err, strconv.Itoa(ringtest.MaxKey+1))
	require.ErrorContains(t, err, strconv.Itoa(ringtest.MaxKey))
	require.False(t, c.Has(long))
	require.Nil(t, c.Get(nil, long))
	require.False(t, c.Del(long))
	require.False(t, ringtest.View(c, long, func([]byte) {}))
	require.Zero(t, c.Len())
}

// ---- Get and HasGet

func TestGet_AppendsToDst(t *testing.T) {
	c := ringtest.Small(t)
	k, v := []byte("key"), []byte("a value of some length")
	require.NoError(t, c.Set(k, v))
	for _, held := range []string{"", "held before "} {
		for room := range len(v) + 2 {
			t.Run(fmt.Sprintf("held=%d/room=%d", len(held), room), func(t *testing.T) {
				back := bytes.Repeat([]byte{'#'}, len(held)+room+4)
				dst := append(back[:0], held...)[: len(held) : len(held)+room]
				got := c.Get(dst, k)
				require.Equal(t, held+string(v), string(got))
				require.Equal(t, held, string(dst))
				require.Equal(t, "####", string(back[len(held)+room:]), "bytes beyond dst")
				if room >= len(v) {
					require.Same(t, unsafe.SliceData(back), unsafe.SliceData(got), "dst had room")
				}
				require.Equal(t, held, string(c.Get(dst, []byte("none"))))
				miss, ok := c.HasGet(dst, []byte("none"))
				require.False(t, ok)
				require.Equal(t, held, string(miss))
			})
		}
	}
}

func TestGet_ReturnsNilForAMissAndNoDst(t *testing.T) {
	c := ringtest.Small(t)
	require.Nil(t, c.Get(nil, []byte("none")))
	miss, ok := c.HasGet(nil, []byte("none"))
	require.False(t, ok)
	require.Nil(t, miss)
}

// ---- Update that changes nothing

func TestUpdate_SeesTheValueOnce(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range []int{0, 1, 100, 2047, 2048, 5000, 70_000, ringtest.MaxValue} {
		k, v := []byte("key"+strconv.Itoa(n)), ringtest.Pattern("v", n)
		require.NoError(t, c.Set(k, v))
		calls := 0
		require.True(t, ringtest.View(c, k, func(got []byte) {
			calls++
			require.True(t, bytes.Equal(v, got), "%d bytes", n)
		}))
		require.Equal(t, 1, calls)
	}
	require.False(t, ringtest.View(c, []byte("none"), func([]byte) {
		assert.Fail(t, "called on a miss")
	}))
}

func TestUpdate_PanicLeavesTheCacheSound(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes) // not small: closing it would hang as well
	for _, n := range []int{10, 70_000, ringtest.MaxValue} {
		k := []byte("key" + strconv.Itoa(n))
		require.NoError(t, c.Set(k, ringtest.Pattern("v", n)))
		view := func() { ringtest.View(c, k, func([]byte) { panic("mine") }) }
		require.PanicsWithValue(t, "mine", view)
		ringtest.Within(t, func() {
			assert.NoError(t, c.Set(k, []byte("new")))
			assert.Equal(t, "new", string(c.Get(nil, k)))
			c.Reset()
		})
	}
	ringtest.Within(t, func() { assert.NoError(t, c.Close()) })
}

func TestUpdate_OthersMayViewTheSameKey(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	k := []byte("key")
	require.NoError(t, c.Set(k, []byte("value")))
	var inside, wg sync.WaitGroup
	inside.Add(2)
	ringtest.Within(t, func() {
		for range 2 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				ringtest.View(c, k, func([]byte) {
					inside.Done()
					inside.Wait() // both are in
				})
			}()
		}
		wg.Wait()
	})
	ringtest.Within(t, func() { assert.NoError(t, c.Close()) })
}

// ---- Del, Reset, Close

func TestDel_TellsWhetherTheKeyWasThere(t *testing.T) {
	c := ringtest.Small(t)
	for _, n := range []int{0, 100, ringtest.MaxValue} {
		k := []byte("key")
		require.False(t, c.Del(k))
		require.NoError(t, c.Set(k, make([]byte, n)))
		require.True(t, c.Del(k))
		require.False(t, c.Has(k))
		require.Zero(t, c.Len())
	}
}

func TestReset_RemovesAllAndKeepsTheCacheUsable(t *testing.T) {
	c := ringtest.Small(t)
	for range 3 {
		ringtest.FillCache(t, c, 0, 5000, 500)
		require.NoError(t, c.Set([]byte("large"), ringtest.Pattern("large", ringtest.MaxValue)))
		require.NotZero(t, c.Len())
		c.Reset()
		require.Zero(t, c.Len())
		for id := range uint64(5000) {
			if c.Has(binary.LittleEndian.AppendUint64(nil, id)) {
				require.Fail(t, "it is there", "key %d", id)
			}
		}
		require.False(t, c.Has([]byte("large")))
		s := ringtest.StatsOf(c)
		require.Zero(t, s.BytesSize)
		require.Zero(t, s.ReservedBytes, "Reset makes memory free for reuse")
		require.EqualValues(t, ringtest.MinBytes, s.MaxBytesSize)
	}
}

func TestClose_LeavesAnEmptyCacheThatTakesNothing(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	k := []byte("key")
	n := c.Namespace("n")
	require.NoError(t, errors.Join(c.Set(k, []byte("value")), n.Set(k, []byte("of n"))))
	ringtest.CloseCache(t, c)
	require.NoError(t, c.Close(), "closing twice")
	c.Reset() // does not open it again
	require.ErrorIs(t, c.Resize(2*ringtest.MinBytes), ringcache.ErrClosed)
	require.Equal(t, ringtest.MinBytes, c.Options().MaxBytes)

	err := c.Set(k, []byte("again"))
	require.ErrorIs(t, err, ringcache.ErrClosed)
	require.NotErrorIs(t, err, ringcache.ErrTooLarge)
	require.ErrorIs(t, c.Set(k, make([]byte, ringtest.MaxValue)), ringcache.ErrClosed)
	require.Nil(t, c.Get(nil, k))
	got, ok := c.HasGet([]byte("held"), k)
	require.False(t, ok)
	require.Equal(t, "held", string(got))
	require.False(t, c.Has(k))
	require.False(t, c.Del(k))
	require.False(t, ringtest.View(c, k, func([]byte) { assert.Fail(t, "called back") }))
	require.Zero(t, c.Len())
	s := ringtest.StatsOf(c)
	require.Zero(t, s.EntriesCount+s.BytesSize+s.ReservedBytes)

	require.ErrorIs(t, n.Set(k, []byte("again")), ringcache.ErrClosed)
	load, _ := ringtest.Gives("loaded")
	got, err = n.GetOrLoad(t.Context(), nil, k, load)
	require.NoError(t, err)
	require.Equal(t, "loaded", string(got))
	require.False(t, n.Has(k) || n.Del(k))
	s = n.Stats()
	require.Zero(t, n.Len())
	require.Zero(t, s.EntriesCount+s.BytesSize)
}

func TestClose_Unused(t *testing.T) {
	require.NoError(t, ringcache.New(1<<30).Close())
}
