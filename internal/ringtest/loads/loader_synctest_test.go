//go:build go1.25

package loads

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// inBubble runs fn with a cache that has its own clock.
func inBubble(t *testing.T, o ringcache.Options, fn func(t *testing.T, c *ringcache.Cache)) {
	synctest.Test(t, func(t *testing.T) {
		o.MaxBytes = ringtest.MinBytes
		c, err := ringcache.NewWithOptions(o)
		require.NoError(t, err)
		defer ringtest.CloseCache(t, c)
		fn(t, c)
		synctest.Wait()
		require.NoError(t, ringtest.Validate(c))
	})
}

// slow returns a load that takes a while unless its context ends, and counts how
// often that was.
func slow(
	d time.Duration, r ringtest.Loaded,
) (load ringtest.LoadFunc, calls, cancelled *atomic.Int64) {
	calls, cancelled = new(atomic.Int64), new(atomic.Int64)
	return func(ctx context.Context, _ []byte) ([]byte, time.Duration, error) {
		calls.Add(1)
		select {
		case <-time.After(d):
			return r.Value, r.TTL, r.Err
		case <-ctx.Done():
			cancelled.Add(1)
			return nil, 0, ctx.Err()
		}
	}, calls, cancelled
}

func TestLoaderTime_Stampede(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		load, calls, cancelled := slow(time.Second, ringtest.Loaded{Value: []byte("value")})
		begin := time.Now()
		var all []<-chan ringtest.Reply
		for i := range 1000 { // they come while it is under way, and many give up
			patience := time.Duration(100+i%10*100)*time.Millisecond + time.Microsecond
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			all = append(all, ringtest.Ask(ctx, c, []byte("key"), load))
		}
		synctest.Wait()
		require.Equal(t, 1000, ringtest.Waiting(c, []byte("key")))
		for i, ch := range all {
			r := <-ch
			if i%10 < 9 {
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
				require.Equal(t, "ringcache: load entry: context deadline exceeded", r.Err.Error())
				continue
			}
			require.NoError(t, r.Err)
			require.Equal(t, "value", string(r.V))
		}
		require.Equal(t, time.Second, time.Since(begin))
		require.EqualValues(t, 1, calls.Load())
		require.Zero(t, cancelled.Load())
	})
}

// A caller that leaves does so at once, and its patience is its own: the first
// one's deadline does not end the load for the second.
func TestLoaderTime_FirstLeaves(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		type name struct{}
		k := []byte("key")
		ctx := context.WithValue(context.Background(), name{}, "first")
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		load, _, cancelled := slow(time.Minute, ringtest.Loaded{Value: []byte("value")})
		first := ringtest.Ask(ctx, c, k,
			func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
				if ctx.Value(name{}) != "first" {
					return nil, 0, errors.New("the context lacks the caller's values")
				}
				if _, ok := ctx.Deadline(); ok {
					return nil, 0, errors.New("the context has the caller's deadline")
				}
				return load(ctx, k)
			})
		synctest.Wait()
		second := ringtest.Ask(context.Background(), c, k, load)
		begin := time.Now()
		require.ErrorIs(t, (<-first).Err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		r := <-second
		require.NoError(t, r.Err)
		require.Equal(t, time.Minute, time.Since(begin))
		require.Zero(t, cancelled.Load())
	})
}

// When the last one has left, the load is called off; who comes then does not
// wait for its end.
func TestLoaderTime_LastLeaves(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		load, calls, cancelled := slow(time.Minute, ringtest.Loaded{Value: []byte("value")})
		ctx, cancel := context.WithCancel(context.Background())
		a, b := ringtest.Ask(ctx, c, k, load), ringtest.Ask(ctx, c, k, load)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-a).Err, context.Canceled)
		require.ErrorIs(t, (<-b).Err, context.Canceled)
		synctest.Wait()
		require.EqualValues(t, 1, cancelled.Load())
		require.Equal(t, -1, ringtest.Waiting(c, k))

		// One that does not listen is not waited for, and nothing of it is kept.
		deaf := func(context.Context, []byte) ([]byte, time.Duration, error) {
			time.Sleep(time.Hour)
			return []byte("too late"), 0, nil
		}
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.GetOrLoad(ctx, nil, k, deaf)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v, err := c.GetOrLoad(context.Background(), nil, k, load)
		require.NoError(t, err)
		require.Equal(t, "value", string(v))
		require.EqualValues(t, 2, calls.Load())
		time.Sleep(2 * time.Hour)
		require.Equal(t, "value", string(c.Get(nil, k)))
	})
}

