//go:build go1.25

package loads

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// keeping are options with which an entry lives for a minute, and is kept for an hour more.
var keeping = ringcache.Options{TTL: time.Minute, StaleIfError: time.Hour}

func failsAll(context.Context, [][]byte) ([]ringtest.Loaded, error) { return nil, ringtest.ErrDown }

func staleHits(c *ringcache.Cache) uint64 {
	var s ringcache.Stats
	c.UpdateStats(&s)
	return s.Loads.StaleHits
}

// An expired value is the answer for as long as Options say, if the load fails, and only then.
func TestLoaderStale_WhileLoadsFail(t *testing.T) {
	large := ringtest.Filler(ringtest.MinBytes / 16) // it lies in a large bucket
	for _, v := range [][]byte{[]byte("value"), {}, large} {
		t.Run(fmt.Sprint(len(v)), func(t *testing.T) {
			inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
				k, ctx := []byte("key"), t.Context()
				require.NoError(t, c.Set(k, v))
				time.Sleep(time.Minute - 1)
				_, err := c.GetOrLoad(ctx, nil, k, ringtest.NeverLoads)
				require.NoError(t, err)
				require.Zero(t, staleHits(c))
				time.Sleep(time.Nanosecond)
				for i := range 4 {
					if i > 0 {
						time.Sleep(time.Hour/3 - 1)
					}
					got, err := c.GetOrLoad(ctx, []byte("held "), k, ringtest.Fails)
					require.NoError(t, err)
					require.True(t, bytes.Equal(append([]byte("held "), v...), got))
					require.EqualValues(t, i+1, staleHits(c))
					require.False(t, c.Has(k))
				}
				time.Sleep(3 * time.Nanosecond)
				got, err := c.GetOrLoad(ctx, nil, k, ringtest.Fails)
				require.ErrorIs(t, err, ringtest.ErrDown)
				require.Nil(t, got)
				var s ringcache.Stats
				c.UpdateStats(&s)
				require.EqualValues(t, []uint64{4, 5, 5, 9},
					[]uint64{s.Loads.StaleHits, s.Loads.Started, s.Loads.Errors, s.Misses})
				require.Equal(t, 1, c.DeleteExpired())
			})
		})
	}
}

// Nobody else sees an expired value that is kept.
func TestLoaderStale_InvisibleToOthers(t *testing.T) {
	k, v := []byte("key"), []byte("value")
	for name, look := range map[string]func(t *testing.T, c *ringcache.Cache) bool{
		"Get":    func(t *testing.T, c *ringcache.Cache) bool { return c.Get(nil, k) != nil },
		"HasGet": func(t *testing.T, c *ringcache.Cache) bool { _, ok := c.HasGet(nil, k); return ok },
		"Has":    func(t *testing.T, c *ringcache.Cache) bool { return c.Has(k) },
		"View": func(t *testing.T, c *ringcache.Cache) bool {
			return ringtest.View(c, k, func([]byte) {})
		},
		"TTL":   func(t *testing.T, c *ringcache.Cache) bool { _, ok := c.TTL(k); return ok },
		"Touch": func(t *testing.T, c *ringcache.Cache) bool { return c.Touch(k, time.Hour) },
		"GetBatch": func(t *testing.T, c *ringcache.Cache) bool {
			_, n := c.GetBatch(nil, [][]byte{k, k}, make([][]byte, 2))
			return n > 0
		},
		"All": func(t *testing.T, c *ringcache.Cache) (seen bool) {
			for range c.All() {
				seen = true
			}
			for range c.Keys() {
				seen = true
			}
			return seen
		},
		"CompareAndSwap": func(t *testing.T, c *ringcache.Cache) bool {
			swapped, err := c.CompareAndSwap(k, v, []byte("new"))
			require.NoError(t, err)
			return swapped
		},
		"snapshot": func(t *testing.T, c *ringcache.Cache) bool {
			var b bytes.Buffer
			_, err := c.WriteSnapshot(&b)
			require.NoError(t, err)
			d, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: ringtest.MinBytes,
				StaleIfError: time.Hour})
			require.NoError(t, err)
			defer ringtest.CloseCache(t, d)
			_, err = d.ReadSnapshot(&b)
			require.NoError(t, err)
			return d.Len() > 0
		},
		"panic": func(t *testing.T, c *ringcache.Cache) bool {
			panics := func(context.Context, []byte) ([]byte, time.Duration, error) { panic("down") }
			r := <-ringtest.Ask(t.Context(), c, k, panics)
			require.NotNil(t, r.Panicked)
			return r.V != nil
		},
		"Goexit": func(t *testing.T, c *ringcache.Cache) bool {
			exits := func(context.Context, []byte) ([]byte, time.Duration, error) {
				runtime.Goexit()
				return nil, 0, nil
			}
			_, err := c.GetOrLoad(t.Context(), nil, k, exits)
			require.ErrorContains(t, err, ringtest.ExitedText)
			return err == nil
		},
		"nothing": func(*testing.T, *ringcache.Cache) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
				require.NoError(t, c.Set(k, v))
				time.Sleep(2 * time.Minute)
				require.False(t, look(t, c))
				require.Zero(t, staleHits(c))
				got, err := c.GetOrLoad(t.Context(), nil, k, ringtest.Fails)
				require.NoError(t, err, "it is there all the same")
				require.Equal(t, "value", string(got))
				require.EqualValues(t, 1, staleHits(c))
			})
		})
	}
}

