package ringcache

import (
	"cmp"
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/codec"
)

// wide is a value of fixed size, of which n bytes are stored.
type wide struct{ a, b, n uint64 }

// wideCodec is the codec of wide.
type wideCodec struct{}

// Append appends the bytes of a value.
func (wideCodec) Append(dst []byte, v wide) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, v.a)
	dst = binary.LittleEndian.AppendUint64(dst, v.b)
	for range v.n {
		dst = append(dst, 0)
	}
	return dst, nil
}

// Decode returns the value of bytes.
func (wideCodec) Decode(data []byte) (wide, error) {
	return wide{
		a: binary.LittleEndian.Uint64(data),
		b: binary.LittleEndian.Uint64(data[8:]),
		n: uint64(len(data) - 16),
	}, nil
}

// A codec that does not allocate must not meet a view that does.
func TestTyped_Allocs(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they are given")
	}
	c := mustCache(t, defaultGeometry(minMaxBytes))
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

func checkAllocs[K Key](
	t *testing.T, c *Cache, kind string, key K, prefix string, ns ...*Namespace,
) {
	t.Helper()
	n := cmp.Or(append(ns, nil)...)
	wides := viewIn[K](c, n, wideCodec{}, prefix)
	for _, n := range []uint64{0, 1 << 10, 60_000} { // in place, copied, copied
		want := wide{1, 2, n}
		zeroAllocs(t, kind, "Set", func() {
			if err := wides.Set(key, want); err != nil {
				assert.NoError(t, err)
			}
		})
		zeroAllocs(t, kind, "Get", func() {
			if v, ok, err := wides.Get(key); v != want || !ok || err != nil {
				require.Fail(t, "not what was set", "%s: %v, %v, %v", kind, v, ok, err)
			}
		})
	}
	zeroAllocs(t, kind, "Has", func() { wides.Has(key) })
	checkMethodAllocs(t, kind, wides, key)

	times := viewIn[K](c, n, codec.Binary[time.Time](), prefix)
	moment := time.Unix(1<<30, 0).UTC()
	zeroAllocs(t, kind, "Set of a time", func() { _ = times.Set(key, moment) })
	zeroAllocs(t, kind, "Get of a time", func() {
		if v, _, _ := times.Get(key); v != moment {
			require.Fail(t, "not what was set", "%s: %v", kind, v)
		}
	})
	zeroAllocs(t, kind, "Del", func() { times.Del(key) })
	zeroAllocs(t, kind, "Get of nothing", func() { _, _, _ = times.Get(key) })

	texts := viewIn[K](c, n, codec.String[string](), prefix)
	_ = texts.Set(key, "a text")
	get := func() { _, _, _ = texts.Get(key) }
	assert.EqualValues(t, 1, testing.AllocsPerRun(100, get), "%s: Get of a string", kind)
}

// checkMethodAllocs goes through the methods, with a value that is there.
func checkMethodAllocs[K Key](t *testing.T, kind string, wides *Typed[K, wide], key K) {
	t.Helper()
	v, ctx := wide{1, 2, 40}, context.Background()
	load := func(context.Context, K) (wide, time.Duration, error) { return v, 0, nil }
	half := func(old wide, _ bool) (wide, bool) { old.n /= 2; return old, true }
	keys, vals, found := make([]K, 100), make([]wide, 100), make([]bool, 100)
	for i := range keys {
		keys[i], vals[i] = key, v
	}
	_ = wides.Set(key, v)
	zeroAllocs(t, kind, "GetOrLoad", func() {
		if got, err := wides.GetOrLoad(ctx, key, load); got != v || err != nil {
			require.Fail(t, "not what was set", "%s: %v, %v", kind, got, err)
		}
	})
	zeroAllocs(t, kind, "GetBatch", func() {
		if hits, err := wides.GetBatch(keys, vals, found); hits != len(keys) || err != nil {
			require.Fail(t, "not what was set", "%s: %v, %v", kind, hits, err)
		}
	})
	for name, call := range map[string]func(){
		"SetBatch":     func() { _ = wides.SetBatch(keys, vals) },
		"SetWithTTL":   func() { _ = wides.SetWithTTL(key, v, time.Hour) },
		"SetIfAbsent":  func() { _, _ = wides.SetIfAbsent(key, v) },
		"SetIfChanged": func() { _, _ = wides.SetIfChanged(key, v) },
		"Update":       func() { _ = wides.Update(key, half) },
		"SetIfAbsentWithTTL": func() {
			_, _, _ = wides.SetIfAbsentWithTTL(key, v, time.Hour)
		},
		"SetBatchWithTTL": func() { _ = wides.SetBatchWithTTL(keys, vals, time.Hour) },
		"CompareAndSwap":  func() { _, _ = wides.CompareAndSwap(key, v, v) },
		"UpdateWithTTL":   func() { _ = wides.UpdateWithTTL(key, time.Hour, half) },
		"Peek":            func() { _, _, _ = wides.Peek(key) },
		"GetWithTTL":      func() { _, _, _, _ = wides.GetWithTTL(key) },
		"Touch":           func() { wides.Touch(key, time.Hour) },
		"TTL":             func() { wides.TTL(key) },
		"GetAndDel":       func() { _, _, _ = wides.GetAndDel(key); _ = wides.Set(key, v) },
	} {
		zeroAllocs(t, kind, name, call)
	}
}

// zeroAllocs fails the test if fn allocates.
func zeroAllocs(t *testing.T, kind, call string, fn func()) {
	t.Helper()
	assert.Zero(t, testing.AllocsPerRun(200, fn), "allocations of %s: %s", kind, call)
}
