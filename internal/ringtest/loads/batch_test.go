package loads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// keysOf returns the words of s as keys.
func keysOf(s string) (keys [][]byte) {
	for _, word := range strings.Fields(s) {
		keys = append(keys, []byte(word))
	}
	return keys
}

// neverLoadsAll is the load of a batch that must not need one.
func neverLoadsAll(context.Context, [][]byte) ([]ringtest.Loaded,
	error) {
	panic("it was to find all")
}

// batchReply is what a GetOrLoadBatch has come to: its values, one for each key, "-" for none.
type batchReply struct {
	vals     string
	hits     int
	err      error
	panicked any
}

// loadBatch calls GetOrLoadBatch with the words of keys.
func loadBatch(
	c *ringcache.Cache, ctx context.Context, keys string, load ringtest.BatchLoadFunc,
) (r batchReply) {
	defer func() { r.panicked = recover() }()
	all := keysOf(keys)
	vals := make([][]byte, len(all))
	_, r.hits, r.err = c.GetOrLoadBatch(ctx, nil, all, vals, load)
	for i, v := range vals {
		if v == nil {
			vals[i] = []byte("-")
		}
	}
	r.vals = string(bytes.Join(vals, []byte(", ")))
	return r
}

// askBatch is loadBatch in another goroutine.
func askBatch(
	ctx context.Context, c *ringcache.Cache, keys string, load ringtest.BatchLoadFunc,
) <-chan batchReply {
	ch := make(chan batchReply, 1)
	go func() { ch <- loadBatch(c, ctx, keys, load) }()
	return ch
}

// heldBatch returns a load that waits until it is let go, and the function that does.
func heldBatch(load ringtest.BatchLoadFunc) (ringtest.BatchLoadFunc, func()) {
	gate := make(chan struct{})
	return func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		<-gate
		return load(ctx, keys)
	}, func() { close(gate) }
}

// What GetOrLoadBatch returns, it returns as GetBatch does once all is there: in the same
// order, each value limited to its own capacity, whether dst has room or moves.
func TestLoaderBatch_IsGetBatchOfWhatIsLoaded(t *testing.T) {
	for _, room := range []int{0, 1, 20, 300, 1 << 16} {
		for _, n := range []int{0, 1, 31, 32, 33, 100} {
			c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
			rnd := ringtest.NewRand(uint64(room + n))
			want := 0 // keys to load
			keys, seen := make([][]byte, n), map[string]bool{}
			valueOf := func(k []byte) []byte { // some are empty
				return bytes.Repeat(k, int(k[0])%4)
			}
			for i := range keys {
				k := []byte{byte(rnd.IntN(60)), 'k'}
				keys[i] = k
				if !seen[string(k)] && k[0]%3 != 0 {
					want++
				} else if k[0]%3 == 0 {
					require.NoError(t, c.Set(k, valueOf(k)))
				}
				seen[string(k)] = true
			}
			calls := 0
			load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
				calls++
				require.Len(t, keys, want)
				all := make([]ringtest.Loaded, len(keys))
				for i, k := range keys {
					if v := valueOf(k); len(v) > 0 {
						all[i].Value = v // else nil: an empty value
					}
					if k[0]%5 == 0 {
						all[i] = ringtest.Loaded{Err: ringcache.ErrAbsent}
					}
				}
				return all, nil
			}
			dst := append(make([]byte, 0, room), "held"...)
			vals := make([][]byte, n+1)
			vals[n] = []byte("beyond the keys")
			out, hits, err := c.GetOrLoadBatch(t.Context(), dst, keys, vals, load)
			require.NoError(t, err)
			require.Equal(t, min(want, 1), calls)
			require.Equal(t, "beyond the keys", string(vals[n]))

			wantVals := make([][]byte, n)
			wantOut, all := c.GetBatch([]byte("held"), keys, wantVals)
			require.Equal(t, string(wantOut), string(out))
			require.LessOrEqual(t, hits, all)
			for i, k := range keys {
				require.Equal(t, k[0]%3 != 0 && k[0]%5 == 0, vals[i] == nil, "key %d", k[0])
			}
			requireAllIn(t, out[len("held"):], wantVals, vals[:n])
			again, hits, err := c.GetOrLoadBatch(t.Context(), nil, keys, vals, neverLoadsAll)
			require.NoError(t, err)
			require.Equal(t, string(out), "held"+string(again))
			require.Equal(t, all, hits)
			requireAllIn(t, again, wantVals, vals[:n])
		}
	}
}

