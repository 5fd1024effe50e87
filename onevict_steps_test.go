package ringcache

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// thwarted returns a full cache of 64 MB whose OnEvict calls stop while *on.
func thwarted(t *testing.T, stop func()) (c *Cache, on *bool) {
	t.Helper()
	on = new(bool)
	c, err := NewWithOptions(Options{MaxBytes: 2 * minMaxBytes, OnEvict: func(_, _ []byte, _ Reason) {
		if *on {
			stop()
		}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { closeCache(t, c) })
	for i := range 64 {
		require.NoError(t, c.Set([]byte(strconv.Itoa(i)), make([]byte, 1<<20)))
	}
	return c, on
}

// An OnEvict that does not return cuts a Resize short. The next one does the rest.
func TestOnEvict_ThatDoesNotReturnFromResize(t *testing.T) {
	for name, stop := range map[string]func(){
		"panic":  func() { panic("mine") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			c, on := thwarted(t, stop)
			returned, done := false, make(chan struct{})
			*on = true
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = c.Resize(minMaxBytes)
				returned = true
			}()
			<-done
			require.False(t, returned, "nothing had to go: the test proves nothing")
			*on = false
			require.NoError(t, inTime(func() error { return c.Resize(minMaxBytes) }))
			var s Stats
			c.UpdateStats(&s)
			require.EqualValues(t, minMaxBytes, s.MaxBytesSize)
			require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
			require.NoError(t, c.validate())
		})
	}
}

// Reset copies what OnEvict is to be told in steps, so that a bucket's lock is not held,
// and the Go heap not filled, for all of a large bucket.
func TestOnEvict_IsToldOfAResetInSteps(t *testing.T) {
	const stepEntries, stepBytes = 256, 64 << 10
	for _, tt := range []struct{ buckets, size int }{
		{1, 0}, {1, 100}, {1, 1000}, {1, 200_000},
		{64, 200_000}, // these are large
	} {
		t.Run(fmt.Sprintf("%d bytes, %d buckets", tt.size, tt.buckets), func(t *testing.T) {
			var c *Cache
			size := tt.size
			told, most, entries, inReset := 0, 0, 0, false
			g := tiny(tt.buckets, 4096, 8192/tt.buckets)
			g.onEvict = func(_, _ []byte, reason Reason) {
				if inReset {
					require.Equal(t, EvictReset, reason)
					most = max(most, entries-told-c.Len()) // gone, and not told yet
					told++
				}
			}
			c = mustCache(t, g)
			fillCache(t, c, 0, min(4000, 16<<20/(size+16)), size)
			entries, inReset = c.Len(), true
			c.Reset()
			inReset = false
			require.Equal(t, entries, told)
			require.Zero(t, c.Len())
			require.LessOrEqual(t, most, min(stepEntries, stepBytes/(size+8)+2),
				"entries that have left and that OnEvict has not been told of")
		})
	}
}

// An OnEvict that sets what is reset again, or anybody who keeps setting, does not
// keep Reset from ending.
func TestReset_EndsWhileOnEvictSetsAgain(t *testing.T) {
	const entries = 600
	g := tiny(1, 1024, 256)
	var c *Cache
	calls := 0
	g.onEvict = func(k, v []byte, r Reason) {
		if r != EvictReset {
			return
		}
		if calls++; calls > 100*entries {
			panic("endless")
		}
		_ = c.Set(k, v)
	}
	c = mustCache(t, g)
	for i := range entries {
		require.NoError(t, c.Set(strconv.AppendInt(nil, int64(i), 10), []byte("v")))
	}
	require.NotPanics(t, c.Reset)
	require.GreaterOrEqual(t, calls, entries)
}

// A cache is collected though its OnEvict refers to it.
func TestOnEvict_MayReferToItsCache(t *testing.T) {
	gone := make(chan struct{})
	func() {
		var c *Cache
		onEvict := func(_, _ []byte, _ Reason) { c.Len() }
		c, err := NewWithOptions(Options{MaxBytes: 1 << 20, OnEvict: onEvict})
		require.NoError(t, err)
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
		runtime.AddCleanup(c, func(int) { close(gone) }, 0)
	}()
	for range 1000 {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("not collected")
}
