//go:build go1.25

package loads

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// backend is a load that returns its value after a while, or its error.
type backend struct {
	takes time.Duration
	value string
	err   error
	deaf  bool // it ignores its context
	calls atomic.Int64
}

func (b *backend) load(ctx context.Context, _ []byte) ([]byte, time.Duration, error) {
	b.calls.Add(1)
	v, err, takes := []byte(b.value), b.err, b.takes
	if b.deaf {
		time.Sleep(takes)
		return v, 0, err
	}
	select {
	case <-time.After(takes):
		return v, 0, err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// withStale runs fn for each way of asking, with a cache that keeps the expired value "old" of the
// key "key". get asks, and requires a value after a time.
func withStale(
	t *testing.T, o ringcache.Options,
	fn func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(ctx context.Context, want string, after time.Duration)),
) {
	o.TTL, o.StaleIfError = time.Minute, time.Hour
	for name, ask := range askers {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
				b := &backend{value: "old"}
				get := func(ctx context.Context, want string, after time.Duration) {
					t.Helper()
					begin := time.Now()
					v, err := ask(ctx, c, "key", b.load)
					require.NoError(t, err)
					require.Equal(t, want, string(v))
					require.Equal(t, after, time.Since(begin))
				}
				get(t.Context(), "old", 0)
				time.Sleep(2 * time.Minute)
				b.value = "new"
				b.calls.Store(0)
				fn(t, b, c, get)
			})
		})
	}
}

// A caller whose context ends gets the stale value, later ones get it at once, and the load goes
// on.
func TestLoaderUsable_ContextEnds(t *testing.T) {
	withStale(t, ringcache.Options{}, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		b.takes = 2 * time.Second
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		get(ended, "old", 0)
		require.Zero(t, b.calls.Load())
		patient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		get(patient, "old", 300*time.Millisecond)
		for range 16 {
			get(t.Context(), "old", 0)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		get(t.Context(), "new", 0)
		require.EqualValues(t, 1, b.calls.Load())
	})
}

// A caller that is canceled says nothing about the load: the next one waits for it.
func TestLoaderUsable_Canceled(t *testing.T) {
	withStale(t, ringcache.Options{}, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		b.takes = 2 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		get(ctx, "old", time.Second)
		get(t.Context(), "new", time.Second)
		require.EqualValues(t, 1, b.calls.Load())
	})
}

// No caller waits longer than the soft timeout, the load goes on, and a caller that comes when one
// has waited in vain does not wait.
func TestLoaderUsable_SoftTimeout(t *testing.T) {
	o := ringcache.Options{SoftTimeout: 50 * time.Millisecond}
	withStale(t, o, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		b.takes = 200 * time.Millisecond
		var wg sync.WaitGroup
		for range 10 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				get(t.Context(), "old", o.SoftTimeout)
			}()
		}
		wg.Wait()
		get(t.Context(), "old", 0)
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		get(t.Context(), "new", 0)
		require.EqualValues(t, 1, b.calls.Load())

		time.Sleep(2 * time.Minute) // a load in time is waited for again
		b.value, b.takes = "newer", 20*time.Millisecond
		get(t.Context(), "newer", 20*time.Millisecond)
	})
}

// With a negative soft timeout, a caller waits only if there is no value.
func TestLoaderUsable_NegativeSoftTimeout(t *testing.T) {
	withStale(t, ringcache.Options{SoftTimeout: -1}, func(t *testing.T, b *backend,
		c *ringcache.Cache, get func(context.Context, string, time.Duration)) {
		b.takes = 200 * time.Millisecond
		get(t.Context(), "old", 0)
		time.Sleep(b.takes)
		synctest.Wait()
		get(t.Context(), "new", 0)
		time.Sleep(2 * time.Hour)
		get(t.Context(), "new", b.takes)
		require.EqualValues(t, 2, b.calls.Load())
	})
}

