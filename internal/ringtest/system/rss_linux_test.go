package system

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

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

const (
	fullBytes = 64 << 20
	fullBound = fullBytes + fullBytes/20 + 16<<20

	// given back: what may stay of a cache that is closed or collected.
	goneBound = 8 << 20
)

func TestRSS_Fresh(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	for _, o := range []ringcache.Options{
		{MaxBytes: 1 << 30},
		{MaxBytes: 1 << 30, ExpectedEntries: math.MaxInt}, // the hint costs nothing yet
	} {
		before := ringtest.Rss(t)
		c, err := ringcache.NewWithOptions(o)
		if err != nil {
			require.NoError(t, err)
		}
		assert.Less(t, ringtest.Rss(t)-before, 4<<20, "bytes that a fresh cache of %+v added", o)
		runtime.KeepAlive(c)
	}
}

// fillOver sets new keys until half as much as fits has been evicted again:
// one and a half times the cache.
func fillOver(t *testing.T, c *ringcache.Cache, entry int) {
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
	entries := []int{32, 116, 1 << 10, 40 << 10}
	if *ringtest.LongRun {
		entries = append(entries, 16)
	}
	for _, entry := range entries {
		t.Run(fmt.Sprintf("entry=%d", entry), func(t *testing.T) {
			if !ringtest.InChild(t) {
				return
			}
			before := ringtest.Rss(t)
			c := ringcache.New(fullBytes)
			fillOver(t, c, entry)
			grown := ringtest.Rss(t) - before
			assert.LessOrEqual(t, grown, fullBound, "added by a full cache of %d bytes", fullBytes)
			assert.GreaterOrEqual(t, grown, fullBytes*3/4, "not filled, or not measured")
			ringtest.CloseCache(t, c)
			assert.LessOrEqual(t, ringtest.Rss(t)-before, goneBound,
				"bytes of %d are still there after Close", grown)
			runtime.KeepAlive(c)
		})
	}
}

// What one kind of entries leaves behind must serve the next: the bound holds
// for a cache that is filled with small entries, then large ones, emptied and
// filled again.
func TestRSS_ChangingSizes(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) {
		return
	}
	before := ringtest.Rss(t)
	c := ringcache.New(fullBytes)
	for round, entry := range []int{60, 40 << 10, 1 << 10, 2 << 20, 300} {
		fillOver(t, c, entry)
		assert.LessOrEqual(t, ringtest.Rss(t)-before, fullBound, "round %d, entries of %d bytes", round,
			entry)
		if round%2 == 1 {
			c.Reset()
		}
	}
	ringtest.CloseCache(t, c)
}

// Values that are a visible part of a chunk must not strand the rest of it.
func TestRSS_LargeValuesWasteLittle(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	c := ringcache.New(fullBytes)
	fillOver(t, c, 8+40_000)
	var s ringcache.Stats
	c.UpdateStats(&s)
	assert.GreaterOrEqual(t, s.BytesSize, uint64(fullBytes/10*9), "live bytes")
	ringtest.CloseCache(t, c)
}

// A cache that is made smaller gives what it does not need any more back to the
// operating system, and takes it again when it is made larger.
func TestRSS_Resized(t *testing.T) {
	t.Parallel()
	for _, entry := range []int{300, 40 << 10} {
		t.Run(fmt.Sprintf("entry=%d", entry), func(t *testing.T) {
			if !ringtest.InChild(t) {
				return
			}
			const large, smaller = 2 * fullBytes, fullBytes / 2
			before := ringtest.Rss(t)
			c := ringcache.New(large)
			for round := range 2 {
				fillOver(t, c, entry)
				assert.GreaterOrEqual(t, ringtest.Rss(t)-before, large*3/4,
					"round %d: not filled, or not measured", round)
				ringtest.MustResize(t, c, smaller)
				const most = smaller + smaller/10 + 8<<20
				assert.LessOrEqual(t, ringtest.Rss(t)-before, most, "round %d: resized to %d", round, smaller)
				fillOver(t, c, entry)
				assert.LessOrEqual(t, ringtest.Rss(t)-before, most, "round %d: filled again", round)
				ringtest.MustResize(t, c, large)
			}
			ringtest.CloseCache(t, c)
		})
	}
}

// A cache that nobody refers to any more gives its memory back without Close,
// also when its owner has set a finalizer.
func TestRSS_Dropped(t *testing.T) {
	if !ringtest.InChild(t) {
		return
	}
	before := ringtest.Rss(t)
	finalized := make(chan struct{})
	fillAndDrop(t, finalized)
	const patience = 30 * time.Second
	for from := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := ringtest.Rss(t) - before
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
	c := ringcache.New(fullBytes)
	runtime.SetFinalizer(c, func(*ringcache.Cache) { close(finalized) })
	fillOver(t, c, 1000)
}

// Programs lock their memory (mlockall) so that nothing of it is swapped. What the cache gives back
// must not stay for that.
func TestRSS_LockedMemory(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) {
		return
	}
	c := ringcache.New(fullBytes)
	fillOver(t, c, 1<<10)
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
		t.Skipf("the system does not let this process lock its memory: %v", err)
	}
	// What the runtime takes meanwhile is locked and resident too, so it counts against the rest.
	const runtimeBytes = 6 << 20
	full := ringtest.Rss(t)
	require.NoError(t, c.Resize(fullBytes/2))
	require.GreaterOrEqual(t, full-ringtest.Rss(t), fullBytes/2-goneBound-runtimeBytes,
		"bytes that Resize has given back")
	ringtest.CloseCache(t, c)
	require.GreaterOrEqual(t, full-ringtest.Rss(t), fullBytes-goneBound-runtimeBytes,
		"bytes that are given back in all")
}
