package entries

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// thwarted returns a full cache of 64 MB whose OnRemove calls stop while *on.
func thwarted(t *testing.T, stop func()) (c *ringcache.Cache, on *bool) {
	t.Helper()
	on = new(bool)
	onRemove := func(ringcache.Removal) {
		if *on {
			stop()
		}
	}
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 2 * ringtest.MinBytes,
		OnRemove: onRemove})
	require.NoError(t, err)
	t.Cleanup(func() { ringtest.CloseCache(t, c) })
	for i := range 64 {
		require.NoError(t, c.Set([]byte(strconv.Itoa(i)), make([]byte, 1<<20)))
	}
	return c, on
}

// An OnRemove that does not return cuts a Resize short. The next one does the rest.
func TestOnRemove_ThatDoesNotReturnFromResize(t *testing.T) {
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
				_ = c.Resize(ringtest.MinBytes)
				returned = true
			}()
			<-done
			require.False(t, returned, "nothing had to go: the test proves nothing")
			*on = false
			require.NoError(t, ringtest.InTime(func() error { return c.Resize(ringtest.MinBytes) }))
			var s ringcache.Stats
			c.UpdateStats(&s)
			require.EqualValues(t, ringtest.MinBytes, s.MaxBytesSize)
			require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
			require.NoError(t, ringtest.Validate(c))
		})
	}
}

// Reset copies what OnRemove is to be told in steps, so that a bucket's lock is not held,
// and the Go heap not filled, for all of a large bucket.
func TestOnRemove_IsToldOfAResetInSteps(t *testing.T) {
	const stepEntries, stepBytes = 256, 64 << 10
	for _, tt := range []struct{ buckets, size int }{
		{1, 0}, {1, 100}, {1, 1000}, {1, 200_000},
		{64, 200_000}, // these are large
	} {
		t.Run(fmt.Sprintf("%d bytes, %d buckets", tt.size, tt.buckets), func(t *testing.T) {
			var c *ringcache.Cache
			size := tt.size
			told, most, entries, inReset := 0, 0, 0, false
			g := ringtest.Tiny(tt.buckets, 4096, 8192/tt.buckets)
			g.OnRemove = func(gone ringcache.Removal) {
				if inReset {
					require.Equal(t, ringcache.RemovedReset, gone.Reason)
					most = max(most, entries-told-c.Len()) // gone, and not told yet
					told++
				}
			}
			c = ringtest.MustCache(t, g)
			ringtest.FillCache(t, c, 0, min(4000, 16<<20/(size+16)), size)
			entries, inReset = c.Len(), true
			c.Reset()
			inReset = false
			require.Equal(t, entries, told)
			require.Zero(t, c.Len())
			require.LessOrEqual(t, most, min(stepEntries, stepBytes/(size+8)+2),
				"removed entries that OnRemove has not been told of")
		})
	}
}

// An OnRemove that sets what is reset again, or anybody who keeps setting, does not
// keep Reset from ending.
func TestReset_EndsWhileOnRemoveSetsAgain(t *testing.T) {
	const entries = 600
	g := ringtest.Tiny(1, 1024, 256)
	var c *ringcache.Cache
	calls := 0
	g.OnRemove = func(gone ringcache.Removal) {
		if gone.Reason != ringcache.RemovedReset {
			return
		}
		if calls++; calls > 100*entries {
			panic("endless")
		}
		_ = c.Set(gone.Key, gone.Value)
	}
	c = ringtest.MustCache(t, g)
	for i := range entries {
		require.NoError(t, c.Set(strconv.AppendInt(nil, int64(i), 10), []byte("v")))
	}
	require.NotPanics(t, c.Reset)
	require.GreaterOrEqual(t, calls, entries)
}

// A cache is collected though its OnRemove refers to it.
func TestOnRemove_MayReferToItsCache(t *testing.T) {
	gone := make(chan struct{})
	func() {
		var c *ringcache.Cache
		onRemove := func(ringcache.Removal) { c.Len() }
		c, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: ringtest.MinBytes, OnRemove: onRemove,
		})
		require.NoError(t, err)
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
		runtime.AddCleanup(c, func(int) { close(gone) }, 0)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, ringtest.HangLimit, time.Millisecond, "not collected")
}

