package model

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// userFunction is a place where the cache runs a function of its user's. run makes the
// cache call inner there, beside the entry of k, whose value is v.
type userFunction struct {
	name     string
	onRemove bool // inner is called by OnRemove, whatever run does
	run      func(c *ringcache.Cache, k, v []byte, inner func())
}

func userFunctions() []userFunction {
	codec := func(onAppend, onDecode func()) ringcache.Codec[[]byte] {
		return codec.Func(func(dst, v []byte) ([]byte, error) {
			onAppend()
			return append(dst, v...), nil
		}, func(data []byte) ([]byte, error) {
			onDecode()
			return bytes.Clone(data), nil
		})
	}
	none := func() {}
	return []userFunction{
		{"View", false, func(c *ringcache.Cache, k, _ []byte, inner func()) {
			ringtest.View(c, k, func([]byte) { inner() })
		}},
		{"Codec.Append", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = ringcache.NewTyped[string](c, codec(inner, none), ringcache.TypedOptions{}).Set(string(k), v)
		}},
		{"Codec.Decode", false, func(c *ringcache.Cache, k, _ []byte, inner func()) {
			_, _, _ = ringcache.NewTyped[string](c, codec(none, inner),
				ringcache.TypedOptions{}).Get(string(k))
		}},
		{"Update", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
				inner()
				return v, true
			}))
		}},
		{"Update with a TTL", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = c.Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
				inner()
				return v, true
			}, time.Hour))
		}},
		{"GetOrLoad", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			c.Del(k)
			_, _ = c.GetOrLoad(context.Background(), nil, k,
				func(context.Context, []byte) ([]byte, time.Duration, error) {
					inner()
					return v, 0, nil
				})
		}},
		{"GetOrLoadBatch", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			c.Del(k)
			_, _, _ = c.GetOrLoadBatch(context.Background(), nil, [][]byte{k}, make([][]byte, 1),
				func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
					inner()
					return []ringtest.Loaded{{Value: v}}, nil
				})
		}},
		{"Typed.Update", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = ringtest.BytesView(c).Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
				inner()
				return v, true
			}))
		}},
		{"Codec.Append in Typed.Update", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = ringcache.NewTyped[string](c, codec(inner, none), ringcache.TypedOptions{}).Update(string(k),
				ringtest.Replace(func([]byte, bool) ([]byte, bool) { return v, true }))
		}},
		{"Codec.Decode in Typed.Update", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = ringcache.NewTyped[string](c, codec(none, inner), ringcache.TypedOptions{}).Update(string(k),
				ringtest.Replace(func([]byte, bool) ([]byte, bool) { return v, true }))
		}},
		{"Codec in Typed.SetIfAbsent", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_, _, _ = ringcache.NewTyped[string](c, codec(inner, inner),
				ringcache.TypedOptions{}).SetIfAbsent(
				string(k), v, time.Hour)
		}},
		{"Codec.Append in Typed.CompareAndSwap", false,
			func(c *ringcache.Cache, k, v []byte, inner func()) {
				_, _ = ringcache.NewTyped[string](c, codec(inner, none),
					ringcache.TypedOptions{}).CompareAndSwap(
					string(k), v, v)
			}},
		{"Codec.Decode in Typed.GetBatch", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_, _ = ringcache.NewTyped[string](c, codec(none, inner), ringcache.TypedOptions{}).GetBatch(
				[]string{string(k)}, make([][]byte, 1), make([]bool, 1))
		}},
		{"Codec.Append in Typed.SetBatch", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = ringcache.NewTyped[string](c, codec(inner, none), ringcache.TypedOptions{}).SetBatch(
				[]string{string(k), string(k)}, [][]byte{v, v})
		}},
		{"Typed.GetOrLoad", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			c.Del(k)
			_, _ = ringtest.BytesView(c).GetOrLoad(context.Background(), k,
				func(context.Context, []byte) ([]byte, time.Duration, error) {
					inner()
					return v, 0, nil
				})
		}},
		{"Codec in Typed.GetOrLoad", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			c.Del(k)
			_, _ = ringcache.NewTyped[string](c, codec(inner, inner), ringcache.TypedOptions{}).GetOrLoad(
				context.Background(), string(k),
				func(context.Context, string) ([]byte, time.Duration, error) { return v, 0, nil })
		}},
		{"Typed.All", false, func(c *ringcache.Cache, _, _ []byte, inner func()) {
			for range ringcache.NewTyped[string](c, codec(none, inner), ringcache.TypedOptions{}).All() {
				inner()
			}
		}},
		{"Namespace.Update", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = c.Namespace("space").Update(k, ringtest.Replace(func([]byte, bool) ([]byte, bool) {
				inner()
				return v, true
			}))
		}},
		{"Namespace.View", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = c.Namespace("space").Set(k, v)
			ringtest.View(c.Namespace("space"), k, func([]byte) { inner() })
		}},
		{"Namespace.GetOrLoad", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_, _ = c.Namespace("space").GetOrLoad(context.Background(), nil, k,
				func(context.Context, []byte) ([]byte, time.Duration, error) {
					inner()
					return v, 0, nil
				})
		}},
		{"Namespace.All", false, func(c *ringcache.Cache, k, v []byte, inner func()) {
			_ = c.Namespace("space").Set(k, v)
			for range c.Namespace("space").All() {
				inner()
			}
		}},
		{"All", false, func(c *ringcache.Cache, _, _ []byte, inner func()) {
			for range c.All() {
				inner()
			}
		}},
		{"Keys", false, func(c *ringcache.Cache, _, _ []byte, inner func()) {
			for range c.Keys() {
				inner()
			}
		}},
		{"OnRemove of Set", true, func(c *ringcache.Cache, k, v []byte, _ func()) {
			_ = c.Set(k, v[1:])
		}},
		{"OnRemove of Del", true, func(c *ringcache.Cache, k, _ []byte, _ func()) { c.Del(k) }},
		{"OnRemove of Reset", true, func(c *ringcache.Cache, _, _ []byte, _ func()) { c.Reset() }},
		{"OnRemove of DeleteExpired", true, func(c *ringcache.Cache, k, v []byte, _ func()) {
			w := store.Write{Key: k, Value: v, Reason: store.Replaced}
			w.Last = 1 // over since the first tick
			_ = ringtest.Write(c, w)
			c.DeleteExpired()
		}},
		{"OnRemove of Resize", true, func(c *ringcache.Cache, _, _ []byte, _ func()) {
			_ = c.Resize(int(c.Stats().MaxBytesSize / 2))
		}},
	}
}

