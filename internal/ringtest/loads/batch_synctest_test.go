//go:build go1.25

package loads

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// slowBatch is slow for a batch: it finds "of " and the key.
func slowBatch(d time.Duration) (load ringtest.BatchLoadFunc, calls, cancelled *atomic.Int64) {
	one, calls, cancelled := slow(d, ringtest.Loaded{})
	return func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		if _, _, err := one(ctx, nil); err != nil {
			return nil, err
		}
		return new(ringtest.Echo).Load(ctx, keys)
	}, calls, cancelled
}

// A load of many keys goes on while anybody waits for any of them. Of a key that nobody waits
// for any more, the result is not stored.
func TestLoaderBatchTime_GoesOnForOneKey(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		load, calls, cancelled := slowBatch(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		require.NoError(t, c.Set([]byte("set"), []byte("value")))
		batch := askBatch(ctx, c, "set a b", load)
		synctest.Wait()
		single := ringtest.Ask(t.Context(), c, []byte("b"), ringtest.NeverLoads)
		r := <-batch
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		require.EqualError(t, r.err,
			"ringcache: load batch: index 1: context deadline exceeded (and 1 more)")
		require.Equal(t, "value, -, -", r.vals)
		require.Equal(t, "of b", string((<-single).V))
		require.Equal(t, time.Minute, time.Since(begin))
		require.Zero(t, cancelled.Load())
		require.EqualValues(t, 1, calls.Load())
		require.True(t, c.Has([]byte("b")))
		require.False(t, c.Has([]byte("a")), "nobody waited for it")
	})
}

// When the last caller of the last key has gone, the load is called off; who comes then does
// not wait for its end.
func TestLoaderBatchTime_LastLeaves(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		load, calls, cancelled := slowBatch(time.Minute)
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		a, b := askBatch(first, c, "a b a", load), askBatch(first, c, "b c", load)
		synctest.Wait()
		last := askBatch(second, c, "c a", load)
		synctest.Wait()
		require.EqualValues(t, 2, calls.Load())
		cancelFirst()
		require.ErrorIs(t, (<-a).err, context.Canceled)
		require.ErrorIs(t, (<-b).err, context.Canceled)
		synctest.Wait()
		require.Zero(t, cancelled.Load())
		c.Del([]byte("c")) // it is waited for still
		synctest.Wait()
		require.Zero(t, cancelled.Load())
		cancelSecond()
		require.ErrorIs(t, (<-last).err, context.Canceled)
		synctest.Wait()
		require.EqualValues(t, 2, cancelled.Load())
		require.Equal(t, "of a, of b, of c",
			loadBatch(c, t.Context(), "a b c", new(ringtest.Echo).Load).vals)
	})
}

// Half of the keys come, and the caller's patience ends before the others do.
func TestLoaderBatchTime_TakesWhatHasCome(t *testing.T) {
	inBubble(t, ringcache.Options{}, func(t *testing.T, c *ringcache.Cache) {
		fast, _, _ := slowBatch(time.Second)
		other, _, _ := slowBatch(time.Minute)
		early, late := askBatch(t.Context(), c, "a b", fast), askBatch(t.Context(), c, "c", other)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := loadBatch(c, ctx, "c a b d", fast)
		require.Equal(t, "-, of a, of b, of d", r.vals)
		require.EqualError(t, r.err, "ringcache: load batch: index 0: context deadline exceeded")
		require.Equal(t, "of a, of b", (<-early).vals)
		require.Equal(t, "of c", (<-late).vals)
	})
}

