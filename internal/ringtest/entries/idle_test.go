package entries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// idleTime is Options.ExpireAfterAccess of the caches here.
const idleTime = 10 * time.Second

func newIdle(t testing.TB, change func(g *ringtest.Shape)) (*ringcache.Cache, *time.Duration) {
	g := ringtest.Default(ringtest.MinBytes)
	g.ExpireAfterAccess = idleTime
	if change != nil {
		change(&g)
	}
	return ringtest.TimedCache(t, g)
}

// left returns how long an entry still has to live, 0 if it is not there.
func left(t testing.TB, c *ringcache.Cache, k string) time.Duration {
	t.Helper()
	d, _ := c.TTL([]byte(k))
	return d
}

// idleReads are the calls that read an entry. Each reports whether it has found it.
var idleReads = map[string]func(c *ringcache.Cache, k []byte) bool{
	"Get":    func(c *ringcache.Cache, k []byte) bool { return c.Get(nil, k) != nil },
	"HasGet": func(c *ringcache.Cache, k []byte) bool { _, ok := c.HasGet(nil, k); return ok },
	"Has":    func(c *ringcache.Cache, k []byte) bool { return c.Has(k) },
	"View":   func(c *ringcache.Cache, k []byte) bool { return ringtest.View(c, k, func([]byte) {}) },
	"GetWithTTL": func(c *ringcache.Cache, k []byte) bool {
		_, left, ok := c.GetWithTTL(nil, k)
		return ok && left > idleTime/2
	},
	"GetBatch": func(c *ringcache.Cache, k []byte) bool {
		_, n := c.GetBatch(nil, [][]byte{[]byte("another"), k}, make([][]byte, 2))
		return n == 1
	},
	"GetOrLoad": func(c *ringcache.Cache, k []byte) bool {
		_, err := c.GetOrLoad(context.Background(), nil, k, failingLoad)
		return err == nil
	},
	"GetOrLoadBatch": func(c *ringcache.Cache, k []byte) bool {
		_, n, err := c.GetOrLoadBatch(context.Background(), nil, [][]byte{k}, make([][]byte, 1),
			ringtest.OfOne(failingLoad))
		return n == 1 && err == nil
	},
	"into the key's array": func(c *ringcache.Cache, k []byte) bool {
		dst := append(make([]byte, 0, 100), k...)
		out, ok := c.HasGet(dst[:0], dst)
		return ok && len(out) > 0
	},
	"Typed": func(c *ringcache.Cache, k []byte) bool {
		v := ringcache.NewTyped[string](c, codec.Bytes[[]byte](), ringcache.TypedOptions{})
		_, ok, _ := v.Get(string(k))
		return ok
	},
	"SetIfAbsent": func(c *ringcache.Cache, k []byte) bool {
		stored, err := ringtest.SetIfAbsent(c, k, nil)
		return !stored && err == nil
	},
	"SetIfAbsent with a TTL": func(c *ringcache.Cache, k []byte) bool {
		_, stored, err := c.SetIfAbsent(nil, k, nil, time.Hour)
		return !stored && err == nil
	},
	"SetIfChanged": func(c *ringcache.Cache, k []byte) bool {
		v, _ := c.Peek(nil, k)
		changed, err := c.SetIfChanged(k, v)
		return !changed && err == nil
	},
	"CompareAndSwap": func(c *ringcache.Cache, k []byte) bool {
		swapped, err := c.CompareAndSwap(k, []byte("none"), nil)
		return !swapped && err == nil && len(k) > 0
	},
}

func failingLoad(context.Context, []byte) ([]byte, time.Duration, error) {
	return nil, 0, errors.New("there is nothing to load")
}

// A read in the second half of the idle time begins it anew; one in the first half does not.
func TestIdle_ReadsInTheSecondHalfBeginItAnew(t *testing.T) {
	for _, size := range []int{1, 20_000, 40_000, floorValue} { // short, long, and large
		for name, read := range idleReads {
			c, age := newIdle(t, nil)
			k := []byte("k")
			require.NoError(t, c.Set(k, make([]byte, size)))
			*age += idleTime/2 - clock.Tick
			require.True(t, read(c, k), name)
			assert.Equal(t, idleTime/2+clock.Tick, left(t, c, "k"), "%s of %d bytes", name, size)
			*age += clock.Tick
			require.True(t, read(c, k), name)
			assert.Equal(t, idleTime, left(t, c, "k"), "%s of %d bytes", name, size)
			*age += idleTime - clock.Tick
			require.True(t, read(c, k), name)
			*age += idleTime
			require.False(t, c.Has(k), name)
			require.NoError(t, ringtest.Validate(c))
			ringtest.CloseCache(t, c)
		}
	}
}

