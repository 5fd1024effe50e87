package ringcache_test

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

const (
	floor    = 32 << 20 // the least that New takes maxBytes for
	maxValue = floor / 16
	maxKey   = 65535
)

// small returns the smallest cache there is.
func small(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(1)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// pattern returns n bytes that differ from those of every other tag.
func pattern(tag string, n int) []byte {
	b := make([]byte, n)
	x := uint32(len(tag))
	for i := range b {
		x = x*1664525 + 1013904223 + uint32(tag[i%len(tag)])
		b[i] = byte(x >> 24)
	}
	return b
}

func stats(c *ringcache.Cache) (s ringcache.Stats) {
	c.UpdateStats(&s)
	return s
}

func TestContract_NilAndEmpty(t *testing.T) {
	none := []byte(nil)
	empty := []byte{}
	for _, k := range [][]byte{none, empty} {
		for _, v := range [][]byte{none, empty} {
			c := small(t)
			require.False(t, c.Has(k))
			require.NoError(t, c.Set(k, v))
			for _, k2 := range [][]byte{none, empty} { // they are one key
				require.True(t, c.Has(k2))
				got, ok := c.HasGet(nil, k2)
				require.True(t, ok)
				require.Empty(t, got)
				require.Empty(t, c.Get(nil, k2))
				require.Equal(t, "abc", string(c.Get([]byte("abc"), k2)))
			}
			require.Equal(t, 1, c.Len())
			require.True(t, c.Del(k))
			require.False(t, c.Has(k))
			require.False(t, c.Del(k))
		}
	}
	c := small(t)
	require.NoError(t, c.Set(nil, []byte("value")))
	require.Equal(t, "value", string(c.Get(nil, empty)))
}

func TestContract_Dst(t *testing.T) {
	c := small(t)
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
				require.Equal(t, "####", string(back[len(held)+room:]), "bytes beyond the capacity of dst")
				if room >= len(v) {
					require.Same(t, unsafe.SliceData(back), unsafe.SliceData(got), "dst had room and was not used")
				}
				miss := c.Get(dst, []byte("none"))
				require.Equal(t, held, string(miss))
				miss, ok := c.HasGet(dst, []byte("none"))
				require.False(t, ok)
				require.Equal(t, held, string(miss))
			})
		}
	}
	require.Nil(t, c.Get(nil, []byte("none")))
	miss, ok := c.HasGet(nil, []byte("none"))
	require.False(t, ok)
	require.Nil(t, miss)
}

func TestContract_ReadYourWrite(t *testing.T) {
	c := small(t)
	for i := range 20_000 {
		k := []byte(strconv.Itoa(i % 5000))
		v := pattern(strconv.Itoa(i), i%300)
		require.NoError(t, c.Set(k, v))
		got, ok := c.HasGet(nil, k)
		require.True(t, ok, "write %d", i)
		require.True(t, bytes.Equal(v, got), "write %d", i)
	}
}

func TestContract_SetCopies(t *testing.T) {
	c := small(t)
	for _, n := range []int{1, 10, 100, 5000, maxValue} {
		k, v := []byte("key"+strconv.Itoa(n)), pattern("v", n)
		require.NoError(t, c.Set(k, v))
		name, want := string(k), bytes.Clone(v)
		clear(k)
		clear(v)
		got := c.Get(nil, []byte(name))
		require.True(t, bytes.Equal(want, got), "%d bytes changed with the caller's", n)
		clear(got)
		require.True(t, bytes.Equal(want, c.Get(nil, []byte(name))), "%d bytes changed with what Get returned", n)
	}
}

func TestContract_OverwriteAnySize(t *testing.T) {
	c := small(t)
	k := []byte("key")
	for i, n := range []int{10, 10, 0, 5, 100, 100, 3, 70_000, 70_000, 69_999, 1, 1 << 20, 12, 0} {
		v := pattern(strconv.Itoa(i), n)
		require.NoError(t, c.Set(k, v))
		got, ok := c.HasGet(nil, k)
		require.True(t, ok)
		require.True(t, bytes.Equal(v, got), "write %d of %d bytes", i, n)
		require.Equal(t, 1, c.Len())
	}
}

