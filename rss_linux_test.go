package ringcache

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	fullBytes = 64 << 20
	fullBound = fullBytes + fullBytes/20 + 16<<20

	// given back: what may stay of a cache that is closed or collected.
	goneBound = 8 << 20
)

func TestRSS_Fresh(t *testing.T) {
	if !inChild(t) {
		return
	}
	for _, o := range []Options{
		{MaxBytes: 1 << 30},
		{MaxBytes: 1 << 30, ExpectedEntries: math.MaxInt}, // the hint costs nothing yet
	} {
		before := rss(t)
		c, err := NewWithOptions(o)
		if err != nil {
			require.NoError(t, err)
		}
		assert.Less(t, rss(t)-before, 4<<20, "bytes that a fresh cache of %+v added", o)
		runtime.KeepAlive(c)
	}
}

// fillOver sets new keys until half as much as fits has been evicted again:
// one and a half times the cache.
func fillOver(t *testing.T, c *Cache, entry int) {
	t.Helper()
	value := make([]byte, entry-8)
	for i := range value {
		value[i] = byte(i)
	}
	var key [8]byte
	from := c.Stats().EvictedBytes
	for i := uint64(0); ; i++ {
		if i%10_000 == 0 || entry > 10_000 && i%100 == 0 {
			if s := c.Stats(); s.EvictedBytes-from >= fullBytes/2 {
				return
			}
		}
		if i*uint64(entry) > 8*fullBytes {
			require.Fail(t, "not full", "%d entries of %d bytes: %v", i, entry, c.Stats())
		}
		binary.LittleEndian.PutUint64(key[:], i)
		if err := c.Set(key[:], value); err != nil {
			require.NoError(t, err)
		}
	}
}

func TestRSS_Full(t *testing.T) {
	t.Parallel()
	for _, entry := range []int{16, 116, 1 << 10, 40 << 10} {
		t.Run(fmt.Sprintf("entry=%d", entry), func(t *testing.T) {
			if !inChild(t) {
				return
			}
			before := rss(t)
			c := New(fullBytes)
			fillOver(t, c, entry)
			grown := rss(t) - before
			assert.LessOrEqual(t, grown, fullBound, "added by a full cache of %d bytes", fullBytes)
			assert.GreaterOrEqual(t, grown, fullBytes*3/4, "not filled, or not measured")
			closeCache(t, c)
			assert.LessOrEqual(t, rss(t)-before, goneBound, "bytes of %d are still there after Close", grown)
			runtime.KeepAlive(c)
		})
	}
}

// What one kind of entries leaves behind must serve the next: the bound holds
// for a cache that is filled with small entries, then large ones, emptied and
// filled again.
func TestRSS_ChangingSizes(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	before := rss(t)
	c := New(fullBytes)
	for round, entry := range []int{60, 40 << 10, 1 << 10, 2 << 20, 300} {
		fillOver(t, c, entry)
		assert.LessOrEqual(t, rss(t)-before, fullBound, "round %d, entries of %d bytes", round, entry)
		if round%2 == 1 {
			c.Reset()
		}
	}
	closeCache(t, c)
}

// Values that are a visible part of a chunk must not strand the rest of it.
func TestRSS_LargeValuesWasteLittle(t *testing.T) {
	if !inChild(t) {
		return
	}
	c := New(fullBytes)
	fillOver(t, c, 8+40_000)
	var s Stats
	c.UpdateStats(&s)
	assert.GreaterOrEqual(t, s.BytesSize, uint64(fullBytes/10*9), "live bytes")
	closeCache(t, c)
}

// A cache that is made smaller gives what it does not need any more back to the
// operating system, and takes it again when it is made larger.
func TestRSS_Resized(t *testing.T) {
	t.Parallel()
	for _, entry := range []int{150, 40 << 10} {
		t.Run(fmt.Sprintf("entry=%d", entry), func(t *testing.T) {
			if !inChild(t) {
				return
			}
			const large, smaller = 3 * fullBytes, fullBytes / 2
			before := rss(t)
			c := New(large)
			for round := range 2 {
				fillOver(t, c, entry)
				assert.GreaterOrEqual(t, rss(t)-before, large*3/4,
					"round %d: not filled, or not measured", round)
				mustResize(t, c, smaller)
				const most = smaller + smaller/10 + 8<<20
				assert.LessOrEqual(t, rss(t)-before, most, "round %d: resized to %d", round, smaller)
				fillOver(t, c, entry)
				assert.LessOrEqual(t, rss(t)-before, most, "round %d: filled again", round)
				mustResize(t, c, large)
			}
			closeCache(t, c)
		})
	}
}

// A cache that nobody refers to any more gives its memory back without Close,
// also when its owner has set a finalizer.
func TestRSS_Dropped(t *testing.T) {
	if !inChild(t) {
		return
	}
	before := rss(t)
	finalized := make(chan struct{})
	fillAndDrop(t, finalized)
	const patience = 30 * time.Second
	for from := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := rss(t) - before
		if left < goneBound {
			break
		}
		require.Less(t, time.Since(from), patience, "%d bytes of a dropped cache are still there", left)
	}
	select {
	case <-finalized:
	case <-time.After(patience):
		require.Fail(t, "the owner's finalizer did not run")
	}
}

//go:noinline
func fillAndDrop(t *testing.T, finalized chan struct{}) {
	c := New(fullBytes)
	runtime.SetFinalizer(c, func(*Cache) { close(finalized) })
	fillOver(t, c, 1000)
}

// Programs lock their memory (mlockall) so that nothing of it is swapped. What the cache gives back
// must not stay for that.
func TestRSS_LockedMemory(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	c := New(fullBytes)
	fillOver(t, c, 1<<10)
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
		t.Skipf("the system does not let this process lock its memory: %v", err)
	}
	// What the runtime takes meanwhile is locked and resident too, so it counts against the rest.
	const runtimeBytes = 4 << 20
	full := rss(t)
	require.NoError(t, c.Resize(fullBytes/2))
	require.GreaterOrEqual(t, full-rss(t), fullBytes/2-goneBound-runtimeBytes,
		"bytes that Resize has given back")
	closeCache(t, c)
	require.GreaterOrEqual(t, full-rss(t), fullBytes-goneBound-runtimeBytes,
		"bytes that are given back in all")
}
