package namespace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestNamespace_EqualNamesShareOne(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	a, same, b := c.Namespace("a"), c.Namespace("a"), c.Namespace("b")
	k := []byte("k")
	require.NoError(t, a.Set(k, []byte("1")))
	require.True(t, same.Has(k))
	require.False(t, b.Has(k))
	require.False(t, c.Has(k))
	require.Same(t, a, same)
	require.NotEqual(t, a.Stats(), b.Stats())
	same.Reset()
	require.False(t, a.Has(k))
	want := ringcache.Stats{GetCalls: 2, Misses: 1, SetCalls: 1}
	require.Equal(t, want, a.Stats())

	var wg sync.WaitGroup
	got := make([]*ringcache.Cache, 20)
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			got[i] = c.Namespace("of many")
		}()
	}
	wg.Wait()
	for _, g := range got {
		require.Same(t, got[0], g)
	}
}

func TestNamespaces_AreThoseInUse(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	names := func() (all []string) {
		for name, n := range c.Namespaces() {
			all = append(all, name)
			require.Same(t, c.Namespace(name), n, "%q", name)
		}
		return all
	}
	require.Empty(t, names())
	want := []string{"", "a", "\xff\x00", strings.Repeat("long", 1000)}
	for _, name := range want {
		require.NoError(t, c.Namespace(name).Set([]byte("k"), []byte(name)))
	}
	require.ElementsMatch(t, want, names())
	for name := range c.Namespaces() {
		if name == "a" {
			require.NoError(t, c.DropNamespace(name))
			break
		}
	}
	require.ElementsMatch(t, []string{"", want[2], want[3]}, names())
	require.NoError(t, c.Close())
	require.Len(t, names(), 3)
}

// reservedPrefix is generation 0, which no namespace has.
const reservedPrefix = "\x00\x00\x00\x00\x00\x00\x00\x00"

// No key of the whole cache is one of a namespace, whatever stands in the records.
func TestNamespace_Keys(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	n := c.Namespace("n")
	for _, k := range []string{"", "k", string(make([]byte, 300))} {
		raw, _ := ringtest.KeyOf(n, []byte(k))
		require.NoError(t, n.Set([]byte(k), []byte("v")))
		require.False(t, c.Has(raw))
		require.NoError(t, c.Set(raw, []byte("w")))
		require.Equal(t, "v", string(n.Get(nil, []byte(k))))
		require.Equal(t, 1, n.Len())
		require.Equal(t, 1, c.Len())
		for got := range c.Keys() {
			require.Equal(t, raw, got)
		}
		for got := range n.Keys() {
			require.Equal(t, k, string(got))
		}
		require.GreaterOrEqual(t, c.Stats().EntriesCount, uint64(2))
		n.Reset()
		require.True(t, c.Del(raw))
		require.Zero(t, n.Len())
	}
	require.NoError(t, n.Set(make([]byte, 65527), nil))
	require.ErrorIs(t, n.Set(make([]byte, 65528), nil), ringcache.ErrTooLarge)
}

// What is about the whole cache is refused by a namespace, and a namespace has none.
func TestNamespace_IsNotTheWholeCache(t *testing.T) {
	c, age := ringtest.TimedCache(t, ringtest.Roomy(0))
	n := c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), []byte("v")))
	require.NoError(t, c.SetWithTTL([]byte("expires"), nil, time.Second))
	*age = time.Minute
	path := filepath.Join(t.TempDir(), "snapshot")
	_, err := n.WriteSnapshot(new(bytes.Buffer))
	_, err2 := n.ReadSnapshot(new(bytes.Buffer))
	for _, err := range []error{n.Close(), n.Resize(1 << 20), n.SaveToFile(path),
		n.Save(t.Context(), path, ringcache.SaveOptions{}), n.DropNamespace("n"), err, err2} {
		require.ErrorIs(t, err, ringcache.ErrNamespace)
		require.ErrorContains(t, err, "ringcache: ")
	}
	require.NoFileExists(t, path)
	require.Panics(t, func() { n.Namespace("m") })
	for range n.Namespaces() {
		require.Fail(t, "a namespace has a namespace")
	}
	require.Equal(t, c.Options(), n.Options())
	require.True(t, n.Has([]byte("k")))
	require.Zero(t, c.Stats().ExpiredEntries, "the whole cache was searched")
}

// What a loop yields is valid when it looks at it, also if its body invalidates.
func TestNamespace_LoopEndsWithTheGeneration(t *testing.T) {
	n := ringtest.MustCache(t, ringtest.Roomy(0)).Namespace("n")
	for i := range 1000 {
		require.NoError(t, n.Set([]byte{byte(i), byte(i >> 8)}, nil))
	}
	seen := 0
	for range n.All() {
		if seen++; seen == 10 {
			n.Reset()
		}
	}
	require.Equal(t, 10, seen)
}

