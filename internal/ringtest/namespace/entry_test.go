package namespace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/testhook"
)

// No key of the whole cache reaches an entry of a namespace, in a file or a snapshot neither.
func TestNamespace_CannotBeForged(t *testing.T) {
	forged := []byte("a guess!") // 8 bytes, as a generation has
	under := []byte(reservedPrefix + "prices")
	attack := func(c *ringcache.Cache) {
		require.NoError(t, c.Set(under, forged))
		require.NoError(t, c.Set(append(bytes.Clone(forged), "apple"...), []byte("free")))
	}
	check := func(t *testing.T, c *ringcache.Cache, want string) {
		n := c.Namespace("prices")
		require.Equal(t, want, string(n.Get(nil, []byte("apple"))))
		require.Equal(t, string(forged), string(c.Get(nil, under)), "it is an entry as others")
		require.NotEqual(t, binary.LittleEndian.Uint64(forged), testhook.PartsOf(n).Generation.Load())
		require.NoError(t, ringtest.Validate(c))
	}
	for _, want := range []string{"", "1 euro"} { // the namespace is new, or there already
		begin := func(c *ringcache.Cache) {
			attack(c)
			if want != "" {
				require.NoError(t, c.Namespace("prices").Set([]byte("apple"), []byte(want)))
				attack(c)
			}
		}
		path := filepath.Join(t.TempDir(), "cache")
		c := ringtest.OpenFile(t, path, ringtest.MinBytes)
		begin(c)
		var snap bytes.Buffer
		_, err := c.WriteSnapshot(&snap)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		c = ringtest.OpenFile(t, path, ringtest.MinBytes)
		check(t, c, want)
		require.NoError(t, c.Close())

		c = ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
		_, err = c.ReadSnapshot(&snap)
		require.NoError(t, err)
		check(t, c, want)
	}
}

// Any bytes will do as a name, and any length: it comes back from a file, and from a snapshot.
func TestNamespace_Names(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	names := []string{"", "\x00", "\xff\xfe", "zero\x00", "zero", strings.Repeat("n", 65_535),
		strings.Repeat("n", 200_000)}
	k := []byte("k")
	requireFound := func(c *ringcache.Cache) {
		t.Helper()
		for _, name := range names {
			v, ok := c.Namespace(name).HasGet(nil, k)
			require.True(t, ok, "%d bytes", len(name))
			require.Equal(t, name[:min(len(name), 10)], string(v))
		}
	}
	c := ringtest.OpenFile(t, path, ringtest.MinBytes)
	for _, name := range names {
		require.NoError(t, c.Namespace(name).Set(k, []byte(name)[:min(len(name), 10)]))
	}
	requireFound(c)
	var snap bytes.Buffer
	_, err := c.WriteSnapshot(&snap)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	c = ringtest.OpenFile(t, path, ringtest.MinBytes)
	requireFound(c)
	for _, name := range names {
		c.Namespace(name).Reset()
		require.False(t, c.Namespace(name).Has(k))
	}
	require.NoError(t, c.Close())
	c = ringtest.OpenFile(t, path, ringtest.MinBytes)
	for _, name := range names {
		require.False(t, c.Namespace(name).Has(k), "%d bytes", len(name))
	}
	_, err = c.ReadSnapshot(&snap)
	require.NoError(t, err)
	requireFound(c)
	require.NoError(t, c.Close())
}

// Whoever asks after an Invalidate gets nothing from before it: not from a load that was under
// way, not from a batch or a loop, and not by a view, whatever happens to the generation's entry.
func TestNamespace_InvalidateAmongLoads(t *testing.T) {
	g := ringtest.Tiny(4, 512, 64)
	g.RefreshAhead, g.TTL = time.Hour, time.Hour // each hit is due
	c := ringtest.MustCache(t, g)
	n := c.Namespace("n")
	view := ringcache.NewTyped[byte](n, codec.Func(
		func(dst []byte, v uint64) ([]byte, error) { return binary.BigEndian.AppendUint64(dst, v), nil },
		func(b []byte) (uint64, error) { return binary.BigEndian.Uint64(b), nil },
	), ringcache.TypedOptions{Prefix: "view:"})
	var source, ended, hits atomic.Uint64
	var stop atomic.Bool
	load := func(context.Context, byte) (uint64, time.Duration, error) {
		return source.Load(), 0, nil
	}
	ask := func(i int) {
		least, k := ended.Load(), byte(i%7)
		check := func(v uint64) {
			hits.Add(1)
			assert.GreaterOrEqual(t, v, least, "it was invalidated")
		}
		switch i % 5 {
		case 0, 1:
			v, err := view.GetOrLoad(t.Context(), k, load)
			assert.NoError(t, err)
			check(v)
		case 2:
			vals, found := make([]uint64, 7), make([]bool, 7)
			_, err := view.GetBatch([]byte{0, 1, 2, 3, 4, 5, 6}, vals, found)
			assert.NoError(t, err)
			for i, ok := range found {
				if ok {
					check(vals[i])
				}
			}
		case 3:
			for _, v := range view.All() {
				check(v)
			}
		default:
			out, err := n.GetOrLoad(t.Context(), nil, []byte("view:x"),
				func(context.Context, []byte) ([]byte, time.Duration, error) {
					return binary.BigEndian.AppendUint64(nil, source.Load()), 0, nil
				})
			assert.NoError(t, err)
			check(binary.BigEndian.Uint64(out))
		}
	}
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; !stop.Load(); i++ {
				ask(i)
			}
		}()
	}
	for i := range 1000 {
		version := source.Add(1)
		if i%16 == 11 {
			c.Reset()
		}
		n.Reset()
		ended.Store(version)
		ask(i)
	}
	stop.Store(true)
	wg.Wait()
	require.NotZero(t, hits.Load())
	require.NoError(t, ringtest.Validate(c))
}