// After a load has failed, callers get the stale value at once. One of them tries again after each
// pause, and pauses grow up to ten seconds.
func TestLoaderUsable_Pauses(t *testing.T) {
	withStale(t, ringcache.Options{}, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		b.err, b.takes = ringtest.ErrDown, time.Millisecond
		get(t.Context(), "old", time.Millisecond)
		begin := time.Now()
		var tries []time.Duration
		for range 6_000 {
			before := b.calls.Load()
			get(t.Context(), "old", 0)
			if time.Sleep(10 * time.Millisecond); b.calls.Load() > before {
				tries = append(tries, time.Since(begin))
			}
		}
		require.Len(t, tries, 11) // .2 .5 1 1.9 3.6 6.9 13.4 23.5 33.6 43.7 53.8
		for i, at := range tries[1:] {
			pause := min(200*time.Millisecond<<i, 10*time.Second) + 100*time.Millisecond
			require.InDelta(t, pause, at-tries[i], 20e6, "pause %d", i)
		}
		synctest.Wait()
		b.err = nil
		time.Sleep(10*time.Second + 200*time.Millisecond)
		get(t.Context(), "old", 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		get(t.Context(), "new", 0)
	})
}

// After a refresh of one key has failed, a caller of another does not wait for its own, until one
// has succeeded.
func TestLoaderUsable_OtherKeysDoNotWait(t *testing.T) {
	withStale(t, ringcache.Options{}, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		require.NoError(t, c.SetWithTTL([]byte("other"), []byte("old"), 100*time.Millisecond))
		time.Sleep(200 * time.Millisecond)
		b.takes = time.Second
		_, err := c.GetOrLoad(t.Context(), nil, []byte("other"), ringtest.Fails)
		require.NoError(t, err)
		get(t.Context(), "old", 0)
		time.Sleep(time.Second)
		synctest.Wait()
		get(t.Context(), "new", 0)

		require.NoError(t, c.SetWithTTL([]byte("third"), []byte("old"), time.Minute))
		time.Sleep(2 * time.Minute)
		b.value = "newer"
		third := ringtest.Ask(t.Context(), c, []byte("third"), b.load)
		get(t.Context(), "newer", time.Second)
		require.Equal(t, "newer", string((<-third).V))
	})
}

// A load that ends as the soft timeout does: its result, or the stale value, and never both.
func TestLoaderUsable_Tie(t *testing.T) {
	o := ringcache.Options{TTL: time.Minute, StaleIfError: time.Hour, SoftTimeout: time.Second}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
		for i := range 300 {
			k := []byte(strconv.Itoa(i))
			require.NoError(t, c.Set(k, []byte("old")))
			time.Sleep(2 * time.Minute)
			b := &backend{takes: o.SoftTimeout, err: ringcache.ErrAbsent}
			if v, err := c.GetOrLoad(t.Context(), []byte("dst"), k, b.load); err != nil {
				require.ErrorIs(t, err, ringcache.ErrAbsent)
				require.Equal(t, "dst", string(v))
			} else {
				require.Equal(t, "dstold", string(v))
			}
			synctest.Wait()
		}
	})
}

// endsAtOnce is a context that ends when it has been asked once.
type endsAtOnce struct {
	context.Context
	asked atomic.Bool
}

func (c *endsAtOnce) Err() error {
	if !c.asked.Swap(true) {
		return nil
	}
	return context.Canceled
}

func (c *endsAtOnce) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// A context may end between the lookup and the load.
func TestLoaderUsable_ContextEndsAtOnce(t *testing.T) {
	withStale(t, ringcache.Options{}, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		b.takes = time.Second
		get(&endsAtOnce{Context: t.Context()}, "old", 0)
		get(t.Context(), "new", time.Second)
	})
}