// Those who wait for a load that a write has invalidated may leave it too.
func TestLoaderTime_InvalidatedAndLeft(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		load, _, cancelled := slow(time.Minute, ringtest.Loaded{Value: []byte("value")})
		ctx, cancel := context.WithCancel(context.Background())
		ch := ringtest.Ask(ctx, c, k, load)
		synctest.Wait()
		c.Del(k)
		synctest.Wait()
		require.Zero(t, cancelled.Load())
		cancel()
		<-ch
		synctest.Wait()
		require.EqualValues(t, 1, cancelled.Load())
	})
}

func TestLoaderTime_TTL(t *testing.T) {
	for name, tt := range map[string]struct {
		usual, own, want time.Duration
	}{
		"none":      {0, 0, 0},
		"usual":     {time.Minute, 0, time.Minute},
		"own":       {time.Minute, time.Hour, time.Hour},
		"own only":  {0, time.Hour, time.Hour},
		"for ever":  {time.Minute, 14 * 365 * 24 * time.Hour, 0},
		"too short": {0, -1, -1},
	} {
		for _, absent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, ringcache.Options{TTL: tt.usual}, func(t *testing.T, c *ringcache.Cache) {
					k := []byte("key")
					load, calls, _ := slow(time.Second,
						ringtest.Loaded{Value: []byte("value"), TTL: tt.own, Err: ringtest.AbsentIf(absent)})
					again := func() int64 {
						_, err := c.GetOrLoad(context.Background(), nil, k, load)
						require.Equal(t, absent, errors.Is(err, ringcache.ErrAbsent))
						return calls.Load()
					}
					require.EqualValues(t, 1, again())
					if tt.want < 0 {
						require.EqualValues(t, 2, again())
						return
					}
					time.Sleep(tt.want - clock.Tick)
					if tt.want == 0 {
						time.Sleep(10 * 365 * 24 * time.Hour)
					}
					require.EqualValues(t, 1, again())
					if tt.want > 0 {
						time.Sleep(clock.Tick)
						require.EqualValues(t, 2, again())
					}
				})
			})
		}
	}
}

// refreshing are options with which entries are due for the last ten seconds of a minute.
var refreshing = ringcache.Options{TTL: time.Minute, RefreshAhead: 10 * time.Second}

func TestLoaderTime_Refresh(t *testing.T) {
	inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		var version atomic.Int64
		load := func(ctx context.Context, _ []byte) ([]byte, time.Duration, error) {
			time.Sleep(time.Second)
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			return []byte{byte(version.Add(1))}, 0, nil
		}
		get := func() (v byte, took time.Duration) {
			begin := time.Now()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel() // the refresh does not end with the call that began it
			got, err := c.GetOrLoad(ctx, nil, k, load)
			require.NoError(t, err)
			return got[0], time.Since(begin)
		}
		want := func(v byte, took time.Duration) {
			t.Helper()
			gotV, gotTook := get()
			require.Equal(t, v, gotV)
			require.Equal(t, took, gotTook)
		}
		want(1, time.Second)
		time.Sleep(49 * time.Second)
		want(1, 0) // not due yet
		time.Sleep(1100 * time.Millisecond)
		require.EqualValues(t, 1, version.Load())
		for range 100 { // due: one load, and nobody waits
			want(1, 0)
		}
		time.Sleep(1100 * time.Millisecond)
		want(2, 0)
		require.EqualValues(t, 2, version.Load())
		left, ok := c.TTL(k)
		require.True(t, ok)
		require.Greater(t, left, 58*time.Second)

		time.Sleep(2 * time.Minute)
		want(3, time.Second)
	})
}

// A refresh that fails leaves the entry until its time is over, and is not begun again at
// once: 8 times at most, however often the entry is asked for.
func TestLoaderTime_RefreshFails(t *testing.T) {
	for name, fail := range map[string]func() ([]byte, time.Duration, error){
		"error":  func() ([]byte, time.Duration, error) { return nil, 0, errors.New("down") },
		"panic":  func() ([]byte, time.Duration, error) { panic("down") },
		"Goexit": func() ([]byte, time.Duration, error) { runtime.Goexit(); return nil, 0, nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
				k := []byte("key")
				require.NoError(t, c.Set(k, []byte("value")))
				time.Sleep(50*time.Second + clock.Tick)
				load := func(context.Context, []byte) ([]byte, time.Duration, error) { return fail() }
				for begin := time.Now(); time.Since(begin) < 9800*time.Millisecond; {
					v, err := c.GetOrLoad(context.Background(), nil, k, load)
					require.NoError(t, err)
					require.Equal(t, "value", string(v))
					r := loadBatch(c, t.Context(), "key", ringtest.OfOne(ringtest.LoadFunc(load)))
					require.Equal(t, batchReply{vals: "value", hits: 1}, r)
					synctest.Wait()
					time.Sleep(time.Millisecond)
				}
				s := c.Stats()
				require.Equal(t, s.Loads.Started, s.Loads.Errors)
				require.LessOrEqual(t, s.Loads.Started, uint64(8))
				require.GreaterOrEqual(t, s.Loads.Started, uint64(7))
				time.Sleep(5 * time.Second)
				load, _ = ringtest.Gives("fresh")
				v, err := c.GetOrLoad(context.Background(), nil, k, load)
				require.NoError(t, err, "a pause is for refreshes alone")
				require.Equal(t, "fresh", string(v))
			})
		})
	}
}