// What has been written since, and what a load has found since, is never undone.
func TestLoaderStale_NotAfterAWrite(t *testing.T) {
	k := []byte("key")
	absent := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, ringcache.ErrAbsent
	}
	short := func(ttl time.Duration) ringtest.LoadFunc {
		return func(context.Context, []byte) ([]byte, time.Duration, error) {
			return []byte("new"), ttl, nil
		}
	}
	load := func(fn ringtest.LoadFunc) func(c *ringcache.Cache) {
		return func(c *ringcache.Cache) { _, _ = c.GetOrLoad(context.Background(), nil, k, fn) }
	}
	for name, tt := range map[string]struct {
		write func(c *ringcache.Cache)
		want  string // the stale value afterwards
	}{
		"Del":       {func(c *ringcache.Cache) { c.Del(k) }, ""},
		"GetAndDel": {func(c *ringcache.Cache) { c.GetAndDel(nil, k) }, ""},
		"Reset":     {func(c *ringcache.Cache) { c.Reset() }, ""},
		"Update": {func(c *ringcache.Cache) {
			_ = c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) { return nil, false }))
		}, ""},
		"Touch of the past": {func(c *ringcache.Cache) { c.Touch(k, -1) }, ""},
		"too large": {func(c *ringcache.Cache) {
			_ = c.Set(k, make([]byte, ringtest.MinBytes))
		}, ""},
		"set in the past":   {func(c *ringcache.Cache) { _ = c.SetWithTTL(k, []byte("new"), -1) }, ""},
		"set for too short": {func(c *ringcache.Cache) { _ = c.SetWithTTL(k, []byte("new"), 1) }, ""},
		"set": {func(c *ringcache.Cache) {
			_ = c.SetWithTTL(k, []byte("new"), time.Second)
		}, "new"},
		"set a large value": {func(c *ringcache.Cache) {
			_ = c.SetWithTTL(k, ringtest.Filler(1<<20), time.Second)
		},
			string(ringtest.Filler(1 << 20))},
		"SetIfAbsent": {func(c *ringcache.Cache) {
			_, _ = ringtest.SetIfAbsent(c, k, []byte("new"))
		}, "new"},
		"Append": {func(c *ringcache.Cache) {
			_ = c.Update(k, ringtest.Append([]byte("new")))
		}, "new"},
		"load":                  {load(short(time.Second)), "new"},
		"load not to be stored": {load(short(-1)), ""},
		"load of nothing":       {load(absent), ""},
		"DeleteExpired":         {func(c *ringcache.Cache) { c.DeleteExpired() }, "old"},
		"other Sets": {func(c *ringcache.Cache) {
			for i := range 1000 { // they look for what is to be removed
				_ = c.Set(fmt.Append(nil, "other ", i), nil)
			}
		}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
				require.NoError(t, c.Set(k, []byte("old")))
				time.Sleep(2 * time.Minute)
				tt.write(c)
				time.Sleep(2 * time.Minute)
				got, err := c.GetOrLoad(t.Context(), nil, k, ringtest.Fails)
				require.Equal(t, tt.want, string(got))
				require.Equal(t, tt.want == "", err != nil, "%v", err)
				r := loadBatch(c, t.Context(), "key", failsAll)
				require.Equal(t, err != nil, r.err != nil)
			})
		})
	}
}

