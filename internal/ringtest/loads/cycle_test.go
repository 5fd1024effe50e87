package loads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// asker asks a cache for a key, and loads it by a function if need be. It is one of the ways of
// doing so.
type asker func(
	ctx context.Context, c *ringcache.Cache, k string, load ringtest.LoadFunc,
) ([]byte, error)

// askers are all ways. Of a batch, the error is that of the key.
var askers = map[string]asker{
	"GetOrLoad": func(
		ctx context.Context, c *ringcache.Cache, k string, load ringtest.LoadFunc,
	) ([]byte, error) {
		return c.GetOrLoad(ctx, nil, []byte(k), load)
	},
	"GetOrLoadBatch": func(
		ctx context.Context, c *ringcache.Cache, k string, load ringtest.LoadFunc,
	) ([]byte, error) {
		vals := make([][]byte, 1)
		_, _, err := c.GetOrLoadBatch(ctx, nil, [][]byte{[]byte(k)}, vals, ringtest.OfOne(load))
		return vals[0], err
	},
	"Namespace": func(
		ctx context.Context, c *ringcache.Cache, k string, load ringtest.LoadFunc,
	) ([]byte, error) {
		return c.Namespace("n").GetOrLoad(ctx, nil, []byte(k), load)
	},
	"Typed": func(
		ctx context.Context, c *ringcache.Cache, k string, load ringtest.LoadFunc,
	) ([]byte, error) {
		view := ringcache.NewTyped[string](c, codec.Bytes[[]byte](), ringcache.TypedOptions{Prefix: "t"})
		return view.GetOrLoad(ctx, k, func(ctx context.Context, k string) (
			[]byte, time.Duration, error) {
			return load(ctx, []byte(k))
		})
	},
	"Typed batch": func(
		ctx context.Context, c *ringcache.Cache, k string, load ringtest.LoadFunc,
	) ([]byte, error) {
		view := ringcache.NewTyped[string](c.Namespace("t"), codec.Bytes[[]byte](),
			ringcache.TypedOptions{})
		vals := make([][]byte, 1)
		_, err := view.GetOrLoadBatch(ctx, []string{k}, vals, make([]bool, 1),
			func(ctx context.Context, keys []string) ([]ringtest.Loaded, error) {
				v, _, err := load(ctx, []byte(keys[0]))
				return []ringtest.Loaded{{Value: v}}, err
			})
		return vals[0], err
	},
}

// A load that asks for its own key, be it by way of others or in another goroutine, gets an
// error that names the keys, and so does the caller.
func TestLoaderCycle_NamesTheKeys(t *testing.T) {
	inGoroutine := func(fn func() ([]byte, error)) ([]byte, error) {
		ch := make(chan ringtest.Reply)
		go func() {
			v, err := fn()
			ch <- ringtest.Reply{V: v, Err: err}
		}()
		r := <-ch
		return r.V, r.Err
	}
	for name, ask := range askers {
		for _, length := range []int{1, 2, 3, 40} {
			t.Run(fmt.Sprint(name, length), func(t *testing.T) {
				c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
				var load ringtest.LoadFunc
				load = func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
					var at int
					_, _ = fmt.Sscanf(string(k), "key%d.", &at)
					v, err := inGoroutine(func() ([]byte, error) {
						return ask(ctx, c, fmt.Sprintf("key%d.", (at+1)%length), load)
					})
					return v, 0, err
				}
				err := ringtest.InTime(func() error {
					_, err := ask(t.Context(), c, "key0.", load)
					return err
				})
				require.ErrorIs(t, err, ringcache.ErrLoadCycle)
				_, circle, _ := strings.Cut(err.Error(), "\"")
				for i := range length { // each after the one before, and the first once more
					_, after, found := strings.Cut(circle, fmt.Sprintf("key%d.\"", i))
					require.True(t, found, "%d in %s", i, err)
					circle = after
				}
				require.Contains(t, circle, "key0.\"")
				require.EqualValues(t, length, c.Stats().Loads.Errors)
			})
		}
	}
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	b := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		_, err := c.GetOrLoad(ctx, nil, []byte("a"), ringtest.NeverLoads)
		return nil, 0, err
	}
	_, err := c.GetOrLoad(t.Context(), nil, []byte("a"),
		func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
			r := loadBatch(c, ctx, "b", ringtest.OfOne(ringtest.LoadFunc(b)))
			return nil, 0, r.err
		})
	require.EqualError(t, err, "ringcache: load entry: ringcache: load batch: index 0: "+
		`ringcache: load entry: "a" -> "b" -> "a": loads wait for each other in a cycle`)
}