// pair is a method that is called within a function of the user's.
type pair struct {
	outer userFunction
	inner ringtest.Call
	g     ringtest.Shape
	fill  int // entries beside the two that the calls are about
	value []byte
}

// run makes the two calls, and then sees whether the cache works.
func (p pair) run() error {
	mine, other := []byte("mine"), []byte("other")
	var c *ringcache.Cache
	var armed atomic.Bool
	called := false
	inner := func() {
		if !armed.CompareAndSwap(true, false) {
			return // it is called once, and not from within itself
		}
		p.inner.Do(c, other, p.value)
		inner, inSpace := strings.CutPrefix(p.inner.Name, "Namespace.")
		loads := strings.HasPrefix(inner, "GetOrLoad") && strings.Contains(p.outer.name, "GetOrLoad") &&
			inSpace == strings.HasPrefix(p.outer.name, "Namespace.")
		if !loads { // it would wait for itself: these pass no context on
			p.inner.Do(c, mine, p.value)
		}
		called = true
	}
	if p.outer.onRemove {
		p.g.OnRemove = func(ringcache.Removal) { inner() }
	}
	c = ringtest.NewCache(p.g)
	for i := range p.fill {
		if err := c.Set(strconv.AppendInt(nil, int64(i), 10), p.value); err != nil {
			return err
		}
	}
	if err := c.SetBatch([][]byte{mine, other}, [][]byte{p.value, p.value}); err != nil {
		return err
	}
	armed.Store(true)
	p.outer.run(c, mine, p.value, inner)
	if !called {
		return errors.New("the inner call was not made: the test proves nothing")
	}
	return ringtest.Usable(c, mine, p.value)
}

// No lock is held while a function of the user's runs, so every method may be called
// there, whatever bucket it locks.
func TestUserFunctions_MayCallEveryMethod(t *testing.T) {
	t.Parallel()
	type setting struct {
		name string
		g    ringtest.Shape
		size int // of values
	}
	oneBucket, oneHash := ringtest.Tiny(1, 1024, 256), ringtest.Tiny(2, 1024, 128)
	oneHash.Seed = [2]uint64{}
	settings := []setting{
		{"one bucket", oneBucket, 10},
		{"one hash", oneHash, 10},
		{"one bucket, longest values", oneBucket, oneBucket.MaxBytes / 16},
		{"one hash, longest values", oneHash, oneHash.MaxBytes / 16},
	}
	for _, s := range settings {
		for _, outer := range userFunctions() {
			if outer.name == "OnRemove of Resize" {
				continue // it cannot make these smaller
			}
			t.Run(s.name+"/"+outer.name, func(t *testing.T) {
				var pairs []pair
				calls := ringtest.EveryCall()
				if s.name == settings[0].name || *ringtest.LongRun {
					calls = append(calls, ringtest.ViewCalls()...)
				}
				for _, inner := range calls {
					pairs = append(pairs, pair{outer, inner, s.g, 2, make([]byte, s.size)})
				}
				requireAllReturn(t, pairs)
			})
		}
	}
}

// requireAllReturn runs the pairs beside each other, and fails for each that hangs.
func requireAllReturn(t *testing.T, pairs []pair) {
	t.Helper()
	errs := make([]chan error, len(pairs))
	for i, p := range pairs {
		errs[i] = make(chan error, 1)
		go func() { errs[i] <- ringtest.InTime(p.run) }()
	}
	for i, p := range pairs {
		assert.NoError(t, <-errs[i], "%s within %s", p.inner.Name, p.outer.name)
	}
}

// Resize gives up its locks, too, while OnRemove runs.
func TestUserFunctions_MayCallEveryMethod_DuringResize(t *testing.T) {
	t.Parallel()
	g := ringtest.Tiny(1, 4096, 1024)
	for _, outer := range userFunctions() {
		if outer.name != "OnRemove of Resize" {
			continue
		}
		for _, inner := range ringtest.EveryCall() {
			// One after another: the first that hangs is enough.
			p := pair{outer, inner, g, 40, make([]byte, 1<<16)}
			require.NoError(t, ringtest.InTime(p.run), "%s within %s", inner.Name, outer.name)
		}
	}
}