// What is due is loaded with one call, which nobody waits for; what is missing, with another.
func TestLoaderBatchTime_Refresh(t *testing.T) {
	inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
		var e ringtest.Echo
		load := func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
			time.Sleep(time.Second)
			return e.Load(ctx, keys)
		}
		for _, k := range keysOf("a b c") {
			require.NoError(t, c.Set(k, []byte("old")))
		}
		require.NoError(t, c.SetWithTTL([]byte("for ever"), []byte("old"), 0))
		time.Sleep(30 * time.Second)
		require.NoError(t, c.Set([]byte("young"), []byte("old")))
		require.Equal(t, "old, old", loadBatch(c, t.Context(), "a b", load).vals)
		synctest.Wait()
		require.Empty(t, e.Asked(), "they are not due")
		time.Sleep(25 * time.Second)

		begin := time.Now()
		for range 3 {
			r := loadBatch(c, t.Context(), "a young b a c", load)
			require.Equal(t, batchReply{vals: "old, old, old, old, old", hits: 5}, r)
			require.Zero(t, time.Since(begin))
		}
		synctest.Wait()
		require.NoError(t, c.Set([]byte("c"), []byte("set")))
		require.Equal(t, "old, of d", loadBatch(c, t.Context(), "a d", load).vals)
		time.Sleep(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []string{"a b c", "d"}, e.Asked())
		r := loadBatch(c, t.Context(), "a b c", neverLoadsAll)
		require.Equal(t, batchReply{vals: "of a, of b, set", hits: 3}, r)
		var s ringcache.Stats
		c.UpdateStats(&s)
		require.Equal(t, []uint64{4, 0, 1},
			[]uint64{s.Loads.Started, s.Loads.Errors, s.Loads.Dropped})
	})
}

// A refresh of several keys ends with the last of them that somebody has a use for.
func TestLoaderBatchTime_RefreshInvalidated(t *testing.T) {
	inBubble(t, refreshing, func(t *testing.T, c *ringcache.Cache) {
		load, calls, cancelled := slowBatch(4 * time.Second)
		set := func(k string) { require.NoError(t, c.Set([]byte(k), []byte("set"))) }
		set("a")
		set("b")
		time.Sleep(55 * time.Second)
		require.Equal(t, "set, set", loadBatch(c, t.Context(), "a b", load).vals)
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load())
		set("a")
		synctest.Wait()
		require.Zero(t, cancelled.Load())
		set("b")
		synctest.Wait()
		require.EqualValues(t, 1, cancelled.Load())
	})
}

// A refresh that ends in time is not late because its batch waits longer for another key: callers
// still wait for refreshes of other keys.
func TestLoaderBatchTime_RefreshEndsBeforeAnotherLoad(t *testing.T) {
	o := ringcache.Options{TTL: time.Minute, StaleIfError: time.Hour, SoftTimeout: time.Second}
	inBubble(t, o, func(t *testing.T, c *ringcache.Cache) {
		load := func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
			if string(keys[0]) == "gone" {
				time.Sleep(2 * o.SoftTimeout)
			}
			return new(ringtest.Echo).Load(ctx, keys)
		}
		for range 50 {
			require.NoError(t, c.SetBatch(keysOf("a b"), keysOf("old old")))
			c.Del([]byte("gone"))
			time.Sleep(2 * o.TTL)
			require.Equal(t, "of gone, of a", loadBatch(c, t.Context(), "gone a", load).vals)
			require.Equal(t, "of b", loadBatch(c, t.Context(), "b", load).vals)
		}
	})
}

// OnRemove, called for what a batch's results remove, may ask for the batch's other keys, whether
// their loads have failed or not: none of them is still in progress.
func TestLoaderBatchTime_OnRemoveAsksForItsKeys(t *testing.T) {
	for name, wrong := range map[string]error{"loaded": nil, "failed": ringtest.ErrDown} {
		t.Run(name, func(t *testing.T) {
			var c *ringcache.Cache
			load, calls, _ := slow(0, ringtest.Loaded{Value: []byte("of one")})
			heard := ""
			o := ringcache.Options{OnRemove: func(gone ringcache.Removal) {
				v, err := c.GetOrLoad(context.Background(), nil, []byte("user"), load)
				heard += fmt.Sprintf("%s: %s %v ", gone.Key, v, err)
			}}
			inBubble(t, o, func(t *testing.T, in *ringcache.Cache) {
				c = in
				require.NoError(t, c.SetWithTTL([]byte("session"), []byte("old"), time.Second))
				time.Sleep(2 * time.Second)
				r := loadBatch(c, t.Context(), "session user",
					func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
						return []ringtest.Loaded{
							{Value: []byte("new")}, {Value: []byte("of all"), Err: wrong},
						}, nil
					})
				require.ErrorIs(t, r.err, wrong)
				if wrong == nil {
					require.Equal(t, "new, of all", r.vals)
					require.Equal(t, "session: of all <nil> ", heard)
					require.Zero(t, calls.Load())
				} else {
					require.Equal(t, "new, -", r.vals)
					require.Equal(t, "session: of one <nil> ", heard)
				}
			})
		})
	}
}