// A write that comes while the load fails is the answer.
func TestLoaderStale_WrittenMeanwhile(t *testing.T) {
	inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		for _, view := range []*ringcache.Cache{c, c.Namespace("n")} {
			writes := []func(){
				func() { require.NoError(t, view.Set(k, []byte("new"))) }, func() { view.Del(k) },
				view.Reset, c.Reset,
			}
			if view != c {
				writes = append(writes, func() { require.NoError(t, c.DropNamespace("n")) })
			}
			for _, write := range writes {
				require.NoError(t, view.Set(k, []byte("old")))
				time.Sleep(2 * time.Minute)
				failing, release := held(ringtest.Fails)
				ch := ringtest.Ask(t.Context(), view, k, failing)
				synctest.Wait()
				write()
				there := string(view.Get(nil, k))
				release()
				r := <-ch
				require.Equal(t, there, string(r.V))
				require.Equal(t, there == "", r.Err != nil)
			}
		}
		require.Zero(t, staleHits(c), "it had not expired")
	})
}

// What was set while a caller waits, and is gone with its namespace, is not found when SoftTimeout
// passes.
func TestLoaderStale_SetAndResetMeanwhile(t *testing.T) {
	o := keeping
	o.SoftTimeout = time.Second
	for _, drop := range []bool{false, true} {
		inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
			n, k := c.Namespace("n"), []byte("key")
			require.NoError(t, n.Set(k, []byte("old")))
			time.Sleep(2 * time.Minute)
			load, _, _ := slow(2*time.Second, ringtest.Loaded{Value: []byte("loaded")})
			ch := ringtest.Ask(t.Context(), n, k, load)
			synctest.Wait()
			require.NoError(t, n.Set(k, []byte("new")))
			n.Reset()
			if drop {
				require.NoError(t, c.DropNamespace("n"))
			}
			r := <-ch
			require.NoError(t, r.Err)
			require.Equal(t, "loaded", string(r.V))
		})
	}
}

// A caller with a short deadline says nothing about the loads of other keys: their callers wait.
func TestLoaderStale_ShortDeadline(t *testing.T) {
	inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
		load, _, _ := slow(time.Second, ringtest.Loaded{Value: []byte("new")})
		for _, k := range []string{"one", "other"} {
			require.NoError(t, c.Set([]byte(k), []byte("old")))
		}
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		v, err := c.GetOrLoad(ctx, nil, []byte("one"), load)
		require.NoError(t, err)
		require.Equal(t, "old", string(v))
		v, err = c.GetOrLoad(t.Context(), nil, []byte("other"), load)
		require.NoError(t, err)
		require.Equal(t, "new", string(v))
	})
}