// requireAllIn fails unless vals are as wanted, and lie one behind the other in out, each
// limited to its own capacity.
func requireAllIn(t *testing.T, out []byte, want, vals [][]byte) {
	t.Helper()
	for i, v := range vals {
		require.Equal(t, want[i] == nil, v == nil, "index %d", i)
		require.Equal(t, string(want[i]), string(v), "index %d", i)
		if len(v) > 0 {
			require.Same(t, &out[0], &v[0], "index %d", i)
			require.Equal(t, len(v), cap(v))
			out = out[len(v):]
		}
	}
	require.Empty(t, out)
}

func TestLoaderBatch_Counts(t *testing.T) {
	c := ringtest.LoaderCache(t)
	var e ringtest.Echo
	require.NoError(t, c.Set([]byte("b"), []byte("set")))
	r := loadBatch(c, t.Context(), "a b c a b", e.Load)
	require.Equal(t, batchReply{vals: "of a, set, of c, of a, set", hits: 2}, r)
	require.Equal(t, []string{"a c"}, e.Asked())
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, []uint64{5, 3, 2, 1, 0, 0},
		[]uint64{s.GetCalls, s.Misses, s.Loads.Started, s.SetCalls, s.Loads.Errors, s.Loads.Dropped})
}

// Keys that are all there cost what they cost with GetBatch.
func TestLoaderBatch_HitsDoNotAllocate(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("the race detector allocates on its own account")
	}
	g := ringtest.Default(ringtest.MinBytes)
	for _, ahead := range []bool{false, true} {
		if ahead {
			g.TTL, g.RefreshAhead = 1<<40, 1<<30 // nothing is due
		}
		c := ringtest.MustCache(t, g)
		keys, vals := make([][]byte, 64), make([][]byte, 64)
		for i := range keys {
			keys[i] = fmt.Append(nil, "key ", i)
			require.NoError(t, c.Set(keys[i], make([]byte, 100)))
		}
		dst, found := make([]byte, 0, 64*100), 0
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, n, _ := c.GetOrLoadBatch(context.Background(), dst, keys, vals, neverLoadsAll)
			found += n
		}))
		require.Equal(t, 101*64, found)
	}
}

// A batch waits for what others load, and others for what it loads. Each key is loaded once.
func TestLoaderBatch_JoinsAndIsJoined(t *testing.T) {
	c, ctx := ringtest.LoaderCache(t), t.Context()
	one, n := ringtest.Gives("of one")
	one, releaseOne := held(one)
	var first, second ringtest.Echo
	firstLoad, releaseFirst := heldBatch(first.Load)

	single := ringtest.Ask(ctx, c, []byte("one"), one)
	ringtest.AwaitWaiting(t, c, []byte("one"), 1)
	batch := askBatch(ctx, c, "two three one two", firstLoad)
	ringtest.AwaitWaiting(t, c, []byte("two"), 2)
	other := askBatch(ctx, c, "one four three", second.Load)
	joins := ringtest.Ask(ctx, c, []byte("three"), ringtest.NeverLoads)
	ringtest.AwaitWaiting(t, c, []byte("one"), 3)
	ringtest.AwaitWaiting(t, c, []byte("three"), 3)
	ringtest.AwaitWaiting(t, c, []byte("four"), -1) // its load did not wait for the others
	require.Equal(t, "of four", string(c.Get(nil, []byte("four"))))
	releaseOne()
	releaseFirst()

	require.Equal(t, "of one", string((<-single).V))
	require.Equal(t, "of three", string((<-joins).V))
	require.Equal(t, batchReply{vals: "of two, of three, of one, of two"}, <-batch)
	require.Equal(t, batchReply{vals: "of one, of four, of three"}, <-other)
	require.EqualValues(t, 1, n.Load())
	require.Equal(t, []string{"two three"}, first.Asked())
	require.Equal(t, []string{"four"}, second.Asked())
}