// A load that ignores its deadline is given up: another begins, and its own result is not stored.
func TestLoaderUsable_DeafLoad(t *testing.T) {
	o := ringcache.Options{RefreshTimeout: 2 * time.Second}
	withStale(t, o, func(t *testing.T, b *backend, c *ringcache.Cache,
		get func(context.Context, string, time.Duration)) {
		b.takes, b.deaf, b.value = time.Hour, true, "too late"
		get(t.Context(), "old", o.RefreshTimeout)
		for range 4 { // it may be about to end
			time.Sleep(250 * time.Millisecond)
			get(t.Context(), "old", 0)
		}
		synctest.Wait()
		require.EqualValues(t, 1, b.calls.Load())
		time.Sleep(time.Second)
		b.takes, b.value = time.Millisecond, "new"
		get(t.Context(), "old", 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		get(t.Context(), "new", 0)
		require.EqualValues(t, 2, b.calls.Load())
		time.Sleep(time.Hour)
		require.NotEqual(t, "too late", string(c.Get(nil, []byte("key"))))
		b.deaf = false
	})
}

// If the key is written while a caller waits, the caller gets the new value, or loads the key.
func TestLoaderUsable_Written(t *testing.T) {
	k := []byte("key")
	o := ringcache.Options{TTL: time.Minute, StaleIfError: time.Hour,
		SoftTimeout: 50 * time.Millisecond}
	for name, tt := range map[string]struct {
		write func(c *ringcache.Cache)
		want  string
		takes time.Duration
	}{
		"set":     {func(c *ringcache.Cache) { _ = c.Set(k, []byte("set")) }, "set", o.SoftTimeout},
		"deleted": {func(c *ringcache.Cache) { c.Del(k) }, "new", o.SoftTimeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
				require.NoError(t, c.Set(k, []byte("old")))
				time.Sleep(2 * time.Minute)
				b := &backend{value: "new", takes: time.Second}
				time.AfterFunc(20*time.Millisecond, func() { tt.write(c) })
				begin := time.Now()
				v, err := c.GetOrLoad(t.Context(), nil, k, b.load)
				require.NoError(t, err)
				require.Equal(t, tt.want, string(v))
				require.Equal(t, tt.takes, time.Since(begin))
			})
		})
	}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) { // and its own context ends after that
		require.NoError(t, c.Set(k, []byte("old")))
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		time.AfterFunc(20*time.Millisecond, func() { c.Del(k) })
		v, err := c.GetOrLoad(ctx, []byte("dst"), k, (&backend{takes: time.Second}).load)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "dst", string(v))
	})
}

// A batch loads the keys that are usable with one call and those that are gone with another, and
// waits for both at once.
func TestLoaderUsable_Batch(t *testing.T) {
	o := ringcache.Options{TTL: time.Minute, StaleIfError: time.Hour, RefreshAhead: 10 * time.Second,
		SoftTimeout: 50 * time.Millisecond}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
		require.NoError(t, c.Set([]byte("stale"), []byte("old stale")))
		time.Sleep(2 * time.Minute)
		require.NoError(t, c.Set([]byte("due"), []byte("old due")))
		time.Sleep(55 * time.Second)
		require.NoError(t, c.Set([]byte("fresh"), []byte("fresh")))
		var e ringtest.Echo
		load := func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
			time.Sleep(200 * time.Millisecond)
			return e.Load(ctx, keys)
		}
		begin := time.Now()
		r := loadBatch(c, t.Context(), "stale gone due fresh", load)
		require.Equal(t, batchReply{
			vals: "old stale, of gone, old due, fresh", hits: 2}, r)
		require.Equal(t, 200*time.Millisecond, time.Since(begin))
		synctest.Wait()
		require.ElementsMatch(t, []string{"stale due", "gone"}, e.Asked())
		require.Equal(t, "of stale, of due",
			loadBatch(c, t.Context(), "stale due", neverLoadsAll).vals)
	})
}

// A panic reaches those that wait for the load. Later callers get the stale value.
func TestLoaderUsable_Panic(t *testing.T) {
	inBubble(t, keeping, func(t *testing.T, c *ringcache.Cache) {
		k := []byte("key")
		require.NoError(t, c.Set(k, []byte("old")))
		time.Sleep(2 * time.Minute)
		panics := func(context.Context, []byte) ([]byte, time.Duration, error) { panic("broken") }
		require.NotNil(t, (<-ringtest.Ask(t.Context(), c, k, panics)).Panicked)
		for range 20 {
			r := <-ringtest.Ask(t.Context(), c, k, panics)
			require.Nil(t, r.Panicked)
			require.Equal(t, "old", string(r.V))
			time.Sleep(time.Second)
		}
		require.Greater(t, c.Stats().Loads.Errors, uint64(3))
	})
}