func TestContract_GetBatch(t *testing.T) {
	c := small(t)
	for i := range 300 {
		require.NoError(t, c.Set([]byte(strconv.Itoa(i)), pattern(strconv.Itoa(i), i)))
	}
	require.NoError(t, c.Set([]byte("large"), pattern("large", 100_000)))
	names := []string{"0", "7", "absent", "7", "large", "299", "absent", "0"}
	for range 3 { // more than any batch that is taken at once
		for i := range 60 {
			names = append(names, strconv.Itoa(i*5), "absent"+strconv.Itoa(i))
		}
	}
	keys := make([][]byte, len(names))
	for i, n := range names {
		keys[i] = []byte(n)
	}
	for _, dst := range [][]byte{nil, []byte("held"), make([]byte, 4, 1<<20)} {
		held := string(dst)
		vals := make([][]byte, len(keys)+1)
		for i := range vals {
			vals[i] = []byte("old")
		}
		out, hits := c.GetBatch(dst, keys, vals)
		require.Equal(t, held, string(out[:len(dst)]))
		require.Equal(t, "old", string(vals[len(keys)]))
		wantHits := 0
		for i, n := range names {
			want, ok := c.HasGet(nil, keys[i])
			if !ok {
				require.Nil(t, vals[i], "%q was never set", n)
				continue
			}
			wantHits++
			require.NotNil(t, vals[i], "%q is empty, not absent", n)
			require.True(t, bytes.Equal(want, vals[i]), "value of %q", n)
			requirePart(t, out[len(dst):], vals[i])
		}
		require.Equal(t, wantHits, hits)
		// The caller owns all of it: appending to one must not reach another.
		_ = append(vals[1], "overrun"...)
		require.True(t, bytes.Equal(pattern("large", 100_000), vals[4]))
		require.True(t, bytes.Equal(pattern("7", 7), vals[3]))
		clear(out)
		require.True(t, bytes.Equal(pattern("7", 7), c.Get(nil, []byte("7"))))
	}
}

// requirePart fails if part, unless empty, does not lie within whole.
func requirePart(t *testing.T, whole, part []byte) {
	t.Helper()
	if len(part) == 0 {
		return
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	first := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	require.True(t, at >= first && at+uintptr(len(part)) <= first+uintptr(len(whole)), "a value lies outside out")
}

func TestContract_GetBatchBounds(t *testing.T) {
	c := small(t)
	out, hits := c.GetBatch(nil, nil, nil)
	require.Empty(t, out)
	require.Zero(t, hits)
	require.Panics(t, func() { c.GetBatch(nil, [][]byte{{1}, {2}}, make([][]byte, 1)) }, "fewer vals than keys")
	require.NoError(t, c.Set([]byte{1}, []byte("still works")))

	// An empty value is told from a miss even where out is empty too.
	require.NoError(t, c.Set([]byte("empty"), nil))
	vals := make([][]byte, 2)
	_, hits = c.GetBatch(nil, [][]byte{[]byte("empty"), []byte("none")}, vals)
	require.Equal(t, 1, hits)
	require.NotNil(t, vals[0])
	require.Nil(t, vals[1])
}

func TestContract_View(t *testing.T) {
	c := small(t)
	for _, n := range []int{0, 1, 100, 2047, 2048, 5000, 70_000, maxValue} {
		k, v := []byte("key"+strconv.Itoa(n)), pattern("v", n)
		require.NoError(t, c.Set(k, v))
		calls := 0
		require.True(t, c.View(k, func(got []byte) {
			calls++
			require.True(t, bytes.Equal(v, got), "%d bytes", n)
		}))
		require.Equal(t, 1, calls)
	}
	require.False(t, c.View([]byte("none"), func([]byte) { t.Error("called back on a miss") }))
}

// A callback that panics must not leave a lock held: every later call of any
// key would hang.
func TestContract_ViewPanic(t *testing.T) {
	c := ringcache.New(1) // not small: closing it would hang as well
	for _, n := range []int{10, 70_000, maxValue} {
		k := []byte("key" + strconv.Itoa(n))
		require.NoError(t, c.Set(k, pattern("v", n)))
		require.PanicsWithValue(t, "mine", func() { c.View(k, func([]byte) { panic("mine") }) })
		within(t, func() {
			require.NoError(t, c.Set(k, []byte("new")))
			require.Equal(t, "new", string(c.Get(nil, k)))
			c.Reset()
		})
	}
	within(t, func() { require.NoError(t, c.Close()) })
}

// Views of one key may overlap.
func TestContract_ViewsShare(t *testing.T) {
	c := ringcache.New(1) // not small: closing it would hang as well
	k := []byte("key")
	require.NoError(t, c.Set(k, []byte("value")))
	var inside, wg sync.WaitGroup
	inside.Add(2)
	within(t, func() {
		for range 2 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				c.View(k, func([]byte) {
					inside.Done()
					inside.Wait() // both are in
				})
			}()
		}
		wg.Wait()
	})
	within(t, func() { require.NoError(t, c.Close()) })
}

// within fails the test if fn, run in a goroutine, does not return.
func within(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("a call hangs: a lock was left held")
	}
}

