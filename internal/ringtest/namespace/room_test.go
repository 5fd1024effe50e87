package namespace

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What the entries of a namespace hold.

// fill sets n keys in a namespace.
func fill(t testing.TB, n *ringcache.Cache, keys, size int) {
	t.Helper()
	for i := range keys {
		require.NoError(t, n.Set(ringtest.IDKey(i), make([]byte, size)))
	}
}

// countFound returns how many of the keys are there.
func countFound(n *ringcache.Cache, keys int) (found int) {
	for i := range keys {
		if n.Has(ringtest.IDKey(i)) {
			found++
		}
	}
	return found
}

// requireUsage compares the counts of namespaces with the entries that there are.
func requireUsage(t testing.TB, c *ringcache.Cache, spaces ...*ringcache.Cache) {
	t.Helper()
	for _, n := range spaces {
		entries, size := 0, 0
		for k, v := range n.All() {
			entries++
			klen, form := generation.Size+len(k), ringtest.Shared(c).Form
			size += form.HeaderSize(record.Spaced, klen, len(v), record.Timeless) + klen + len(v)
		}
		s := n.Stats()
		assert.EqualValues(t, entries, s.EntriesCount)
		assert.Equal(t, entries, n.Len())
		if ringtest.Shared(c).Compression == nil { // else records may be shorter
			assert.EqualValues(t, size, s.BytesSize)
		}
	}
	require.False(t, t.Failed())
}

// The entries of an invalidated namespace go before those of any other one.
func TestNamespace_InvalidatedGoesFirst(t *testing.T) {
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(4, 1024, 128)
		g.Policy = policy
		c := ringtest.MustCache(t, g)
		a, b := c.Namespace("a"), c.Namespace("b")
		const size = 100
		keys := g.MaxBytes * 32 / 100 / (size + 20)
		fill(t, a, keys, size)
		fill(t, b, keys, size)
		for range 10 {
			a.Reset()
			require.Zero(t, a.Stats().EntriesCount)
			fill(t, a, keys, size)
		}
		require.Equal(t, keys, countFound(a, keys))
		require.Equal(t, keys, countFound(b, keys))
		require.Zero(t, c.Stats().EvictedEntries)
		requireUsage(t, c, a, b)
	}
}

// Counts are exact whatever is done, by many at once, and when the cache is full.
func TestNamespace_CountsAreExact(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(16, 1024, 32))
	spaces := []*ringcache.Cache{c.Namespace("a"), c.Namespace("b"), c.Namespace("c")}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := ringtest.NewRand(uint64(i))
			for range 20_000 {
				n, k := spaces[rnd.IntN(len(spaces))], ringtest.IDKey(rnd.IntN(3000))
				switch rnd.IntN(8) {
				case 0:
					n.Del(k)
				case 1:
					_ = n.Update(k, ringtest.Append([]byte("more")))
				case 2:
					if rnd.IntN(500) == 0 {
						n.Reset()
					}
				case 3: // large
					_ = n.Set(k, make([]byte, rnd.IntN(5000)))
				default:
					_ = n.Set(k, make([]byte, rnd.IntN(300)))
				}
			}
		}()
	}
	wg.Wait()
	require.NotZero(t, c.Stats().EvictedEntries)
	requireUsage(t, c, spaces...)
	c.Reset()
	requireUsage(t, c, spaces...)
}

// A file and a snapshot bring the counts back, and what was invalidated is dropped.
func TestNamespace_CountsComeBack(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("no ring files in this build")
	}
	path := filepath.Join(t.TempDir(), "cache")
	g := ringtest.Tiny(4, 1024, 128)
	c := ringtest.MustOpen(t, g, path)
	a, b := c.Namespace("a"), c.Namespace("b")
	fill(t, a, 300, 50)
	fill(t, b, 200, 60)
	a.Reset()
	fill(t, a, 100, 40)
	ringtest.Abandon(c)

	c = ringtest.MustOpen(t, g, path)
	require.EqualValues(t, 300, c.Stats().EntriesCount, "without the records of the two namespaces")
	require.Zero(t, c.Len())
	a, b = c.Namespace("a"), c.Namespace("b")
	require.EqualValues(t, 100, a.Stats().EntriesCount)
	require.EqualValues(t, 200, b.Stats().EntriesCount)
	requireUsage(t, c, a, b)

	var snapshot bytes.Buffer
	_, err := c.WriteSnapshot(&snapshot)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	other := ringtest.MustCache(t, ringtest.Roomy(0))
	_, err = other.ReadSnapshot(&snapshot)
	require.NoError(t, err)
	a, b = other.Namespace("a"), other.Namespace("b")
	require.EqualValues(t, 100, a.Stats().EntriesCount)
	requireUsage(t, other, a, b)
	a.Reset() // of a generation that another cache has made
	require.Zero(t, countFound(a, 100))
	fill(t, b, 300, 60)
	requireUsage(t, other, a, b)
}