// What a call gathers for OnRemove is on the Go heap, outside the bound: it is told in steps,
// whichever entries have to leave, and for whatever.
func TestOnRemove_IsToldInSteps(t *testing.T) {
	ringtest.SkipUnderRace(t) // one goroutine does it
	t.Parallel()
	const maxBytes = ringtest.MinBytes
	const ofShort = maxBytes / 4 // fewer of them have the same effect
	large := make([]byte, maxBytes/16)
	set := func(c *ringcache.Cache, n, size int) error {
		for i := range n {
			if err := c.Set(strconv.AppendInt([]byte("new"), int64(i), 10), large[:size]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, tt := range []struct {
		name string
		size int // of the values that fill the cache
		ttl  time.Duration
		call func(c *ringcache.Cache) error
	}{
		{"large among short", 0, 0, func(c *ringcache.Cache) error { return set(c, 8, ofShort/16) }},
		{"large among longer", 1000, 0, func(c *ringcache.Cache) error { return set(c, 8, len(large)) }},
		{"large among large", 40_000, 0, func(c *ringcache.Cache) error { return set(c, 3, len(large)) }},
		{"short among large", 40_000, 0, func(c *ringcache.Cache) error { return set(c, 50_000, 100) }},
		{"a large entry of a snapshot", 0, 0, func(c *ringcache.Cache) error {
			from := ringcache.New(maxBytes)
			defer from.Close()
			var saved bytes.Buffer
			if err := set(from, 8, ofShort/16); err != nil {
				return err
			}
			if _, err := from.WriteSnapshot(&saved); err != nil {
				return err
			}
			_, err := c.ReadSnapshot(&saved)
			return err
		}},
		{"DeleteExpired of large ones", 40_000, clock.Tick, func(c *ringcache.Cache) error {
			c.DeleteExpired()
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c *ringcache.Cache
			var now time.Duration
			listening, told, gathered, before, sets := false, 0, 0, 0, uint64(0)
			toldBytes, gatheredBytes, evicted := 0, 0, uint64(0) // of entries that are evicted
			bound := maxBytes
			if tt.size == 0 {
				bound = ofShort
			}
			g := ringtest.Default(bound)
			g.Elapsed, g.TTL = func() time.Duration { return now }, tt.ttl
			g.OnRemove = func(gone ringcache.Removal) {
				if listening {
					if told%64 == 0 { // a look at all buckets takes a while
						var s ringcache.Stats
						c.UpdateStats(&s)
						came := int(s.SetCalls-sets) + int(s.RestoredEntries)
						gathered = max(gathered, before+came-told-int(s.EntriesCount))
						gatheredBytes = max(gatheredBytes, int(s.EvictedBytes-evicted)-toldBytes)
					}
					told++
					if gone.Reason == ringcache.RemovedEvicted {
						k, v := len(gone.Key), len(gone.Value)
						toldBytes += record.Form(0).HeaderSize(record.Value, k, v, 0) + k + v
					}
				}
			}
			c = ringtest.MustCache(t, g)
			ringtest.FillCache(t, c, 0, min(2_200_000/4, 2*bound/(tt.size+16)), tt.size)
			var s ringcache.Stats
			c.UpdateStats(&s)
			before, sets, evicted = int(s.EntriesCount), s.SetCalls, s.EvictedBytes
			listening = true
			now += 2 * clock.Tick
			require.NoError(t, tt.call(c))
			require.Greater(t, told, 20, "too little has left")
			each := tt.size + 8
			if ringtest.Shared(c).Compression != nil {
				each = 8 // compressed values are gathered as they are, and decompressed one at a time
			}
			// A bucket's step may be added to what others gave short of one. A large record takes its
			// room from others of its bucket at once.
			most := min(2*store.StepRecords, 2*store.StepBytes/each+3)
			if ringtest.Shared(c).Compression != nil {
				most += store.StepRecords // the small bucket of the key gives last, and has a cold part
			}
			switch tt.name {
			case "large among large":
				most += len(large) / each
			case "short among large": // takes memory from all buckets while its own is locked
				require.LessOrEqual(t, gatheredBytes, 2*store.StepBytes+3*tt.size) // never compressed
				most = 4 * store.StepRecords                                       // some of these are short
			}
			require.LessOrEqual(t, gathered, most)
		})
	}
}