// A panic of OnRemove in a refresh that nobody waits for is counted.
func TestLoaderStale_OnRemovePanics(t *testing.T) {
	o := ringcache.Options{TTL: time.Minute, RefreshAhead: 50 * time.Second,
		OnRemove: func(ringcache.Removal) { panic("on remove") }}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		load, calls, _ := slow(0, ringtest.Loaded{Value: []byte("new")})
		require.NoError(t, c.Set(k, []byte("old")))
		time.Sleep(30 * time.Second)
		v, err := c.GetOrLoad(t.Context(), nil, k, load)
		require.NoError(t, err)
		require.Equal(t, "old", string(v))
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load())
		require.EqualValues(t, 1, c.Stats().Loads.Errors)
	})
}

// The delay after a refresh whose result was due at once is none for a value that has expired.
func TestLoaderStale_AfterAShortLife(t *testing.T) {
	o := ringcache.Options{RefreshAhead: 10 * time.Second, StaleIfError: time.Hour}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		load, calls, _ := slow(0, ringtest.Loaded{Value: []byte("new"), TTL: 8 * time.Second})
		for range 3 {
			_, err := c.GetOrLoad(t.Context(), nil, k, load)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.EqualValues(t, 2, calls.Load())
		require.NoError(t, c.SetWithTTL(k, []byte("old"), time.Second))
		time.Sleep(2 * time.Second)
		v, err := c.GetOrLoad(t.Context(), nil, k, load)
		require.NoError(t, err)
		require.Equal(t, "new", string(v))
	})
}

// Each key of a batch that has a stale value gets it, and the others' error is returned.
func TestLoaderStale_Batch(t *testing.T) {
	inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
		require.NoError(t, c.Set([]byte("a"), []byte("old a")))
		require.NoError(t, c.Set([]byte("b"), []byte("old b")))
		_, err := c.GetOrLoad(t.Context(), nil, []byte("n"),
			func(context.Context, []byte) ([]byte, time.Duration, error) {
				return nil, 0, ringcache.ErrAbsent
			})
		require.ErrorIs(t, err, ringcache.ErrAbsent)
		time.Sleep(2 * time.Minute)
		require.NoError(t, c.Set([]byte("c"), []byte("c")))
		r := loadBatch(c, t.Context(), "a c b a", failsAll)
		require.Equal(t, batchReply{vals: "old a, c, old b, old a", hits: 1}, r)
		require.EqualValues(t, 3, staleHits(c))
		r = loadBatch(c, t.Context(), "a n b", failsAll)
		require.EqualError(t, r.err, "ringcache: load batch: index 1: down")
		require.Equal(t, "old a, -, old b", r.vals, "a negative entry is no stale value")
		time.Sleep(time.Minute) // the pause is over, and the load is tried behind
		for _, want := range []string{"old a, old b", "of a, of b"} {
			require.Equal(t, want, loadBatch(c, t.Context(), "a b", new(ringtest.Echo).Load).vals)
			synctest.Wait()
		}
		require.EqualValues(t, 7, staleHits(c))
	})
}

// What has expired while nobody had the file does not come back, and what came back is kept
// as it would have been.
func TestLoaderStale_InAFile(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("a file needs mmap")
	}
	g := ringtest.Tiny(2, 4096, 12)
	g.StaleIfError = time.Hour
	var now time.Duration
	g.Elapsed = func() time.Duration { return now }
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.MustOpen(t, g, path)
	require.NoError(t, c.SetWithTTL([]byte("short"), []byte("value"), time.Second))
	require.NoError(t, c.SetWithTTL([]byte("long"), []byte("value"), time.Minute))
	require.NoError(t, c.Close())
	now = 30 * time.Second
	c = ringtest.MustOpen(t, g, path)
	defer ringtest.CloseCache(t, c)
	require.Equal(t, 1, c.Len())
	now = 2 * time.Minute
	r := loadBatch(c, t.Context(), "short long", failsAll)
	require.Equal(t, "-, value", r.vals)
	require.ErrorIs(t, r.err, ringtest.ErrDown)
	require.Zero(t, c.DeleteExpired())
	require.NoError(t, ringtest.Validate(c))
	now += time.Hour
	require.Equal(t, 1, c.DeleteExpired())
}