// A dropped namespace takes no memory, and those who still have it harm nobody: their Sets fail.
func TestNamespace_Drop(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	old := c.Namespace("n")
	fill(t, old, 100, 50)
	require.NoError(t, c.DropNamespace("n"))
	require.NoError(t, c.DropNamespace("n"), "again")
	k, v := ringtest.IDKey(1), []byte("v")
	err := old.Set(k, v)
	require.ErrorIs(t, err, ringcache.ErrDropped)
	require.EqualError(t, err, "ringcache: set entry: the namespace was dropped")
	require.ErrorIs(t, old.SetWithTTL(k, v, time.Hour), ringcache.ErrDropped)
	require.ErrorIs(t, old.SetBatch([][]byte{k}, [][]byte{v}), ringcache.ErrDropped)
	require.ErrorIs(t, old.Set(k, make([]byte, 100_000)), ringcache.ErrDropped)
	require.ErrorIs(t, old.Update(k, func(e *ringcache.Entry[[]byte]) { e.Set(v) }),
		ringcache.ErrDropped)
	_, stored, err := old.SetIfAbsent(nil, k, v, 0)
	require.ErrorIs(t, err, ringcache.ErrDropped)
	require.False(t, stored)
	got, err := old.GetOrLoad(t.Context(), nil, k,
		func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil })
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.Zero(t, countFound(old, 100))
	require.Zero(t, old.Len())
	old.Reset()
	require.ErrorIs(t, old.Set(k, v), ringcache.ErrDropped)

	again := c.Namespace("n")
	require.NotSame(t, old, again)
	require.Zero(t, countFound(again, 100))
	fill(t, again, 20, 50)
	require.Zero(t, countFound(old, 20))
	require.Equal(t, 20, countFound(again, 20))
	requireUsage(t, c, again)

	for i := range 1000 {
		name := fmt.Sprint("tenant ", i)
		fill(t, c.Namespace(name), 3, 50)
		require.NoError(t, c.DropNamespace(name))
	}
	names := 0
	for range c.Namespaces() {
		names++
	}
	require.Equal(t, 1, names)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.DropNamespace("n"), ringcache.ErrClosed)
}

// OnRemove is told that an invalidated entry was deleted.
func TestNamespace_OnRemoveIsToldOfInvalidated(t *testing.T) {
	reasons := map[ringcache.RemovalReason]int{}
	g := ringtest.Tiny(1, 1024, 64)
	g.OnRemove = func(gone ringcache.Removal) {
		reasons[gone.Reason]++
		assert.Equal(t, gone.Reason == ringcache.RemovedDeleted, gone.Namespace == "n")
	}
	c := ringtest.MustCache(t, g)
	n := c.Namespace("n")
	fill(t, n, 50, 50)
	n.Reset()
	for i := range 500 {
		require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 50)))
	}
	require.Equal(t, 50, reasons[ringcache.RemovedDeleted])
}

// A large entry of a snapshot whose namespace is invalidated while others make way for it is not
// stored: buckets have been searched for such entries by then.
func TestNamespace_InvalidatedWhileALargeEntryIsLoaded(t *testing.T) {
	var c *ringcache.Cache
	var n *ringcache.Cache
	invalidate := false
	g := ringtest.Tiny(8, 4096, 64)
	g.OnRemove = func(ringcache.Removal) {
		if invalidate {
			invalidate = false
			n.Reset()
			c.DeleteExpired()
		}
	}
	c = ringtest.MustCache(t, g)
	n = c.Namespace("n")
	require.NoError(t, n.Set([]byte("k"), make([]byte, 100_000)))
	var snapshot bytes.Buffer
	_, err := c.WriteSnapshot(&snapshot)
	require.NoError(t, err)
	n.Del([]byte("k"))
	ringtest.FillCache(t, c, 0, 30_000, 100)

	invalidate = true
	_, err = c.ReadSnapshot(&snapshot)
	require.NoError(t, err)
	require.False(t, invalidate, "nothing had to leave: the test proves nothing")
	require.False(t, n.Has([]byte("k")))
}