// Calls that leave no trace with the policy do not put off the expiry.
func TestIdle_OthersLeaveIt(t *testing.T) {
	for _, size := range []int{1, floorValue} {
		c, age := newIdle(t, nil)
		k := []byte("k")
		require.NoError(t, c.Set(k, make([]byte, size)))
		*age += idleTime - clock.Tick
		_, ok := c.Peek(nil, k)
		require.True(t, ok)
		require.Len(t, slices.Collect(c.Keys()), 1)
		for range c.All() {
		}
		_, err := c.WriteSnapshot(io.Discard)
		require.NoError(t, err)
		require.Equal(t, clock.Tick, left(t, c, "k"))
		*age += clock.Tick
		_, ok = c.Peek(nil, k)
		require.False(t, ok)
	}
}

// Of the TTL and the idle time, the earlier end counts, however often the entry is read.
func TestIdle_TheEarlierDeadlineWins(t *testing.T) {
	for _, size := range []int{1, 40_000, floorValue} {
		for _, ttl := range []time.Duration{3 * time.Second, idleTime, 25 * time.Second} {
			c, age := newIdle(t, func(g *ringtest.Shape) { g.TTL = ttl })
			k, v := []byte("k"), make([]byte, size)
			require.NoError(t, c.Set(k, v))
			require.NoError(t, c.SetWithTTL([]byte("own"), v, ttl-time.Second))
			end := *age + ttl
			for *age < end-clock.Tick {
				require.True(t, c.Has(k), "of %v, %v before the end", ttl, end-*age)
				require.Equal(t, end-*age > time.Second, c.Has([]byte("own")))
				require.LessOrEqual(t, left(t, c, "k"), min(idleTime, end-*age))
				*age += clock.Tick
			}
			require.Equal(t, clock.Tick, left(t, c, "k"))
			*age += clock.Tick
			require.False(t, c.Has(k))
			require.NoError(t, ringtest.Validate(c))
			require.NoError(t, c.Set(k, v))
			*age += min(ttl, idleTime)
			require.False(t, c.Has(k), "it was not read")
			ringtest.CloseCache(t, c)
		}
	}
}

// Readers that put off the expiry of a key, at once, all find it.
func TestIdle_ConcurrentReaders(t *testing.T) {
	const readers, each = 4, 3000
	var age atomic.Int64
	g := ringtest.Tiny(1, 1024, 64)
	g.ExpireAfterAccess = idleTime
	g.Elapsed = func() time.Duration { return time.Duration(age.Load()) }
	c := ringtest.MustCache(t, g)
	k, v := []byte("k"), bytes.Repeat([]byte("value"), 30)
	require.NoError(t, c.Set(k, v))
	var wg sync.WaitGroup
	for range readers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var dst []byte
			for range each {
				if dst = c.Get(dst[:0], k); !assert.Equal(t, v, dst) {
					return
				}
				age.Add(int64(idleTime / (4 * readers))) // less than half before all read again
			}
		}()
	}
	wg.Wait()
	require.NoError(t, ringtest.Validate(c))
}

// Where the TTL ends before the idle time, there is nothing to put off, and a read takes no lock.
func TestIdle_ReadAtTheLastDeadlineTakesNoLock(t *testing.T) {
	c, age := newIdle(t, nil)
	k := []byte("k")
	require.NoError(t, c.SetWithTTL(k, []byte("v"), 4*time.Second))
	*age += time.Second
	require.True(t, c.Has(k))
	require.Zero(t, ringtest.Counters(c).Sum().Locked)
	require.NoError(t, c.SetWithTTL(k, []byte("v"), time.Minute))
	*age += idleTime - clock.Tick
	require.True(t, c.Has(k))
	require.EqualValues(t, 1, ringtest.Counters(c).Sum().Locked)
	require.True(t, c.Has(k))
	require.EqualValues(t, 1, ringtest.Counters(c).Sum().Locked)
}