// A full cache drops what is expired where it comes to it, whether it is kept or not.
func TestLoaderStale_GoesAtTheTail(t *testing.T) {
	for _, kind := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(2, 512, 12)
		g.Policy, g.TTL, g.StaleIfError = kind, time.Minute, time.Hour
		var now time.Duration
		g.Elapsed = func() time.Duration { return now }
		evicted := map[ringcache.RemovalReason]int{}
		g.OnRemove = func(gone ringcache.Removal) { evicted[gone.Reason]++ }
		c := ringtest.MustCache(t, g)
		for i := range 50 {
			require.NoError(t, c.Set(fmt.Append(nil, "old ", i), make([]byte, 20)))
		}
		now = 2 * time.Minute
		require.Zero(t, c.DeleteExpired())
		require.Equal(t, 50, c.Len())
		for i := range 2000 {
			require.NoError(t, c.Set(fmt.Append(nil, "new ", i), make([]byte, 20)))
			if i%100 == 0 {
				require.NoError(t, ringtest.Validate(c))
			}
		}
		require.Equal(t, 50, evicted[ringcache.RemovedExpired])
		now = 70 * time.Minute
		n := c.Len()
		require.Equal(t, n, c.DeleteExpired())
	}
}

// Entries that were stored together do not expire together, but where their time to live was
// said for each.
func TestLoaderJitter(t *testing.T) {
	o := ringcache.Options{TTL: time.Minute, TTLJitter: 0.5}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
		ctx, hour := t.Context(), time.Hour
		var keys [][]byte
		for i := range 64 {
			keys = append(keys, fmt.Append(nil, "key ", i))
		}
		vals := make([][]byte, len(keys))
		for name, tt := range map[string]struct {
			store func(k []byte) error
			ttl   time.Duration
			exact bool
		}{
			"Set": {func(k []byte) error { return c.Set(k, nil) }, time.Minute, false},
			"SetBatch": {func(k []byte) error {
				return c.SetBatch(keys, vals)
			}, time.Minute, false},
			"GetOrLoad": {func(k []byte) error {
				load, _ := ringtest.Gives("value")
				_, err := c.GetOrLoad(ctx, nil, k, load)
				return err
			}, time.Minute, false},
			"GetOrLoadBatch": {func([]byte) error {
				_, _, err := c.GetOrLoadBatch(ctx, nil, keys, vals,
					func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
						all := make([]ringtest.Loaded, len(keys))
						for i := range all {
							all[i].TTL = hour
						}
						return all, nil
					})
				return err
			}, hour, false},
			"SetWithTTL": {func(k []byte) error { return c.SetWithTTL(k, nil, hour) }, hour, true},
			"Touch": {func(k []byte) error {
				require.NoError(t, c.Set(k, nil))
				require.True(t, c.Touch(k, hour))
				return nil
			}, hour, true},
		} {
			c.Reset()
			clear(vals)
			seen := map[time.Duration]bool{}
			for _, k := range keys {
				require.NoError(t, tt.store(k), name)
			}
			for _, k := range keys {
				left, ok := c.TTL(k)
				require.True(t, ok)
				require.LessOrEqual(t, left, tt.ttl, name)
				require.GreaterOrEqual(t, left, tt.ttl/2-100*time.Millisecond, name)
				seen[left] = true
			}
			if tt.exact {
				require.Len(t, seen, 1, name)
			} else {
				require.Greater(t, len(seen), 40, name)
			}
		}
		load := func(context.Context, []byte) ([]byte, time.Duration, error) {
			return nil, 110 * time.Millisecond, nil
		}
		for range 50 { // never below a tick: that would be refused
			c.Del([]byte("short"))
			_, err := c.GetOrLoad(ctx, nil, []byte("short"), load)
			require.NoError(t, err)
			require.True(t, c.Has([]byte("short")))
		}
	})
}
