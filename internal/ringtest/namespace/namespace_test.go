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
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

func TestNamespace_EqualNamesShareOne(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	a, same, b := c.Namespace("a"), c.Namespace("a"), c.Namespace("b")
	k := []byte("k")
	require.NoError(t, a.Set(k, []byte("1")))
	require.True(t, same.Has(k))
	require.False(t, b.Has(k))
	require.False(t, c.Has(k))
	require.Equal(t, a.Stats(), same.Stats())
	require.NotEqual(t, a.Stats(), b.Stats())
	require.NoError(t, same.Invalidate())
	require.False(t, a.Has(k))
	want := ringcache.NamespaceStats{GetCalls: 2, Misses: 1, SetCalls: 1, Invalidations: 1}
	require.Equal(t, want, a.Stats())

	var wg sync.WaitGroup
	got := make([][]byte, 20)
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			got[i] = testhook.OfNamespace(c.Namespace("of many")).AppendKey(nil, nil)
		}()
	}
	wg.Wait()
	for _, g := range got {
		require.Equal(t, got[0], g, "one generation")
	}
}

func TestNamespaces_AreThoseInUse(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	names := func() (all []string) {
		for name, n := range c.Namespaces() {
			all = append(all, name)
			require.Same(t, testhook.OfNamespace(c.Namespace(name)).Generation,
				testhook.OfNamespace(n).Generation, "%q", name)
		}
		return all
	}
	require.Empty(t, names())
	want := []string{"", "a", "\xff\x00", strings.Repeat("long", 1000)}
	for _, name := range want {
		require.NoError(t, c.Namespace(name).Set([]byte("k"), []byte(name)))
	}
	require.ElementsMatch(t, want, names())
	for name, n := range c.Namespaces() {
		if name == "a" {
			require.NoError(t, n.Drop())
			break
		}
	}
	require.ElementsMatch(t, []string{"", want[2], want[3]}, names())
	require.NoError(t, c.Close())
	require.Len(t, names(), 3)
}

// What the package has under these names.
const (
	reservedPrefix = "ringcache.namespace\x00" // of the keys of internal records
	keptEach       = 1024                      // calls until a generation is looked after
)

func TestNamespace_Keys(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	n, other := c.Namespace("n"), c.Namespace("other")
	for _, k := range []string{"", "k", string(make([]byte, 300))} {
		raw := testhook.OfNamespace(n).AppendKey([]byte("dst"), []byte(k))
		require.Equal(t, "dst", string(raw[:3]))
		raw = raw[3:]
		require.NoError(t, n.Set([]byte(k), []byte("v")))
		require.Equal(t, "v", string(c.Get(nil, raw)))
		got, ok := testhook.OfNamespace(n).CutKey(raw)
		require.True(t, ok)
		require.Equal(t, k, string(got))
		_, ok = testhook.OfNamespace(other).CutKey(raw)
		require.False(t, ok)
		_, ok = testhook.OfNamespace(n).CutKey(raw[:7])
		require.False(t, ok)
		require.NoError(t, n.Invalidate())
		_, ok = testhook.OfNamespace(n).CutKey(raw)
		require.False(t, ok, "an older generation")
	}
	require.NoError(t, n.Set(make([]byte, 65527), nil))
	require.ErrorIs(t, n.Set(make([]byte, 65528), nil), ringcache.ErrTooLarge)
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
			require.NoError(t, n.Invalidate())
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
	require.NoError(t, n.Invalidate())
	v, err := n.GetOrLoad(context.Background(), nil, []byte("k"),
		func(context.Context, []byte) ([]byte, time.Duration, error) { return []byte("new"), 0, nil })
	require.NoError(t, err)
	require.Equal(t, "new", string(v))
	close(end)
	require.Equal(t, "old", <-first)
	require.Equal(t, "new", string(n.Get(nil, []byte("k"))))
}