func TestContract_Sizes(t *testing.T) {
	sizes := []int{0, 1, 62, 63, 64, 65, 127, 255, 256, 257, 65534, 65535}
	values := append([]int{65536, 65537, 3*65536 - 1, 3 * 65536, 3*65536 + 1, maxValue - 1, maxValue}, sizes...)
	for chunk := 512; chunk <= 32<<10; chunk *= 2 {
		for d := -8; d <= 1; d++ { // headers are of 3 to 7 bytes
			values = append(values, chunk+d, 2*chunk+d)
		}
	}
	c := small(t)
	for _, kn := range sizes {
		for _, vn := range values {
			k, v := pattern("k", kn), pattern("v", vn)
			require.NoError(t, c.Set(k, v), "key of %d, value of %d bytes", kn, vn)
			got, ok := c.HasGet(nil, k)
			require.True(t, ok, "key of %d, value of %d bytes", kn, vn)
			require.True(t, bytes.Equal(v, got), "key of %d, value of %d bytes", kn, vn)
		}
	}
}

func TestContract_TooLarge(t *testing.T) {
	for name, maxBytes := range map[string]int{"floor": 1, "64MB": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			c := ringcache.New(maxBytes)
			defer c.Close()
			most := max(maxBytes, floor) / 16
			require.NoError(t, c.Set([]byte("other"), []byte("kept")))
			k := []byte("key")
			require.NoError(t, c.Set(k, make([]byte, most)))
			require.True(t, c.Has(k))

			err := c.Set(k, make([]byte, most+1))
			require.ErrorIs(t, err, ringcache.ErrTooLarge)
			require.ErrorContains(t, err, strconv.Itoa(most+1))
			require.ErrorContains(t, err, strconv.Itoa(most))
			require.False(t, c.Has(k), "the old value is out of date")

			long := make([]byte, maxKey+1)
			err = c.Set(long, nil)
			require.ErrorIs(t, err, ringcache.ErrTooLarge)
			require.ErrorContains(t, err, strconv.Itoa(maxKey+1))
			require.ErrorContains(t, err, strconv.Itoa(maxKey))
			require.False(t, c.Has(long))
			require.Nil(t, c.Get(nil, long))
			require.False(t, c.Del(long))
			require.False(t, c.View(long, func([]byte) {}))

			require.Equal(t, 1, c.Len())
			require.Equal(t, "kept", string(c.Get(nil, []byte("other"))))
		})
	}
}

// Keys that agree in their first 65,535 bytes, or in their lengths cut to 16
// bits, are different keys.
func TestContract_LongKeysAreNotCut(t *testing.T) {
	c := small(t)
	require.NoError(t, c.Set(nil, []byte("empty key")))
	require.NoError(t, c.Set(pattern("k", maxKey), []byte("longest key")))
	require.False(t, c.Has(make([]byte, 1<<16)))
	require.False(t, c.Has(append(pattern("k", maxKey), 0)))
	require.Equal(t, "longest key", string(c.Get(nil, pattern("k", maxKey))))
}

func TestContract_Close(t *testing.T) {
	c := ringcache.New(1)
	k := []byte("key")
	require.NoError(t, c.Set(k, []byte("value")))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "closing twice")

	err := c.Set(k, []byte("again"))
	require.ErrorIs(t, err, ringcache.ErrClosed)
	require.NotErrorIs(t, err, ringcache.ErrTooLarge)
	require.ErrorIs(t, c.Set(k, make([]byte, maxValue)), ringcache.ErrClosed)
	require.Nil(t, c.Get(nil, k))
	got, ok := c.HasGet([]byte("held"), k)
	require.False(t, ok)
	require.Equal(t, "held", string(got))
	require.False(t, c.Has(k))
	require.False(t, c.Del(k))
	require.False(t, c.View(k, func([]byte) { t.Error("called back") }))
	vals := [][]byte{k}
	out, hits := c.GetBatch(nil, [][]byte{k}, vals)
	require.Empty(t, out)
	require.Zero(t, hits)
	require.Nil(t, vals[0])
	require.Zero(t, c.Len())
	c.Reset()
	require.ErrorIs(t, c.Set(k, nil), ringcache.ErrClosed, "Reset must not open it again")
	s := stats(c)
	require.Zero(t, s.EntriesCount)
	require.Zero(t, s.BytesSize)
	require.Zero(t, s.ReservedBytes)
}

func TestContract_CloseUnused(t *testing.T) {
	require.NoError(t, ringcache.New(1<<30).Close())
}