// Batches of the same keys in another order do not wait for each other for ever.
func TestLoaderBatch_OtherOrder(t *testing.T) {
	c := ringtest.LoaderCache(t)
	var wg sync.WaitGroup
	load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		runtime.Gosched()
		return make([]ringtest.Loaded, len(keys)), nil
	}
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			keys, vals := make([][]byte, 20), make([][]byte, 20)
			for round := range 300 {
				for i := range keys {
					at := i
					if w%2 == 1 {
						at = len(keys) - 1 - i
					}
					keys[at] = []byte{byte(i), byte(round), byte(round >> 8)}
				}
				_, _, err := c.GetOrLoadBatch(context.Background(), nil, keys, vals, load)
				if err != nil {
					assert.NoError(t, err)
				}
			}
		}()
	}
	require.NoError(t, ringtest.InTime(func() error { wg.Wait(); return nil }))
}

// An error is that of each key of the call, and of nobody else. Others' values come with it.
func TestLoaderBatch_ErrorIsShared(t *testing.T) {
	c, ctx, broken := ringtest.LoaderCache(t), t.Context(), errors.New("broken")
	require.NoError(t, c.Set([]byte("set"), []byte("value")))
	load, release := heldBatch(func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
		return []ringtest.Loaded{{Value: []byte("ignored")}, {}}, broken
	})
	failed := askBatch(ctx, c, "set a b", load)
	ringtest.AwaitWaiting(t, c, []byte("b"), 1)
	single := ringtest.Ask(ctx, c, []byte("b"), ringtest.NeverLoads)
	ringtest.AwaitWaiting(t, c, []byte("b"), 2)
	var e ringtest.Echo
	joined := askBatch(ctx, c, "c set b", e.Load)
	ringtest.AwaitWaiting(t, c, []byte("b"), 3)
	release()
	r := <-failed
	require.EqualError(t, r.err, "ringcache: load batch: index 1: broken (and 1 more)")
	require.ErrorIs(t, r.err, broken)
	require.Equal(t, "value, -, -", r.vals)
	require.EqualError(t, (<-single).Err, "ringcache: load entry: broken")
	r = <-joined
	require.EqualError(t, r.err, "ringcache: load batch: index 2: broken")
	require.Equal(t, "of c, value, -", r.vals)
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.Equal(t, []uint64{3, 2, 0},
		[]uint64{s.Loads.Started, s.Loads.Errors, s.Loads.Dropped})
	require.Equal(t, batchReply{vals: "of a, of b"}, loadBatch(c, ctx, "a b", e.Load),
		"it is not kept")
}

func TestLoaderBatch_OneResultForEachKey(t *testing.T) {
	c := ringtest.LoaderCache(t)
	for _, n := range []int{0, 1, 2, 4} {
		load := func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
			return make([]ringtest.Loaded, n), nil
		}
		r := loadBatch(c, t.Context(), "a b a c", load)
		require.EqualError(t, r.err, fmt.Sprintf(
			"ringcache: load batch: index 0: load returned %d results for 3 keys (and 3 more)", n))
		require.Equal(t, "-, -, -, -", r.vals)
		require.Zero(t, c.Len())
	}
}