// A generation that was dropped is stored again, so that a later start is warm.
func TestNamespace_GenerationIsStoredAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for _, changed := range []bool{false, true} {
		c := ringtest.OpenFile(t, path, ringtest.MinBytes)
		n := c.Namespace("n")
		require.NoError(t, n.Set([]byte("k"), []byte("v")))
		if changed {
			of := testhook.OfNamespace(n)
			require.NoError(t, ringtest.Write(c, store.Write{Key: of.Entry, Internal: true,
				Value: binary.LittleEndian.AppendUint64(nil, of.Generation.Load()+1)}))
		} else {
			require.True(t, dropEntry(n))
		}
		var before ringcache.Stats
		c.UpdateStats(&before)
		for range keptEach {
			keys := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
			require.NoError(t, n.SetBatch(keys, make([][]byte, 3)))
		}
		g, ok := testhook.OfNamespace(n).Stored()
		require.True(t, ok)
		require.Equal(t, testhook.OfNamespace(n).Generation.Load(), g)
		var after ringcache.Stats
		c.UpdateStats(&after)
		require.EqualValues(t, 3*keptEach, after.SetCalls-before.SetCalls, "no Set of the user's")
		require.Equal(t, before.GetCalls, after.GetCalls)
		require.NoError(t, c.Close())
		c = ringtest.OpenFile(t, path, ringtest.MinBytes)
		require.Equal(t, "v", string(c.Namespace("n").Get(nil, []byte("k"))))
		require.NoError(t, c.Close())
	}
}

// What is no generation is taken for none.
func TestNamespace_ForeignEntry(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	w := store.Write{Key: []byte(reservedPrefix + "n"), Value: []byte("no generation"), Internal: true}
	require.NoError(t, ringtest.Write(c, w))
	n := c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), []byte("v")))
	require.True(t, n.Has([]byte("k")))
	g, ok := testhook.OfNamespace(n).Stored()
	require.True(t, ok)
	require.Equal(t, testhook.OfNamespace(n).Generation.Load(), g)
}

// Where nothing can be stored, a namespace is empty, and neither stale nor an error.
func TestNamespace_NoMemory(t *testing.T) {
	g := ringtest.Default(ringtest.MinBytes)
	g.Memory.Map = func(int) ([]byte, error) { return nil, errors.New("none left") }
	n := ringtest.MustCache(t, g).Namespace("n")
	require.ErrorIs(t, n.Set([]byte("k"), nil), ringcache.ErrNoMemory)
	require.NoError(t, n.Invalidate())
	require.False(t, n.Has([]byte("k")))
}

// OnRemove gets the keys that entries have in the cache, and is not called for generations. It may
// call every method, also when entries were evicted for a generation.
func TestNamespace_OnRemove(t *testing.T) {
	var c *ringcache.Cache
	var n *ringcache.Namespace
	var inner func() // what OnRemove does once
	own, nested := 0, 0
	g := ringtest.Tiny(1, 256, 64)
	g.OnRemove = func(k, _ []byte, _ ringcache.RemovalReason) {
		assert.False(t, bytes.HasPrefix(k, []byte(reservedPrefix)), "%q", k)
		if _, ok := testhook.OfNamespace(n).CutKey(k); ok {
			own++
		}
		if do := inner; do != nil {
			inner = nil
			nested++
			do()
		}
	}
	c = ringtest.MustCache(t, g)
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
			for j := range 10 { // one of these needs room
				c.Namespace(fmt.Sprint("name ", i, j))
				dropEntry(n)
				inner = func() { err = n.Invalidate(); c.Namespace(fmt.Sprint("inner ", i, j)) }
				if err := errors.Join(n.Invalidate(), err); err != nil {
					return err
				}
				dropEntry(n)
				inner = func() { testhook.OfNamespace(n).Wrote(keptEach) }
				testhook.OfNamespace(n).Wrote(keptEach)
				inner = func() { err = n.Invalidate(); c.Namespace(fmt.Sprint("inner ", i, j)) }
				c.Namespace(fmt.Sprint("another ", i, j))
			}
			inner = nil
		}
		return nil
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
		assert.NoError(t, n.Invalidate())
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
	require.EqualValues(t, 300, s.Invalidations)
	require.NotZero(t, hits.Load())
}

// A snapshot is as old as it is, and says so.
func TestNamespace_SnapshotFromBefore(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	n := c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), []byte("v")))
	var before, after bytes.Buffer
	_, err := c.WriteSnapshot(&before)
	require.NoError(t, err)
	require.NoError(t, n.Invalidate())
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

// A snapshot does not bring back a dropped namespace to the cache that has dropped it, however
// many generations have been forgotten since.
func TestNamespace_DroppedStaysDropped(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	require.NoError(t, c.Namespace("n").Set([]byte("k"), []byte("v")))
	var before bytes.Buffer
	_, err := c.WriteSnapshot(&before)
	require.NoError(t, err)
	require.NoError(t, c.Namespace("n").Drop())
	other := c.Namespace("other")
	for range 1000 {
		require.NoError(t, other.Invalidate())
	}
	held := c.Len() // perhaps one that is not removed yet
	_, err = c.ReadSnapshot(&before)
	require.NoError(t, err)
	require.False(t, c.Namespace("n").Has([]byte("k")))
	require.LessOrEqual(t, c.Len(), held)
}
