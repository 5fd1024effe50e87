package views

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A codec that does not allocate must not meet a view that does.
func TestTyped_Allocs(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("under the race detector pools drop what they are given")
	}
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	ns := c.Namespace("n")
	checkAllocs(t, c, "string in a namespace", "key", "prefix:", ns)
	checkAllocs(t, c, "int in a namespace", 77, "", ns)
	checkAllocs(t, c, "string", strings.Repeat("k", 1000), "")
	checkAllocs(t, c, "string and prefix", strings.Repeat("k", 100), "a prefix of 28 characters...")
	checkAllocs(t, c, "bytes", []byte("key"), "")
	checkAllocs(t, c, "bytes and prefix", []byte("key"), "prefix:")
	checkAllocs(t, c, "uint64", uint64(1)<<40, "")
	checkAllocs(t, c, "int and prefix", -1<<20, "prefix:")
	checkAllocs(t, c, "uint8", uint8(200), "")
}

func checkAllocs[K ringcache.Key](
	t *testing.T, c *ringcache.Cache, kind string, key K, prefix string, ns ...*ringcache.Cache,
) {
	t.Helper()
	n := cmp.Or(append(ns, nil)...)
	wides := viewIn[K](c, n, ringtest.WideCodec{}, prefix)
	for _, n := range []uint64{0, 1 << 10, 60_000} { // in place, copied, copied
		want := ringtest.Wide{A: 1, B: 2, N: n}
		ringtest.ZeroAllocs(t, kind, "Set", func() {
			if err := wides.Set(key, want); err != nil {
				assert.NoError(t, err)
			}
		})
		ringtest.ZeroAllocs(t, kind, "Get", func() {
			if v, ok, err := wides.Get(key); v != want || !ok || err != nil {
				require.Fail(t, "not what was set", "%s: %v, %v, %v", kind, v, ok, err)
			}
		})
	}
	ringtest.ZeroAllocs(t, kind, "Has", func() { wides.Has(key) })
	checkMethodAllocs(t, kind, wides, key)
	memo := codec.Memo(ringtest.WideCodec{}, 4, 1<<20)
	checkMethodAllocs(t, kind+" with a memo", viewIn[K](c, n, memo, prefix), key)

	times := viewIn[K](c, n, codec.Binary[time.Time](), prefix)
	moment := time.Unix(1<<30, 0).UTC()
	ringtest.ZeroAllocs(t, kind, "Set of a time", func() { _ = times.Set(key, moment) })
	ringtest.ZeroAllocs(t, kind, "Get of a time", func() {
		if v, _, _ := times.Get(key); v != moment {
			require.Fail(t, "not what was set", "%s: %v", kind, v)
		}
	})
	ringtest.ZeroAllocs(t, kind, "Del", func() { times.Del(key) })
	ringtest.ZeroAllocs(t, kind, "Get of nothing", func() { _, _, _ = times.Get(key) })

	texts := viewIn[K](c, n, codec.String[string](), prefix)
	_ = texts.Set(key, "a text")
	get := func() { _, _, _ = texts.Get(key) }
	assert.EqualValues(t, 1, testing.AllocsPerRun(100, get), "%s: Get of a string", kind)
}

// checkMethodAllocs goes through the methods, with a value that is there.
func checkMethodAllocs[K ringcache.Key](
	t *testing.T, kind string, wides *ringcache.Typed[K, ringtest.Wide], key K,
) {
	t.Helper()
	v, ctx := ringtest.Wide{A: 1, B: 2, N: 40}, context.Background()
	load := func(context.Context, K) (ringtest.Wide, time.Duration, error) { return v, 0, nil }
	half := func(old ringtest.Wide, _ bool) (ringtest.Wide, bool) { old.N /= 2; return old, true }
	keys, vals, found := make([]K, 100), make([]ringtest.Wide, 100), make([]bool, 100)
	for i := range keys {
		keys[i], vals[i] = key, v
	}
	_ = wides.Set(key, v)
	ringtest.ZeroAllocs(t, kind, "Get", func() {
		if got, ok, err := wides.Get(key); got != v || !ok || err != nil {
			require.Fail(t, "not what was set", "%s: %v, %v, %v", kind, got, ok, err)
		}
	})
	ringtest.ZeroAllocs(t, kind, "GetOrLoad", func() {
		if got, err := wides.GetOrLoad(ctx, key, load); got != v || err != nil {
			require.Fail(t, "not what was set", "%s: %v, %v", kind, got, err)
		}
	})
	ringtest.ZeroAllocs(t, kind, "GetBatch", func() {
		if hits, err := wides.GetBatch(keys, vals, found); hits != len(keys) || err != nil {
			require.Fail(t, "not what was set", "%s: %v, %v", kind, hits, err)
		}
	})
	for name, call := range map[string]func(){
		"SetBatch":     func() { _ = wides.SetBatch(keys, vals) },
		"SetWithTTL":   func() { _ = wides.SetWithTTL(key, v, time.Hour) },
		"SetIfChanged": func() { _, _ = wides.SetIfChanged(key, v) },
		"Update":       func() { _ = wides.Update(key, ringtest.Replace(half)) },
		"SetIfAbsent": func() {
			_, _, _ = wides.SetIfAbsent(key, v, time.Hour)
		},
		"SetBatchWithTTL": func() { _ = wides.SetBatchWithTTL(keys, vals, time.Hour) },
		"CompareAndSwap":  func() { _, _ = wides.CompareAndSwap(key, v, v) },
		"Update, TTL":     func() { _ = wides.Update(key, ringtest.Replace(half, time.Hour)) },
		"Peek":            func() { _, _, _ = wides.Peek(key) },
		"GetWithTTL":      func() { _, _, _, _ = wides.GetWithTTL(key) },
		"Touch":           func() { wides.Touch(key, time.Hour) },
		"TTL":             func() { wides.TTL(key) },
		"GetAndDel":       func() { _, _, _ = wides.GetAndDel(key); _ = wides.Set(key, v) },
	} {
		ringtest.ZeroAllocs(t, kind, name, call)
	}
}