// A write begins the idle time anew. Those that keep the expiry keep the end of the TTL.
func TestIdle_WritesBeginItAnew(t *testing.T) {
	for _, size := range []int{1, 40_000, floorValue - 1} {
		for name, write := range map[string]func(c *ringcache.Cache, k, v []byte) (ttl time.Duration){
			"Set": func(c *ringcache.Cache, k, v []byte) time.Duration {
				_ = c.Set(k, v)
				return 0
			},
			"SetWithTTL": func(c *ringcache.Cache, k, v []byte) time.Duration {
				_ = c.SetWithTTL(k, v, 14*time.Second)
				return 14 * time.Second
			},
			"Touch": func(c *ringcache.Cache, k, _ []byte) time.Duration {
				c.Touch(k, 14*time.Second)
				return 14 * time.Second
			},
			"Touch for ever": func(c *ringcache.Cache, k, v []byte) time.Duration {
				c.Touch(k, 0)
				return 0
			},
			"Append": func(c *ringcache.Cache, k, v []byte) time.Duration {
				_ = c.Update(k, ringtest.Append([]byte{1}))
				return 11 * time.Second
			},
			"CompareAndSwap": func(c *ringcache.Cache, k, v []byte) time.Duration {
				_, _ = c.CompareAndSwap(k, v, nil)
				return 11 * time.Second
			},
			"SetIfChanged": func(c *ringcache.Cache, k, v []byte) time.Duration {
				_, _ = c.SetIfChanged(k, nil)
				return 11 * time.Second
			},
		} {
			c, age := newIdle(t, nil)
			k, v := []byte("k"), make([]byte, size)
			require.NoError(t, c.SetWithTTL(k, v, 15*time.Second))
			*age += 4 * time.Second
			ttl := write(c, k, v)
			require.Equal(t, idleTime, left(t, c, "k"), name)
			*age += 6 * time.Second
			require.True(t, c.Has(k), name)
			want := idleTime
			if ttl != 0 {
				want = ttl - 6*time.Second
			}
			require.Equal(t, want, left(t, c, "k"), "%s of %d bytes", name, size)
			require.NoError(t, ringtest.Validate(c))
			ringtest.CloseCache(t, c)
		}
	}
}

// Reads that put off an expiry neither allocate nor move a record.
func TestIdle_RenewingDoesNotAllocate(t *testing.T) {
	c, age := newIdle(t, nil)
	k, dst := []byte("k"), make([]byte, 0, 100)
	require.NoError(t, c.Set(k, make([]byte, 100)))
	before := ringtest.StatsOf(c)
	ringtest.ZeroAllocs(t, "a renewing", "Get", func() {
		*age += idleTime / 2
		dst = c.Get(dst[:0], k)
	})
	require.Len(t, dst, 100)
	after := ringtest.StatsOf(c)
	require.Equal(t, before.BytesSize, after.BytesSize)
	require.Zero(t, after.Misses)
}

// An entry of the cold part keeps both deadlines, waiting or packed, and a read there puts off the
// first.
func TestIdle_ColdEntries(t *testing.T) {
	for _, in := range []policy.Ring{policy.Queue, policy.Cold} {
		p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, func(g *ringtest.Shape) {
			g.ExpireAfterAccess = idleTime
		})
		k, v := []byte("k"), ringtest.Text(1, 300)
		require.NoError(t, p.SetWithTTL(k, v, 17*time.Second))
		if p.Queue(t, k); in == policy.Cold {
			ringtest.CompressAll(p.Cache)
		}
		p.Now += 6 * time.Second
		require.Equal(t, 4*time.Second, left(t, p.Cache, "k"))
		require.Equal(t, v, p.Get(nil, k))
		require.Equal(t, idleTime, left(t, p.Cache, "k"))
		_, is := ringtest.Stored(p.Cache, k)
		require.Equal(t, in, is)
		require.NoError(t, ringtest.Validate(p.Cache))
		require.Equal(t, v, p.Get(nil, k), "which brings it back to main")
		_, is = ringtest.Stored(p.Cache, k)
		require.Equal(t, policy.Main, is)
		require.Equal(t, idleTime, left(t, p.Cache, "k"))
		p.Now += 6 * time.Second
		require.True(t, p.Has(k))
		require.Equal(t, 5*time.Second, left(t, p.Cache, "k"), "to the end of the TTL")
		require.NoError(t, ringtest.Validate(p.Cache))
	}
}

