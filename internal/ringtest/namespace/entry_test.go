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
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// dropEntry has the record of a namespace's generation leave, as the policy may, and reports
// whether it was there.
func dropEntry(n *ringcache.Cache) (found bool) {
	of := testhook.PartsOf(n)
	c := of.Whole.(*ringcache.Cache)
	w := store.Write{Key: of.Entry, Kind: record.Internal, Reason: store.Evicted}
	w.Hash = ringtest.Shared(c).HashOf(of.Entry, w.Kind)
	ringtest.Change(c, int(ringtest.BucketOf(c, w.Hash).Number), func(b *store.Store) {
		found = b.Delete(&w, nil)
	})
	return found
}

// stored returns the generation in the record of a namespace.
func stored(n *ringcache.Cache) (g uint64, ok bool) {
	of := testhook.PartsOf(n)
	c := of.Whole.(*ringcache.Cache)
	h := ringtest.Shared(c).HashOf(of.Entry, record.Internal)
	b := ringtest.BucketOf(c, h)
	b.Mu.Lock()
	defer b.Mu.Unlock()
	var f store.Found
	if !b.Find(&f, of.Entry, h) {
		return 0, false
	}
	v, _ := f.Ring.Read(nil, f.ValuePos(), f.ValueLen)
	return binary.LittleEndian.Uint64(v), true
}

// No key of a user's reaches the record of a namespace, in a file or a snapshot neither: to set
// the key that it lies under is to set another entry.
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

// The records of namespaces are the cache's own: no lookup, write, loop or count shows them.
func TestNamespace_RecordsAreNotSeen(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	g := ringtest.Roomy(0)
	g.OnRemove = func(gone ringcache.Removal) { assert.Equal(t, "a value", string(gone.Value)) }
	c := ringtest.MustOpen(t, g, filepath.Join(t.TempDir(), "cache"))
	const names = 20
	// long ones too
	n := func(i int) *ringcache.Cache { return c.Namespace(strings.Repeat("n", i*40)) }
	unseen := func(when string) {
		t.Helper()
		for i := range names {
			for _, in := range []*ringcache.Cache{c, n(i)} {
				k := testhook.PartsOf(n(i)).Entry
				require.False(t, in.Has(k), when)
				require.False(t, in.Del(k), when)
				require.False(t, in.Touch(k, time.Hour), when)
			}
			g, ok := stored(n(i))
			require.True(t, ok, when)
			require.Equal(t, testhook.PartsOf(n(i)).Generation.Load(), g, when)
		}
		for k := range c.Keys() {
			require.Fail(t, "Keys shows it", "%s: %q", when, k)
		}
		require.Zero(t, c.Len(), when)
		require.Zero(t, c.Stats().EntriesCount, when)
		require.NoError(t, ringtest.Validate(c))
	}
	unseen("when they are stored")
	for i := range names { // the same keys, of users
		require.NoError(t, c.Set(testhook.PartsOf(n(i)).Entry, []byte("a value")))
	}
	require.Equal(t, names, c.Len())
	for k, v := range c.All() {
		require.Equal(t, "a value", string(v))
		require.True(t, c.Del(k))
	}
	unseen("after entries of the same keys")
	c.Reset()
	unseen("after Reset")
	require.NoError(t, c.Close())
}

// Any bytes will do as a name, as long as it comes back after a restart where the entry has
// room for it.
func TestNamespace_Names(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	longest := 65535 - len(reservedPrefix)
	names := map[string]bool{
		"":                             true,
		"\x00":                         true,
		"\xff\xfe":                     true,
		reservedPrefix:                 true,
		strings.Repeat("n", 20_000):    true, // a large entry
		strings.Repeat("n", longest):   true,
		strings.Repeat("n", longest+1): false,
		strings.Repeat("n", 2*longest): false,
	}
	k := []byte("k")
	c := ringtest.OpenFile(t, path, ringtest.MinBytes)
	for name := range names {
		require.NoError(t, c.Namespace(name).Set(k, []byte(name)[:min(len(name), 10)]))
	}
	for name := range names {
		v, ok := c.Namespace(name).HasGet(nil, k)
		require.True(t, ok)
		require.Equal(t, name[:min(len(name), 10)], string(v))
	}
	require.NoError(t, c.Close())
	c = ringtest.OpenFile(t, path, ringtest.MinBytes)
	for name, back := range names {
		require.Equal(t, back, c.Namespace(name).Has(k), "%d bytes", len(name))
	}
	for name := range names {
		c.Namespace(name).Reset()
		require.False(t, c.Namespace(name).Has(k))
	}
	require.NoError(t, c.Close())
	c = ringtest.OpenFile(t, path, ringtest.MinBytes)
	for name := range names {
		require.False(t, c.Namespace(name).Has(k), "%d bytes", len(name))
	}
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