// Loads that others have begun close a circle too: of two that wait for each other, one gets
// the error, and with it both callers.
func TestLoaderCycle_Crosswise(t *testing.T) {
	c, other := ringtest.LoaderCache(t), ringtest.LoaderCache(t)
	for name, tt := range map[string]struct{ first, second, asksFirst, asksSecond string }{
		"keys":               {"a", "b", "b", "a"},
		"keys of batches":    {"a x", "b y", "y", "x"}, // no key depends on itself
		"batches of batches": {"a x", "b y", "c y d", "e x f"},
	} {
		for _, second := range []*ringcache.Cache{c, other} {
			t.Run(name, func(t *testing.T) {
				begun := []chan struct{}{make(chan struct{}), make(chan struct{})}
				load := func(me int, in *ringcache.Cache, asks string) ringtest.BatchLoadFunc {
					return func(ctx context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
						close(begun[me])
						<-begun[1-me]
						r := loadBatch(in, ctx, asks, new(ringtest.Echo).Load)
						return make([]ringtest.Loaded, len(keys)), r.err
					}
				}
				a := askBatch(t.Context(), c, tt.first, load(0, second, tt.asksFirst))
				b := askBatch(t.Context(), second, tt.second, load(1, c, tt.asksSecond))
				require.NoError(t, ringtest.InTime(func() error {
					assert.ErrorIs(t, (<-a).err, ringcache.ErrLoadCycle)
					assert.ErrorIs(t, (<-b).err, ringcache.ErrLoadCycle)
					return nil
				}))
				c.Reset()
				other.Reset()
			})
		}
	}
}

// A load that can do without the other value goes on after the error, and its caller never
// hears of it.
func TestLoaderCycle_MayBeSurvived(t *testing.T) {
	c := ringtest.LoaderCache(t)
	_, err := c.GetOrLoad(t.Context(), nil, []byte("a"),
		func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
			_, err := c.GetOrLoad(ctx, nil, k, ringtest.NeverLoads)
			assert.ErrorIs(t, err, ringcache.ErrLoadCycle)
			r := loadBatch(c, ctx, "b a c", new(ringtest.Echo).Load)
			assert.ErrorIs(t, r.err, ringcache.ErrLoadCycle)
			assert.Equal(t, "of b, -, of c", r.vals)
			return []byte("value"), 0, nil
		})
	require.NoError(t, err)
	require.Equal(t, "value", string(c.Get(nil, []byte("a"))))
	require.EqualValues(t, 0, c.Stats().Loads.Errors)
}

// A load that writes its own key, or deletes it, is no circle: there is nothing to wait for.
func TestLoaderCycle_NotOfWhatIsWritten(t *testing.T) {
	c := ringtest.LoaderCache(t)
	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		c.Del(k)
		v, err := c.GetOrLoad(ctx, nil, k, func(context.Context, []byte) ([]byte, time.Duration, error) {
			return []byte("inner"), 0, nil
		})
		return append(v, " and outer"...), 0, err
	}
	v, err := c.GetOrLoad(t.Context(), nil, []byte("a"), load)
	require.NoError(t, err)
	require.Equal(t, "inner and outer", string(v))
	require.Equal(t, "inner", string(c.Get(nil, []byte("a"))))
}

// A refresh that outlives its entry and then asks for its own key does not wait for itself.
func TestLoaderCycle_OfARefresh(t *testing.T) {
	g := ringtest.Tiny(4, 1024, 16)
	var now time.Duration
	g.Elapsed = func() time.Duration { return now }
	g.RefreshAhead = time.Minute
	c := ringtest.MustCache(t, g)
	k, errs, gate := []byte("key"), make(chan error, 1), make(chan struct{})
	require.NoError(t, c.SetWithTTL(k, nil, 30*time.Second))
	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		<-gate
		_, err := c.GetOrLoad(ctx, nil, k, ringtest.NeverLoads)
		errs <- err
		return nil, 0, err
	}
	_, err := c.GetOrLoad(t.Context(), nil, k, load)
	require.NoError(t, err)
	now = time.Hour // nobody reads it meanwhile
	close(gate)
	require.ErrorIs(t, <-errs, ringcache.ErrLoadCycle)
}