// Touch of a packed entry changes both deadlines where they lie.
func TestIdle_TouchOfAPackedEntry(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, func(g *ringtest.Shape) {
		g.ExpireAfterAccess = idleTime
	})
	k := []byte("k")
	p.SetPacked(t, k, func() error { return p.Set(k, ringtest.Text(1, 300)) })
	p.Now += 6 * time.Second
	require.True(t, p.Touch(k, 12*time.Second))
	_, in := ringtest.Stored(p.Cache, k)
	require.Equal(t, policy.Cold, in)
	require.Equal(t, idleTime, left(t, p.Cache, "k"))
	p.Now += 6 * time.Second
	require.True(t, p.Has(k))
	require.Equal(t, 6*time.Second, left(t, p.Cache, "k"))
}

// OnRemove is told that an idle entry has expired, and DeleteExpired counts it.
func TestIdle_IsAnExpiry(t *testing.T) {
	var told []ringcache.RemovalReason
	c, age := newIdle(t, func(g *ringtest.Shape) {
		g.OnRemove = func(gone ringcache.Removal) { told = append(told, gone.Reason) }
	})
	for _, k := range []string{"a", "b", "c"} {
		require.NoError(t, c.Set([]byte(k), nil))
	}
	*age += idleTime / 2
	require.True(t, c.Has([]byte("b")))
	*age += idleTime / 2
	require.Equal(t, 2, c.DeleteExpired())
	expired := ringcache.RemovedExpired
	require.Equal(t, []ringcache.RemovalReason{expired, expired}, told)
	require.EqualValues(t, 2, ringtest.StatsOf(c).ExpiredEntries)
	require.Equal(t, 1, c.Len())
}

// A namespace's entries have an idle time, its own record has none.
func TestIdle_Namespace(t *testing.T) {
	c, age := newIdle(t, nil)
	n := c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), []byte("v")))
	for range 5 {
		*age += idleTime / 2
		require.Equal(t, "v", string(n.Get(nil, []byte("k"))))
	}
	*age += idleTime
	require.False(t, n.Has([]byte("k")))
	require.NoError(t, n.Set([]byte("k"), []byte("new")))
	require.Equal(t, "new", string(n.Get(nil, []byte("k"))))
	require.NoError(t, ringtest.Validate(c))
}

// A negative entry expires after the idle time, however often it is asked for.
func TestIdle_NegativeEntry(t *testing.T) {
	c, age := newIdle(t, nil)
	loads := 0
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		loads++
		return nil, 0, ringcache.ErrAbsent
	}
	get := func() {
		_, err := c.GetOrLoad(t.Context(), nil, []byte("k"), load)
		require.ErrorIs(t, err, ringcache.ErrAbsent)
	}
	get()
	*age += idleTime * 3 / 4
	get()
	require.Equal(t, 1, loads)
	*age += idleTime / 4
	get()
	require.Equal(t, 2, loads)
}

// What is idle for too long stands in for a load that fails, but is not read by that.
func TestIdle_StaleIfError(t *testing.T) {
	c, age := newIdle(t, func(g *ringtest.Shape) { g.StaleIfError = 5 * time.Second })
	k := []byte("k")
	require.NoError(t, c.Set(k, []byte("v")))
	*age += idleTime
	for range 2 {
		v, err := c.GetOrLoad(t.Context(), nil, k, failingLoad)
		require.NoError(t, err)
		require.Equal(t, "v", string(v))
		require.False(t, c.Has(k))
		*age += 2 * time.Second
	}
	*age += time.Second
	_, err := c.GetOrLoad(t.Context(), nil, k, failingLoad)
	require.Error(t, err)
}

// An entry that is read in time is due by its TTL only.
func TestIdle_RefreshAhead(t *testing.T) {
	c, age := newIdle(t, func(g *ringtest.Shape) { g.RefreshAhead = 4 * time.Second })
	loaded := make(chan struct{}, 1)
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		loaded <- struct{}{}
		return []byte("new"), 0, nil
	}
	get := func(k string) {
		_, err := c.GetOrLoad(t.Context(), nil, []byte(k), load)
		require.NoError(t, err)
	}
	require.NoError(t, c.Set([]byte("idle"), nil))
	require.NoError(t, c.SetWithTTL([]byte("both"), nil, 18*time.Second))
	for range 2 {
		*age += 7 * time.Second
		get("idle")
		if *age < 14*time.Second {
			get("both")
		}
		require.Zero(t, ringtest.StatsOf(c).Loads.Started)
	}
	get("both")
	require.EqualValues(t, 1, ringtest.StatsOf(c).Loads.Started)
	<-loaded
}