// A refresh whose result is due as soon as it is stored does not follow upon itself either, also if
// only TTLJitter makes it due.
func TestLoaderTime_RefreshOfShortLives(t *testing.T) {
	const ahead = 10 * time.Second
	for jitter, ttl := range map[float64]time.Duration{0: ahead / 2, 0.5: ahead + 1} {
		o := ringcache.Options{RefreshAhead: ahead, TTLJitter: jitter}
		inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
			load, calls, _ := slow(0, ringtest.Loaded{Value: []byte("value"), TTL: ttl})
			for range 1000 {
				_, err := c.GetOrLoad(t.Context(), nil, []byte("key"), load)
				require.NoError(t, err)
				synctest.Wait()
			}
			require.EqualValues(t, 2, calls.Load())
		})
	}
}

// A refresh that takes longer than Options say is told to end. The entry stays.
func TestLoaderTime_RefreshDeadline(t *testing.T) {
	for _, timeout := range []time.Duration{0, 2 * time.Second} {
		o := refreshing
		o.RefreshTimeout, o.RefreshAhead = timeout, 40*time.Second
		inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
			require.NoError(t, c.Set([]byte("a"), []byte("value")))
			require.NoError(t, c.Set([]byte("b"), []byte("value")))
			time.Sleep(21 * time.Second)
			load, calls, cancelled := slow(time.Hour, ringtest.Loaded{})
			_, err := c.GetOrLoad(t.Context(), nil, []byte("a"), load)
			require.NoError(t, err)
			all, allCalls, allCancelled := slowBatch(time.Hour)
			require.Equal(t, "value", loadBatch(c, t.Context(), "b", all).vals)
			time.Sleep(cmp.Or(timeout, 30*time.Second) - 1)
			synctest.Wait()
			require.Zero(t, cancelled.Load()+allCancelled.Load())
			time.Sleep(1 * time.Nanosecond)
			synctest.Wait()
			require.EqualValues(t, []int64{1, 1, 1, 1},
				[]int64{calls.Load(), cancelled.Load(), allCalls.Load(), allCancelled.Load()})
			require.True(t, c.Has([]byte("a")))
			require.EqualValues(t, 2, c.Stats().Loads.Errors)
		})
	}
}

// Whoever misses while a refresh hangs loads on his own. What the refresh brings in the end is
// not stored, even if it does not obey its context.
func TestLoaderTime_NobodyWaitsForARefresh(t *testing.T) {
	inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
		for _, k := range keysOf("a b c") {
			require.NoError(t, c.Set(k, []byte("old")))
		}
		time.Sleep(55 * time.Second)
		var e ringtest.Echo
		hangs, release := heldBatch(e.Load)
		require.Equal(t, "old, old, old", loadBatch(c, t.Context(), "a b c", hangs).vals)
		synctest.Wait()
		time.Sleep(6 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v, err := c.GetOrLoad(ctx, nil, []byte("a"),
			func(context.Context, []byte) ([]byte, time.Duration, error) { return []byte("own"), 0, nil })
		require.NoError(t, err)
		require.Equal(t, "own", string(v))
		own := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
			return []ringtest.Loaded{{Value: []byte("own")}}, nil
		}
		require.Equal(t, batchReply{vals: "own, own", hits: 1}, loadBatch(c, ctx, "a b", own))
		release()
		synctest.Wait()
		r := loadBatch(c, t.Context(), "a b c", neverLoadsAll)
		require.Equal(t, batchReply{vals: "own, own, of c", hits: 3}, r)
		s := c.Stats()
		require.Equal(t, []uint64{5, 0, 2},
			[]uint64{s.Loads.Started, s.Loads.Errors, s.Loads.Dropped})
	})
}