// Loads of loads at random, alone and in batches, by many callers at once: all end, with the
// value, or, where keys depend on themselves, with the error.
func TestLoaderCycle_Random(t *testing.T) {
	const layers, width, workers = 6, 4, 6
	for seed := range uint64(30 * ringtest.Rounds()) {
		rnd := ringtest.NewRand(seed)
		n := loadNet{c: ringtest.LoaderCache(t), needs: map[string][]string{}, failing: map[string]bool{}}
		for i := range layers * width {
			key := fmt.Sprint(i)
			for range rnd.IntN(3) {
				if i >= width { // of the layer below
					n.needs[key] = append(n.needs[key], fmt.Sprint((i/width-1)*width+rnd.IntN(width)))
				}
			}
		}
		if seed%2 == 1 { // some circles
			for range 2 {
				from := fmt.Sprint(rnd.IntN(width))
				n.needs[from] = append(n.needs[from], fmt.Sprint(rnd.IntN(layers*width)))
			}
		}
		n.findCircles()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				rnd := ringtest.NewRand(seed<<8 + uint64(w))
				for range 20 {
					key := fmt.Sprint(rnd.IntN(layers * width))
					if rnd.IntN(5) == 0 {
						n.c.Del([]byte(key))
					}
					v, err := n.get(context.Background(), key, rnd)
					n.check(t, key, v, err, seed%2 == 1)
				}
			}()
		}
		require.NoError(t, ringtest.InTime(func() error { wg.Wait(); return nil }), "seed %d", seed)
		require.NoError(t, ringtest.Validate(n.c))
	}
}

// loadNet is keys whose loads need other keys.
type loadNet struct {
	c       *ringcache.Cache
	needs   map[string][]string
	failing map[string]bool // depends on a circle
}

// findCircles finds the keys that depend on a circle.
func (n *loadNet) findCircles() {
	done := map[string]bool{} // does not
	for more := true; more; {
		more = false
		for i := range 64 {
			key, left := fmt.Sprint(i), 0
			for _, k := range n.needs[key] {
				if !done[k] {
					left++
				}
			}
			if left == 0 && !done[key] {
				done[key], more = true, true
			}
		}
	}
	for key := range n.needs {
		n.failing[key] = !done[key]
	}
}

// get asks for a key in one of two ways.
func (n *loadNet) get(ctx context.Context, key string, rnd *rand.Rand) ([]byte, error) {
	way, seed := askers["GetOrLoad"], rnd.Uint64()
	if rnd.IntN(2) == 0 {
		way = askers["GetOrLoadBatch"]
	}
	return way(ctx, n.c, key, func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		return n.load(ctx, string(k), ringtest.NewRand(seed))
	})
}

// load joins the values of the keys that are needed, which it asks for side by side or all at
// once.
func (n *loadNet) load(
	ctx context.Context, key string, rnd *rand.Rand,
) ([]byte, time.Duration, error) {
	needs := n.needs[key]
	vals, errs := make([][]byte, len(needs)), make([]error, len(needs)+1)
	if rnd.IntN(2) == 0 {
		seed := rnd.Uint64()
		_, _, errs[0] = n.c.GetOrLoadBatch(ctx, nil, keysOf(strings.Join(needs, " ")), vals,
			func(ctx context.Context, keys [][]byte) (all []ringtest.Loaded, err error) {
				for i, k := range keys {
					v, _, failed := n.load(ctx, string(k), ringtest.NewRand(seed+uint64(i)))
					all, err = append(all, ringtest.Loaded{Value: v}), errors.Join(err, failed)
				}
				return all, err
			})
	} else {
		var wg sync.WaitGroup
		for i, k := range needs {
			wg.Add(1)
			seed := rnd.Uint64()
			go func() {
				defer wg.Done()
				vals[i], errs[i] = n.get(ctx, k, ringtest.NewRand(seed))
			}()
		}
		wg.Wait()
	}
	return append([]byte(key+" "), bytes.Join(vals, nil)...), 0, errors.Join(errs...)
}

// check fails the test unless an answer is the value of the key or the right error.
func (n *loadNet) check(t *testing.T, key string, v []byte, err error, circles bool) {
	switch {
	case err != nil && circles: // one load for several keys fails for all of them
		assert.ErrorIs(t, err, ringcache.ErrLoadCycle, "key %s", key)
	case err != nil || n.failing[key]:
		assert.Fail(t, "loaded", "key %s: %v, %q, needs %v", key, err, v, n.needs)
	default:
		assert.Equal(t, n.value(key), string(v), "key %s", key)
	}
}

// value returns the value of a key that is in no circle.
func (n *loadNet) value(key string) string {
	s := key + " "
	for _, k := range n.needs[key] {
		s += n.value(k)
	}
	return s
}

// The error names keys as their callers wrote them, in a namespace too.
func TestLoader_CycleNamesTheKeysOfANamespace(t *testing.T) {
	n := ringtest.MustCache(t, ringtest.Roomy(0)).Namespace("n")
	var load ringcache.LoadFunc[[]byte, []byte]
	load = func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		v, err := n.GetOrLoad(ctx, nil, k, load)
		return v, 0, err
	}
	_, err := n.GetOrLoad(t.Context(), nil, []byte("own"), load)
	require.ErrorIs(t, err, ringcache.ErrLoadCycle)
	require.ErrorContains(t, err, `"own" -> "own"`)
}