// Who calls after Invalidate does not get what a load from before it brings.
func TestNamespace_InvalidateWhileLoading(t *testing.T) {
	n := ringtest.MustCache(t, ringtest.Roomy(0)).Namespace("n")
	started, end := make(chan bool), make(chan bool)
	first := make(chan string)
	go func() {
		v, _ := n.GetOrLoad(context.Background(), nil, []byte("k"),
			func(context.Context, []byte) ([]byte, time.Duration, error) {
				close(started)
				<-end
				return []byte("old"), 0, nil
			})
		first <- string(v)
	}()
	<-started
	n.Reset()
	v, err := n.GetOrLoad(context.Background(), nil, []byte("k"),
		func(context.Context, []byte) ([]byte, time.Duration, error) { return []byte("new"), 0, nil })
	require.NoError(t, err)
	require.Equal(t, "new", string(v))
	close(end)
	require.Equal(t, "old", <-first)
	require.Equal(t, "new", string(n.Get(nil, []byte("k"))))
}

// Where nothing can be stored, a namespace is empty, and neither stale nor an error.
func TestNamespace_NoMemory(t *testing.T) {
	g := ringtest.Default(ringtest.MinBytes)
	g.Memory.Map = func(int) ([]byte, error) { return nil, errors.New("none left") }
	n := ringtest.MustCache(t, g).Namespace("n")
	require.ErrorIs(t, n.Set([]byte("k"), nil), ringcache.ErrNoMemory)
	n.Reset()
	require.False(t, n.Has([]byte("k")))
}

// An entry that is stored while its namespace is being reset is named to OnRemove like any other.
func TestNamespace_OnRemoveBesideResets(t *testing.T) {
	var all, unnamed atomic.Int64
	g := ringtest.Roomy(0)
	g.OnRemove = func(gone ringcache.Removal) {
		all.Add(1)
		if gone.Namespace != "n" {
			unnamed.Add(1)
		}
	}
	c := ringtest.MustCache(t, g)
	n := c.Namespace("n")
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 50_000 {
				assert.NoError(t, n.Set([]byte{byte(w), byte(i)}, []byte("v")))
				if i%2 == 0 {
					n.Reset()
				}
			}
		}()
	}
	wg.Wait()
	require.NotZero(t, all.Load())
	require.Zero(t, unnamed.Load())
}

// OnRemove gets keys as they were set, with the name of the namespace, and is not called for
// generations. It may call every method, also when entries were evicted for a generation.
func TestNamespace_OnRemove(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	var c *ringcache.Cache
	var n *ringcache.Cache
	var inner func() // what OnRemove does once
	own, nested := 0, 0
	g := ringtest.Tiny(1, 256, 64)
	g.OnRemove = func(gone ringcache.Removal) {
		assert.True(t, bytes.HasPrefix(gone.Key, []byte("key ")), "%q", gone.Key)
		assert.Contains(t, []string{"", "n"}, gone.Namespace)
		if gone.Namespace == "n" {
			own++
		}
		if do := inner; do != nil {
			inner = nil
			nested++
			do()
		}
	}
	c = ringtest.MustOpen(t, g, filepath.Join(t.TempDir(), "cache"))
	n = c.Namespace("n")
	within := func() error {
		for i := range 3000 {
			err := errors.Join(c.Set(fmt.Appendf(nil, "key %d", i), make([]byte, 20)),
				n.Set(fmt.Appendf(nil, "key %d", i), make([]byte, 20)))
			if err != nil {
				return err
			}
			if i%100 != 99 {
				continue
			}
			for j := range 10 {
				inner = func() { n.Reset(); c.Namespace(fmt.Sprint("inner ", i, j)) }
				if err := c.Set(fmt.Appendf(nil, "key %d", i), make([]byte, 30+j)); err != nil {
					return err
				}
				n.Reset()
				c.Namespace(fmt.Sprint("another ", i, j))
				_ = c.DropNamespace(fmt.Sprint("another ", i, j))
				_ = c.DropNamespace(fmt.Sprint("inner ", i, j))
			}
			inner = nil
		}
		return c.Close()
	}
	require.NoError(t, ringtest.InTime(within))
	require.NotZero(t, own)
	require.Greater(t, nested, 10)
}