func TestLoaderBatch_PanicAndGoexitReachAll(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func(){
		"panic": func() { panic(broken) }, "Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := ringtest.LoaderCache(t), t.Context()
			load, release := heldBatch(func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
				end()
				return nil, nil
			})
			batch := askBatch(ctx, c, "a b", load)
			ringtest.AwaitWaiting(t, c, []byte("b"), 1)
			single := ringtest.Ask(ctx, c, []byte("b"), ringtest.NeverLoads)
			ringtest.AwaitWaiting(t, c, []byte("b"), 2)
			release()
			r, s := <-batch, <-single
			if name == "panic" {
				p, ok := r.panicked.(*ringcache.LoadPanic)
				require.True(t, ok, "%T", r.panicked)
				require.ErrorIs(t, p, broken)
				require.Contains(t, string(p.Stack), "TestLoaderBatch_PanicAndGoexitReachAll")
				require.Same(t, p, s.Panicked)
			} else {
				require.ErrorContains(t, r.err, ringtest.ExitedText)
				require.ErrorContains(t, s.Err, ringtest.ExitedText)
			}
			require.Equal(t, -1, ringtest.Waiting(c, []byte("a")))
			require.Zero(t, c.Len())
		})
	}
}

// A key without a value is no error of a batch, be it found now or known already.
func TestLoaderBatch_Absent(t *testing.T) {
	c, ctx := ringtest.LoaderCache(t), t.Context()
	load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		return []ringtest.Loaded{{Err: ringcache.ErrAbsent, Value: []byte("ignored")},
			{Value: []byte("value")}}, nil
	}
	require.Equal(t, batchReply{vals: "-, value"}, loadBatch(c, ctx, "a b", load))
	_, err := c.GetOrLoad(ctx, nil, []byte("a"), ringtest.NeverLoads)
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	require.Equal(t, batchReply{vals: "value, -", hits: 1}, loadBatch(c, ctx, "b a", neverLoadsAll))

	all := func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
		return nil, fmt.Errorf("no such rows: %w", ringcache.ErrAbsent)
	}
	require.Equal(t, batchReply{vals: "-, value, -", hits: 1}, loadBatch(c, ctx, "d b e", all))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	r := loadBatch(c, ended, "a b d e", neverLoadsAll)
	require.Equal(t, batchReply{vals: "-, value, -, -", hits: 1}, r, "there is nothing to load")
}

// With a context that has ended, a batch finds what is there and loads nothing.
func TestLoaderBatch_EndedContext(t *testing.T) {
	c := ringtest.LoaderCache(t)
	require.NoError(t, c.Set([]byte("b"), []byte("set")))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := loadBatch(c, ended, "b a c", neverLoadsAll)
	require.ErrorIs(t, r.err, context.Canceled)
	require.EqualError(t, r.err, "ringcache: load batch: index 1: context canceled (and 1 more)")
	require.Equal(t, "set, -, -", r.vals)
	require.Equal(t, -1, ringtest.Waiting(c, []byte("a")))
}

// A write of one key takes the load's result from that key, and from no other.
func TestLoaderBatch_Invalidated(t *testing.T) {
	c, ctx := ringtest.LoaderCache(t), t.Context()
	var e ringtest.Echo
	load, release := heldBatch(e.Load)
	batch := askBatch(ctx, c, "a b c d", load)
	ringtest.AwaitWaiting(t, c, []byte("d"), 1)
	require.NoError(t, c.Set([]byte("b"), []byte("set")))
	require.False(t, c.Del([]byte("c")))
	release()
	require.Equal(t, batchReply{vals: "of a, of b, of c, of d"}, <-batch, "as of when it asked")
	r := loadBatch(c, ctx, "a b c d", new(ringtest.Echo).Load)
	require.Equal(t, batchReply{vals: "of a, set, of c, of d", hits: 3}, r)
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 2, s.Loads.Dropped)
}