// What a refresh brings gives way to what was set meanwhile, and to Close: then
// nobody has a use for it, and it is called off. So it is when a caller misses, who loads on
// his own.
func TestLoaderTime_RefreshInvalidated(t *testing.T) {
	for name, tt := range map[string]struct {
		do        func(t *testing.T, c *ringcache.Cache, k []byte, load ringtest.LoadFunc)
		want      string
		cancelled int64 // loads
	}{
		"nothing": {func(*testing.T, *ringcache.Cache, []byte, ringtest.LoadFunc) {}, "fresh", 0},
		"Set": {func(_ *testing.T, c *ringcache.Cache, k []byte, _ ringtest.LoadFunc) {
			c.Set(k, []byte("set"))
		}, "set", 1},
		"equal": {func(_ *testing.T, c *ringcache.Cache, k []byte, _ ringtest.LoadFunc) {
			changed, err := c.SetIfChanged(k, []byte("value"))
			require.NoError(t, err)
			require.False(t, changed)
			require.Equal(t, "value", string(c.Get(nil, k)))
		}, "", 1}, // it keeps its expiry
		"Close": {func(_ *testing.T, c *ringcache.Cache, _ []byte, _ ringtest.LoadFunc) {
			c.Close()
		}, "", 1},
		"misses": {func(t *testing.T, c *ringcache.Cache, k []byte, load ringtest.LoadFunc) {
			time.Sleep(6 * time.Second) // the entry's time is over
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := c.GetOrLoad(ctx, nil, k, load)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, "", 2},
		"misses, and Set": {func(t *testing.T, c *ringcache.Cache, k []byte, load ringtest.LoadFunc) {
			time.Sleep(6 * time.Second)
			ctx, cancel := context.WithCancel(context.Background())
			ch := ringtest.Ask(ctx, c, k, load)
			synctest.Wait()
			c.Set(k, []byte("set"))
			cancel()
			require.ErrorIs(t, (<-ch).Err, context.Canceled)
		}, "set", 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := refreshing
			o.RefreshTimeout = time.Minute
			inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
				k := []byte("key")
				require.NoError(t, c.Set(k, []byte("value")))
				time.Sleep(55 * time.Second)
				load, calls, cancelled := slow(30*time.Second, ringtest.Loaded{Value: []byte("fresh")})
				_, err := c.GetOrLoad(context.Background(), nil, k, load)
				require.NoError(t, err)
				synctest.Wait()
				tt.do(t, c, k, load)
				time.Sleep(40 * time.Second)
				require.Equal(t, tt.want, string(c.Get(nil, k)))
				require.Equal(t, max(1, tt.cancelled), calls.Load())
				require.Equal(t, tt.cancelled, cancelled.Load())
			})
		})
	}
}

// A refresh may bring what is not to be stored: then the old value is gone too.
func TestLoaderTime_RefreshNotToBeStored(t *testing.T) {
	inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
		require.NoError(t, c.Set([]byte("key"), []byte("value")))
		time.Sleep(55 * time.Second)
		load, _, _ := slow(0, ringtest.Loaded{Value: []byte("fresh"), TTL: -1})
		v, err := c.GetOrLoad(context.Background(), nil, []byte("key"), load)
		require.NoError(t, err)
		require.Equal(t, "value", string(v))
		synctest.Wait()
		require.Zero(t, c.Len())
	})
}

// A call whose context has ended hits, and begins no load.
func TestLoaderTime_EndedContextRefreshesNothing(t *testing.T) {
	inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		require.NoError(t, c.Set(k, []byte("value")))
		time.Sleep(55 * time.Second)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		v, err := c.GetOrLoad(ended, nil, k, ringtest.NeverLoads)
		require.NoError(t, err)
		require.Equal(t, "value", string(v))
		r := loadBatch(c, ended, "key", neverLoadsAll)
		require.Equal(t, batchReply{vals: "value", hits: 1}, r)
		synctest.Wait()
		require.Zero(t, c.Stats().Loads.Started)
	})
}

// An entry that never expires is never due, and a negative entry is left to expire.
func TestLoaderTime_NotDue(t *testing.T) {
	inBubble(t, ringcache.Options{RefreshAhead: time.Minute}, func(t *testing.T, c *ringcache.Cache) {
		load, calls, _ := slow(0, ringtest.Loaded{Err: ringcache.ErrAbsent, TTL: time.Second})
		require.NoError(t, c.Set([]byte("set"), nil))
		time.Sleep(time.Hour)
		for range 2 {
			_, err := c.GetOrLoad(context.Background(), nil, []byte("set"), load)
			require.NoError(t, err)
			_, err = c.GetOrLoad(context.Background(), nil, []byte("negative"), load)
			require.ErrorIs(t, err, ringcache.ErrAbsent)
			synctest.Wait()
		}
		require.EqualValues(t, 1, calls.Load())
	})
}