// 64 callers ask for 1,000 keys, each once in 20 ms, while the backend is well and while it is not:
// their number of Gets stays, hardly any waits, no key is loaded twice at a time, and all keys are
// fresh within a pause of its return.
func TestLoaderUsable_Outage(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("the detector's runtime fails a check of its own after so many sleeps in a bubble")
	}
	const callers, keys, soft = 64, 1000, 50 * time.Millisecond
	for name, outage := range map[string]*backend{
		"fails after 2 s": {takes: 2 * time.Second, err: ringtest.ErrDown},
		"hangs":           {takes: time.Hour},
		"is down":         {err: ringtest.ErrDown},
		"is slow":         {takes: 500 * time.Millisecond, value: "old"},
	} {
		o := ringcache.Options{TTL: 10 * time.Second, TTLJitter: 0.2, StaleIfError: time.Hour,
			SoftTimeout: soft, RefreshTimeout: 5 * time.Second}
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
				var now atomic.Pointer[backend]
				now.Store(&backend{takes: 5 * time.Millisecond, value: "old"})
				load := make([]ringtest.LoadFunc, keys)
				var most, running [keys]atomic.Uint64
				for i := range load {
					load[i] = func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
						raise(&most[i], running[i].Add(1))
						defer running[i].Add(^uint64(0))
						return now.Load().load(ctx, k)
					}
				}
				get := func(i int) string {
					v, err := c.GetOrLoad(t.Context(), nil, []byte(strconv.Itoa(i)), load[i])
					if err != nil {
						return err.Error()
					}
					return string(v)
				}
				all := func(d time.Duration) (gets, waits int64) {
					var n, slow atomic.Int64
					var wg sync.WaitGroup
					for id := range callers {
						wg.Add(1)
						go func() {
							defer wg.Done()
							rnd := rand.New(rand.NewPCG(uint64(id), 0))
							for end := time.Now().Add(d); time.Now().Before(end); n.Add(1) {
								begin := time.Now()
								if v := get(rnd.IntN(keys)); v != "old" {
									t.Errorf("got %q", v)
								}
								if took := time.Since(begin); took > soft {
									t.Errorf("waited %v", took)
								} else if took == soft {
									slow.Add(1)
								}
								time.Sleep(20 * time.Millisecond)
							}
						}()
					}
					wg.Wait()
					return n.Load(), slow.Load()
				}
				for i := range keys {
					get(i)
				}
				well, _ := all(30 * time.Second)
				now.Store(outage)
				ill, waits := all(30 * time.Second)
				require.Greater(t, float64(ill), 0.9*float64(well))
				require.Less(t, float64(waits), 0.001*float64(ill))

				now.Store(&backend{takes: 5 * time.Millisecond, value: "new"})
				time.Sleep(10*time.Second + o.RefreshTimeout)
				for range 2 {
					for i := range keys {
						get(i)
					}
					time.Sleep(20 * time.Millisecond)
				}
				for i := range keys {
					require.Equal(t, "new", get(i))
					require.EqualValues(t, 1, most[i].Load(), "loads of a key at a time")
				}
			})
		})
	}
}

// If the stale value disappears while a caller waits for a hung load, the caller loads the key.
func TestLoaderUsable_GoesWhileALoadHangs(t *testing.T) {
	o := ringcache.Options{TTL: time.Minute, StaleIfError: 10 * time.Second}
	for name, ask := range askers {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
				_, err := ask(t.Context(), c, "key", (&backend{value: "old"}).load)
				require.NoError(t, err)
				time.Sleep(o.TTL + time.Second)
				var calls atomic.Int64
				begin := time.Now()
				v, err := ask(t.Context(), c, "key",
					func(context.Context, []byte) ([]byte, time.Duration, error) {
						if calls.Add(1) == 1 {
							time.Sleep(time.Hour)
						}
						return []byte("new"), 0, nil
					})
				require.NoError(t, err)
				require.Equal(t, "new", string(v))
				require.Less(t, time.Since(begin), time.Minute)
				require.EqualValues(t, 2, calls.Load())
				time.Sleep(time.Hour)
			})
		})
	}
}