// A batch that comes to a key for the second time joins its own load, also if a write has
// invalidated that in between: the load has not begun yet.
func TestLoaderBatch_KeyIsLoadedOnceThoughWritten(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k := []byte("key")
	keys := [][]byte{k}
	for i := range 200 { // they are joined between the two: some time passes
		keys = append(keys, []byte{byte(i)})
	}
	keys = append(keys, k)
	var stop atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for !stop.Load() {
			c.Del(k)
		}
	}()
	for range 500 {
		_, _, err := c.GetOrLoadBatch(t.Context(), nil, keys, make([][]byte, len(keys)),
			func(_ context.Context, missing [][]byte) ([]ringtest.Loaded, error) {
				assert.Len(t, missing, len(keys)-1)
				return slices.Repeat([]ringtest.Loaded{{TTL: -1}}, len(missing)), nil // not stored
			})
		require.NoError(t, err)
	}
	stop.Store(true)
	<-stopped
}

// The keys that a load gets are its own, each by itself.
func TestLoaderBatch_KeyCopies(t *testing.T) {
	c := ringtest.LoaderCache(t)
	load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		_ = append(keys[0], "x"...)
		all := []ringtest.Loaded{{Value: bytes.Clone(keys[0])}, {Value: bytes.Clone(keys[1])}}
		clear(keys[0])
		clear(keys[1])
		clear(keys)
		return all, nil
	}
	require.Equal(t, "a, b", loadBatch(c, t.Context(), "a b", load).vals)
	require.Equal(t, "a, b", loadBatch(c, t.Context(), "a b", neverLoadsAll).vals)
}

func TestLoaderBatch_Closed(t *testing.T) {
	c := ringtest.LoaderCache(t)
	require.NoError(t, c.Close())
	var e ringtest.Echo
	for range 2 {
		require.Equal(t, batchReply{vals: "of a, of b"}, loadBatch(c, t.Context(), "a b", e.Load))
	}
	require.Equal(t, []string{"a b", "a b"}, e.Asked())
	require.Zero(t, c.Len())
}

func TestLoaderBatch_NeedsRoomForAllValues(t *testing.T) {
	c := ringtest.LoaderCache(t)
	require.PanicsWithValue(t, "ringcache: load batch: a slice of 1 for 2 keys", func() {
		_, _, _ = c.GetOrLoadBatch(t.Context(), nil, keysOf("a b"), make([][]byte, 1), neverLoadsAll)
	})
}

// Batches and single loads that come in any way load each key once.
func TestLoaderBatch_OneLoadForEachKey(t *testing.T) {
	const workers, total = 8, 2000
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	var loads [total]atomic.Int32
	load := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		all := make([]ringtest.Loaded, len(keys))
		for i, k := range keys {
			loads[int(k[0])|int(k[1])<<8].Add(1)
			all[i].Value = bytes.Clone(k)
		}
		runtime.Gosched()
		return all, nil
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := ringtest.NewRand(uint64(w))
			for at := 0; at < total; {
				n := min(1+rnd.IntN(80), total-at)
				keys, vals := make([][]byte, n), make([][]byte, n)
				for i, j := range rnd.Perm(n) {
					keys[j] = []byte{byte(at + i), byte((at + i) >> 8)}
				}
				var err error
				if at += n; n == 1 {
					vals[0], err = c.GetOrLoad(context.Background(), nil, keys[0], ringtest.LoadFunc(
						func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
							all, err := load(ctx, [][]byte{k})
							return all[0].Value, all[0].TTL, err
						}))
				} else {
					_, _, err = c.GetOrLoadBatch(context.Background(), nil, keys, vals, load)
				}
				for i, k := range keys {
					if err != nil || !bytes.Equal(k, vals[i]) {
						assert.Fail(t, "loads", "%v, %q for %q", err, vals[i], k)
					}
				}
			}
		}()
	}
	wg.Wait()
	for i := range loads {
		require.EqualValues(t, 1, loads[i].Load(), "loads of key %d", i)
	}
}