func TestContract_Reset(t *testing.T) {
	c := small(t)
	for round := range 3 {
		for i := range 5000 {
			require.NoError(t, c.Set([]byte(strconv.Itoa(i)), pattern(strconv.Itoa(round), 500)))
		}
		require.NoError(t, c.Set([]byte("large"), pattern("large", maxValue)))
		require.NotZero(t, c.Len())
		c.Reset()
		require.Zero(t, c.Len())
		for i := range 5000 {
			require.False(t, c.Has([]byte(strconv.Itoa(i))))
		}
		require.False(t, c.Has([]byte("large")))
		s := stats(c)
		require.Zero(t, s.BytesSize)
		require.Zero(t, s.ReservedBytes, "Reset gives chunks back to the pool")
		require.Equal(t, uint64(floor), s.MaxBytesSize)
	}
}

func TestContract_New(t *testing.T) {
	for _, n := range []int{0, -1, -1 << 31} {
		require.Panics(t, func() { ringcache.New(n) }, "New(%d)", n)
		_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: n})
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.ErrorContains(t, err, "MaxBytes")
		require.ErrorContains(t, err, strconv.Itoa(n))
	}
	_, err := ringcache.NewWithOptions(ringcache.Options{})
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	for n, want := range map[int]uint64{1: floor, floor - 1: floor, floor: floor, floor + 1: floor + 1, 100_000_000: 100_000_000} {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: n})
		require.NoError(t, err)
		require.Equal(t, want, stats(c).MaxBytesSize)
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
		require.NoError(t, c.Close())
	}
}

func TestContract_Stats(t *testing.T) {
	c := small(t)
	require.Equal(t, ringcache.Stats{MaxBytesSize: floor}, stats(c), "a fresh cache")

	a, b, none := []byte("a"), []byte("bb"), []byte("none")
	require.NoError(t, c.Set(a, make([]byte, 10)))  // 3 + 1 + 10 bytes of record
	require.NoError(t, c.Set(b, make([]byte, 100))) // 3 + 2 + 100
	require.NoError(t, c.Set(a, make([]byte, 20)))  // 3 + 1 + 20 instead of the first
	require.Error(t, c.Set(none, make([]byte, maxValue+1)))
	c.Get(nil, a)
	c.Get(nil, none)
	c.HasGet(nil, b)
	c.Has(a)
	c.Has(none)
	c.View(a, func([]byte) {})
	c.View(none, func([]byte) {})
	c.GetBatch(nil, [][]byte{a, none, a, b}, make([][]byte, 4))

	s := stats(c)
	require.Equal(t, uint64(4), s.SetCalls, "refused ones among them")
	require.Equal(t, uint64(11), s.GetCalls, "one for each key looked up")
	require.Equal(t, uint64(4), s.Misses)
	require.Equal(t, uint64(2), s.EntriesCount)
	require.Equal(t, uint64(24+105), s.BytesSize)
	require.Zero(t, s.DelCalls+s.Collisions+s.Corruptions+s.EvictedEntries+s.EvictedBytes)
	require.GreaterOrEqual(t, s.ReservedBytes, s.BytesSize+s.IndexBytes)
	require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
	require.NotZero(t, s.IndexBytes)

	c.Del(b)
	c.Del(none)
	s = stats(c)
	require.Equal(t, uint64(2), s.DelCalls)
	require.Equal(t, uint64(1), s.EntriesCount)
	require.Equal(t, uint64(24), s.BytesSize)
	require.Zero(t, s.EvictedEntries, "a deleted entry is not evicted")

	twice := s
	c.UpdateStats(&twice) // adds
	require.Equal(t, 2*s.GetCalls, twice.GetCalls)
	require.Equal(t, 2*s.MaxBytesSize, twice.MaxBytesSize)
	twice.Reset()
	require.Equal(t, ringcache.Stats{}, twice)

	c.Reset()
	after := stats(c)
	require.Equal(t, s.GetCalls, after.GetCalls, "Reset leaves the counters")
	require.Equal(t, s.SetCalls, after.SetCalls)
	require.Zero(t, after.EntriesCount+after.BytesSize+after.EvictedEntries)
}

// What went in is either still there or was evicted, to the entry and to the
// byte.
func TestContract_EvictionIsCounted(t *testing.T) {
	c := small(t)
	const n, size = 200_000, 300
	for i := range n {
		require.NoError(t, c.Set([]byte(fmt.Sprintf("%08d", i)), make([]byte, size)))
	}
	s := stats(c)
	require.NotZero(t, s.EvictedEntries)
	require.Equal(t, uint64(n), s.EntriesCount+s.EvictedEntries)
	require.Equal(t, uint64(n*(3+8+size)), s.BytesSize+s.EvictedBytes)
	require.Equal(t, int(s.EntriesCount), c.Len())
	live := 0
	for i := range n {
		if c.Has([]byte(fmt.Sprintf("%08d", i))) {
			live++
		}
	}
	require.Equal(t, c.Len(), live)
}