// No goroutine finds what was set before an Invalidate that had returned when it began, and
// counts are exact.
func TestNamespace_Concurrent(t *testing.T) {
	n := ringtest.MustCache(t, ringtest.Tiny(8, 1024, 64)).Namespace("n")
	var begun, ended atomic.Uint64 // calls of Invalidate
	var ids, gets atomic.Uint64
	written := make([]atomic.Uint64, 1<<20) // 1 + calls begun when the Set had returned
	set := func(k []byte) {
		id := ids.Add(1)
		assert.NoError(t, n.Set(k, binary.LittleEndian.AppendUint64(nil, id)))
		written[id%uint64(len(written))].Store(1 + begun.Load())
	}
	var hits atomic.Uint64
	get := func(k []byte) {
		least := ended.Load()
		v, ok := n.HasGet(nil, k)
		if gets.Add(1); !ok {
			return
		}
		hits.Add(1)
		w := written[binary.LittleEndian.Uint64(v)%uint64(len(written))].Load()
		if w != 0 && w-1 < least {
			assert.Fail(t, "it was invalidated", "set before call %d, found after %d", w, least)
		}
	}
	var wg sync.WaitGroup
	var stop atomic.Bool
	for w := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; !stop.Load() && ids.Load() < uint64(len(written)); i++ {
				if k := []byte{byte(i % 5), byte(i % 17)}; (i+w)%3 == 0 {
					set(k)
				} else {
					get(k)
				}
			}
		}()
	}
	for i := range 300 {
		k := []byte{200, byte(i % 3)}
		set(k)
		get(k)
		begun.Add(1)
		n.Reset()
		ended.Add(1)
		get(k)
		for range 50 {
			get([]byte{byte(i % 5), byte(i % 17)})
		}
	}
	stop.Store(true)
	wg.Wait()
	s := n.Stats()
	require.Equal(t, ids.Load(), s.SetCalls)
	require.Equal(t, gets.Load(), s.GetCalls)
	require.Equal(t, hits.Load(), s.GetCalls-s.Misses)
	require.NotZero(t, hits.Load())
}

// The namespaces of a cache in memory, which has no records of their generations, are found in a
// file and in a stream.
func TestNamespace_SnapshotBeginsWithGenerations(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	const spaces, entries = 50, 20
	for i := range spaces {
		n := c.Namespace(fmt.Sprint(i))
		for j := range entries {
			require.NoError(t, n.Set(ringtest.IDKey(j), []byte("v")))
		}
	}
	_, path := ringtest.SnapshotOf(t, c)
	d := ringtest.MustLoad(t, path)
	var stream bytes.Buffer
	_, err := c.WriteSnapshot(&stream)
	require.NoError(t, err)
	e := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	_, err = e.ReadSnapshot(&stream)
	require.NoError(t, err)
	for _, d := range []*ringcache.Cache{d, e} {
		for i := range spaces {
			n := d.Namespace(fmt.Sprint(i))
			for j := range entries {
				require.True(t, n.Has(ringtest.IDKey(j)), "namespace %d", i)
			}
		}
	}
}

// A snapshot is as old as it is, and says so.
func TestNamespace_SnapshotFromBefore(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	n := c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), []byte("v")))
	var before, after bytes.Buffer
	_, err := c.WriteSnapshot(&before)
	require.NoError(t, err)
	n.Reset()
	require.NoError(t, n.Set([]byte("other"), []byte("v")))
	_, err = c.WriteSnapshot(&after)
	require.NoError(t, err)

	c = ringtest.MustCache(t, ringtest.Roomy(0))
	_, err = c.ReadSnapshot(&before)
	require.NoError(t, err)
	require.True(t, c.Namespace("n").Has([]byte("k")))
	c = ringtest.MustCache(t, ringtest.Roomy(0))
	_, err = c.ReadSnapshot(&after)
	require.NoError(t, err)
	require.False(t, c.Namespace("n").Has([]byte("k")))
	require.True(t, c.Namespace("n").Has([]byte("other")))
}

// A snapshot from before brings back what it has, as one from before Del does.
func TestNamespace_SnapshotFromBeforeDrop(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	require.NoError(t, c.Namespace("n").Set([]byte("k"), []byte("v")))
	require.NoError(t, c.Set([]byte("k"), []byte("w")))
	var before bytes.Buffer
	_, err := c.WriteSnapshot(&before)
	require.NoError(t, err)
	require.NoError(t, c.DropNamespace("n"))
	require.NoError(t, c.Namespace("other").Set([]byte("k"), []byte("x")))
	_, err = c.ReadSnapshot(&before)
	require.NoError(t, err)
	require.Equal(t, "v", string(c.Namespace("n").Get(nil, []byte("k"))))
	require.Equal(t, "w", string(c.Get(nil, []byte("k"))))
	require.Equal(t, "x", string(c.Namespace("other").Get(nil, []byte("k"))))
	require.Equal(t, 1, c.Namespace("n").Len())
	require.NoError(t, ringtest.Validate(c))
}
