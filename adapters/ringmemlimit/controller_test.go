package ringmemlimit

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func newCache(t *testing.T) *ringcache.Cache {
	cache := ringcache.New(int(smallestCache()))
	t.Cleanup(func() { cache.Close() })
	return cache
}

// keepHeapLimit gives the test program its GOMEMLIMIT back at the end of a test.
func keepHeapLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}

// startHere starts a controller on this machine.
func startHere(t *testing.T, cache *ringcache.Cache, o Options) *Controller {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the package works on Linux")
	}
	c, err := Start(cache, o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestStart_OnThisMachine(t *testing.T) {
	keepHeapLimit(t)
	before := debug.SetMemoryLimit(-1)
	cache := newCache(t)
	c := startHere(t, cache, Options{MaxBytes: 64 << 20})
	s := c.Stats()
	require.EqualValues(t, s.CacheBound, cache.Stats().MaxBytesSize)
	require.LessOrEqual(t, s.CacheBound, int64(64<<20))
	require.Equal(t, s.HeapLimit, debug.SetMemoryLimit(-1))
	require.Greater(t, s.Limit, s.Rest)
	require.GreaterOrEqual(t, s.Rest, heapInUse()/2)

	_, err := Start(newCache(t), Options{})
	require.ErrorIs(t, err, ErrRunning)
	require.ErrorContains(t, err, "ringmemlimit: start controller: ")

	c.Close()
	require.Equal(t, s.HeapLimit, debug.SetMemoryLimit(-1), "it stays")
	again := startHere(t, newCache(t), Options{MaxBytes: 32 << 20})
	require.Less(t, again.Stats().HeapLimit, before)
	require.Equal(t, before, heapLimit.user, "it does not bind a later controller")
}

func TestStart_KeepsTheUsersHeapLimit(t *testing.T) {
	keepHeapLimit(t)
	debug.SetMemoryLimit(50 << 20)
	c := startHere(t, newCache(t), Options{MaxBytes: 32 << 20})
	require.EqualValues(t, 50<<20, c.Stats().HeapLimit)
	require.EqualValues(t, 50<<20, debug.SetMemoryLimit(-1))
}

// A controller does not keep a cache that nobody uses.
func TestStart_LetsTheCacheGo(t *testing.T) {
	keepHeapLimit(t)
	c := startHere(t, ringcache.New(int(smallestCache())), Options{MaxBytes: 32 << 20})
	ended := func() bool {
		runtime.GC()
		select {
		case <-c.done:
			return true
		default:
			return false
		}
	}
	require.Eventually(t, ended, time.Minute, time.Millisecond)
}

func TestStart_InvalidOptions(t *testing.T) {
	keepHeapLimit(t)
	cache, before := newCache(t), debug.SetMemoryLimit(-1)
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{Share: 1}, "Share is 1, must be above 0 and below 1"},
		{Options{Share: -0.1}, "Share is -0.1, must be"},
		{Options{Share: math.NaN()}, "Share is NaN, must be"},
		{Options{MinBytes: -1}, "MinBytes is -1 and MaxBytes 0, must not be negative"},
		{Options{MaxBytes: -1}, "MinBytes is 0 and MaxBytes -1, must not be negative"},
		{Options{MaxBytes: 1 << 20}, "MaxBytes is 1048576, must be at least MinBytes, 33554432"},
		{Options{MinBytes: math.MaxInt, MaxBytes: math.MaxInt}, "MinBytes is"},
	} {
		if runtime.GOOS != "linux" {
			t.Skip("the package works on Linux")
		}
		_, err := Start(cache, test.o)
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.ErrorContains(t, err, test.want)
		require.Equal(t, before, debug.SetMemoryLimit(-1))
		require.Equal(t, smallestCache(), cache.Stats().MaxBytesSize)
	}
}

func TestStart_CacheThatGivesNothingBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the package works on Linux")
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_, err := Start(cache, Options{})
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	require.ErrorContains(t, err, "cache has 33554432 bytes, must have at least")
}

func TestStart_Namespace(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the package works on Linux")
	}
	cache := ringcache.New(64 << 20)
	defer cache.Close()
	_, err := Start(cache.Namespace("n"), Options{})
	require.ErrorIs(t, err, ringcache.ErrNamespace)
}

func TestStart_NilCache(t *testing.T) {
	require.PanicsWithValue(t, "ringmemlimit: start controller: cache is nil",
		func() { _, _ = Start(nil, Options{}) })
}

// Each collection is told, at the latest by the one after it, until stop.
func TestCollections(t *testing.T) {
	g := newCollections()
	for range 3 {
		told := func() bool {
			runtime.GC()
			select {
			case <-g.c:
				return true
			default:
				return false
			}
		}
		require.Eventually(t, told, time.Minute, time.Millisecond)
	}
	g.stop()
}