// A stale value that cannot be decoded is as one that was loaded: the load's error is not seen.
func TestTyped_StaleValueThatCannotBeDecoded(t *testing.T) {
	now := time.Duration(0)
	g := ringtest.Roomy(0)
	g.Elapsed, g.StaleIfError = func() time.Duration { return now }, time.Hour
	c := ringtest.MustCache(t, g)
	view := ringcache.NewTyped[string](c, codec.JSON[int](), ringcache.TypedOptions{})
	require.NoError(t, c.SetWithTTL([]byte("k"), []byte("no number"), time.Second))
	now = time.Minute
	v, err := view.GetOrLoad(t.Context(), "k",
		func(context.Context, string) (int, time.Duration, error) {
			return 1, 0, errors.New("the source is down")
		})
	require.ErrorIs(t, err, ringcache.ErrDecode)
	require.Zero(t, v)
	v, err = view.GetOrLoad(t.Context(), "k",
		func(context.Context, string) (int, time.Duration, error) { return 2, 0, nil })
	require.NoError(t, err)
	require.Equal(t, 2, v)
}

// A namespace takes nothing from the Go heap for a key of up to 120 bytes, nor do its views
// for what Typed says, nor does Invalidate.
func TestNamespace_Allocs(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("under the race detector pools drop what they are given")
	}
	n := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes)).Namespace("n")
	k, v, buf := make([]byte, 120), make([]byte, 100), make([]byte, 0, 8000)
	keys, vals, out := make([][]byte, 50), make([][]byte, 50), make([][]byte, 50)
	for i := range keys {
		keys[i], vals[i] = []byte{byte(i)}, v
	}
	keep := func(old []byte, _ bool) ([]byte, bool) { return v, true }
	load := func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil }
	see := func(*ringtest.Entry) {}
	ctx := context.Background()
	for call, fn := range map[string]func(){
		"Set":             func() { _ = n.Set(k, v) },
		"SetWithTTL":      func() { _ = n.SetWithTTL(k, v, time.Minute) },
		"SetIfAbsent":     func() { _, _, _ = n.SetIfAbsent(buf, k, v, time.Minute) },
		"CompareAndSwap":  func() { _, _ = n.CompareAndSwap(k, v, v) },
		"Update, TTL":     func() { _ = n.Update(k, ringtest.Replace(keep, time.Minute)) },
		"Append":          func() { _ = n.Set(k, v); _ = n.Update(k, ringtest.Append(v)) },
		"Peek":            func() { n.Peek(buf, k) },
		"GetWithTTL":      func() { n.GetWithTTL(buf, k) },
		"SetBatchWithTTL": func() { _ = n.SetBatchWithTTL(keys, vals, time.Minute) },
		"SetIfChanged":    func() { _, _ = n.SetIfChanged(k, v) },
		"SetBatch":        func() { _ = n.SetBatch(keys, vals) },
		"Update":          func() { _ = n.Update(k, ringtest.Replace(keep)) },
		"Get":             func() { n.Get(buf, k) },
		"HasGet":          func() { n.HasGet(buf, k) },
		"Has":             func() { n.Has(k) },
		"Update, nothing": func() { _ = n.Update(k, see) },
		"GetBatch":        func() { n.GetBatch(buf, keys, out) },
		"GetOrLoad":       func() { _ = n.Set(k, v); _, _ = n.GetOrLoad(ctx, buf, k, load) },
		"Touch":           func() { n.Touch(k, time.Minute) },
		"TTL":             func() { n.TTL(k) },
		"Del":             func() { n.Del(k) },
		"GetAndDel":       func() { n.GetAndDel(buf, k) },
		"Stats":           func() { n.Stats() },
	} {
		ringtest.ZeroAllocs(t, "a namespace", call, fn)
	}
	view := ringcache.NewTyped[string](n, ringtest.WideCodec{}, ringcache.TypedOptions{Prefix: "p:"})
	key := strings.Repeat("k", 120-len("p:"))
	ask := func(context.Context, string) (ringtest.Wide, time.Duration, error) {
		return ringtest.Wide{}, 0, nil
	}
	ringtest.ZeroAllocs(t, "a view", "Set and Get", func() {
		_ = view.Set(key, ringtest.Wide{A: 1, B: 2, N: 3})
		if v, ok, err := view.Get(key); v != (ringtest.Wide{A: 1, B: 2, N: 3}) || !ok || err != nil {
			require.Fail(t, "not what was set", "%v, %v, %v", v, ok, err)
		}
	})
	ringtest.ZeroAllocs(t, "a view", "GetOrLoad", func() { _, _ = view.GetOrLoad(ctx, key, ask) })
}
