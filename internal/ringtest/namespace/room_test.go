package namespace

import (
	"bytes"
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
	"github.com/ringcache/ringcache/internal/testhook"
)

// What the entries of a namespace hold, and how much they may.

// fill sets n keys in a namespace.
func fill(t testing.TB, n *ringcache.Namespace, keys, size int) {
	t.Helper()
	for i := range keys {
		require.NoError(t, n.Set(ringtest.IDKey(i), make([]byte, size)))
	}
}

// countFound returns how many of the keys are there.
func countFound(n *ringcache.Namespace, keys int) (found int) {
	for i := range keys {
		if n.Has(ringtest.IDKey(i)) {
			found++
		}
	}
	return found
}

// requireUsage compares the counts of namespaces with the entries that there are.
func requireUsage(t testing.TB, c *ringcache.Cache, spaces ...*ringcache.Namespace) {
	t.Helper()
	for _, n := range spaces {
		entries, size := 0, 0
		for k, v := range n.All() {
			entries++
			size += ringtest.Shared(c).Form.HeaderSize(len(k)+generation.Size, len(v), record.Timeless) +
				generation.Size + len(k) + len(v)
		}
		s := n.Stats()
		assert.EqualValues(t, entries, s.Entries)
		if ringtest.Shared(c).Compression == nil { // else records may be shorter
			assert.EqualValues(t, size, s.Bytes)
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
			require.NoError(t, a.Invalidate())
			require.Zero(t, a.Stats().Entries)
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
	spaces := []*ringcache.Namespace{c.Namespace("a"), c.Namespace("b"), c.Namespace("c")}
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
					_ = c.Update(testhook.OfNamespace(n).AppendKey(nil, k), ringtest.Append([]byte("more")))
				case 2:
					if rnd.IntN(500) == 0 {
						_ = n.Invalidate()
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
	require.NoError(t, a.Invalidate())
	fill(t, a, 100, 40)
	ringtest.Abandon(c)

	c = ringtest.MustOpen(t, g, path)
	require.Equal(t, 300, c.Len(), "entries, without the records of the two namespaces")
	a, b = c.Namespace("a"), c.Namespace("b")
	require.EqualValues(t, 100, a.Stats().Entries)
	require.EqualValues(t, 200, b.Stats().Entries)
	requireUsage(t, c, a, b)

	var snapshot bytes.Buffer
	_, err := c.WriteSnapshot(&snapshot)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	other := ringtest.MustCache(t, ringtest.Roomy(0))
	_, err = other.ReadSnapshot(&snapshot)
	require.NoError(t, err)
	a, b = other.Namespace("a"), other.Namespace("b")
	require.EqualValues(t, 100, a.Stats().Entries)
	requireUsage(t, other, a, b)
	require.NoError(t, a.Invalidate()) // of a generation that another cache has made
	require.Zero(t, countFound(a, 100))
	fill(t, b, 300, 60)
	requireUsage(t, other, a, b)
}

// A namespace above its quota gives up its own entries, those first that nobody has read.
func TestNamespace_QuotaIsKept(t *testing.T) {
	g := ringtest.Tiny(16, 1024, 64)
	c := ringtest.MustCache(t, g)
	bounded, other := c.Namespace("bounded"), c.Namespace("other")
	const size, keys = 80, 3000
	fill(t, other, keys, size)
	quota := int64(g.MaxBytes / 5)
	require.NoError(t, bounded.SetQuota(quota))
	hot := 200
	for i := range 20_000 {
		k := ringtest.IDKey(i)
		require.NoError(t, bounded.Set(k, make([]byte, size)))
		require.LessOrEqual(t, int64(bounded.Stats().Bytes), quota)
		for j := range 2 {
			if h := ringtest.IDKey((2*i + j) % hot); !bounded.Has(h) {
				require.NoError(t, bounded.Set(h, make([]byte, size)))
			}
		}
	}
	require.Equal(t, keys, countFound(other, keys))
	require.Greater(t, countFound(bounded, hot), hot*9/10, "what is read stays")
	require.Greater(t, int64(bounded.Stats().Bytes), quota*8/10, "the quota is used")
	requireUsage(t, c, bounded, other)
	require.EqualValues(t, quota, bounded.Stats().Quota)

	require.NoError(t, bounded.SetQuota(quota/4))
	require.LessOrEqual(t, int64(bounded.Stats().Bytes), quota/4)
	require.NoError(t, bounded.Invalidate())
	require.EqualValues(t, quota/4, bounded.Stats().Quota, "it survives Invalidate")
	fill(t, bounded, keys, size)
	require.LessOrEqual(t, int64(bounded.Stats().Bytes), quota/4)
	for i := range keys { // values that grow in their place
		raw := testhook.OfNamespace(bounded).AppendKey(nil, ringtest.IDKey(i))
		_ = c.Update(raw, ringtest.Append(make([]byte, 50)))
		require.LessOrEqual(t, int64(bounded.Stats().Bytes), quota/4)
	}
	require.NoError(t, bounded.SetQuota(0))
	fill(t, bounded, keys, size)
	require.Greater(t, int64(bounded.Stats().Bytes), quota)
	require.ErrorIs(t, bounded.SetQuota(-1), ringcache.ErrInvalidOptions)
	requireUsage(t, c, bounded, other)
}

// However few entries a quota is for, and though it is set late, the newest stay.
func TestNamespace_QuotaIsForTheNewest(t *testing.T) {
	for _, kept := range []int{3, 20, 200, 2000} {
		c := ringtest.MustCache(t, ringtest.Tiny(64, 1024, 64))
		n := c.Namespace("n")
		const size = 100
		fill(t, n, 3*kept, size)
		one := int64(n.Stats().Bytes) / int64(3*kept)
		quota := (one*int64(kept) + one/2) * 16 / 15
		require.NoError(t, n.SetQuota(quota))
		require.LessOrEqual(t, int64(n.Stats().Bytes), quota)
		for i := range 10 * kept {
			k := ringtest.IDKey(i)
			require.NoError(t, n.Set(k, make([]byte, size)))
			if i%3 == 0 && i > 0 {
				n.Del(ringtest.IDKey(i - 1))
				require.NoError(t, n.Set(ringtest.IDKey(i-1), make([]byte, size)))
			}
			require.LessOrEqual(t, int64(n.Stats().Bytes), quota)
		}
		for i := range kept * 3 / 4 {
			require.True(t, n.Has(ringtest.IDKey(10*kept-1-i)), "%d of %d", i, kept)
		}
		u := testhook.OfNamespace(n).Usage()
		require.LessOrEqual(t, u.Order.Len(), 2*kept+1024+1)
	}
}

// A write never evicts the entry of its own key for the quota, nor any entry if its condition
// does not hold.
func TestNamespace_QuotaSparesTheKeyOfTheWrite(t *testing.T) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(16, 1024, 256)
		g.Policy = p
		n := ringtest.MustCache(t, g).Namespace("n")
		const quota = 64 << 10
		require.NoError(t, n.SetQuota(quota))
		k, long := ringtest.IDKey(1), make([]byte, quota*6/10)
		require.NoError(t, n.Set(k, long))
		for i := range 20 {
			require.NoError(t, n.Update(k, ringtest.Append([]byte("x"))))
			require.Len(t, n.Get(nil, k), len(long)+i+1)
		}
		fill(t, n, 2000, 40) // near the quota from now on
		lock := ringtest.IDKey(5000)
		require.NoError(t, n.Set(lock, []byte("holder")))
		entries := n.Stats().Entries
		for range 3 {
			stored, err := ringtest.SetIfAbsent(n, lock, make([]byte, quota/2))
			require.NoError(t, err)
			require.False(t, stored, "somebody holds it")
			changed, err := n.SetIfChanged(lock, []byte("holder"))
			require.NoError(t, err)
			require.False(t, changed)
			swapped, err := n.CompareAndSwap(lock, []byte("other"), make([]byte, quota/2))
			require.NoError(t, err)
			require.False(t, swapped)
			require.Equal(t, entries, n.Stats().Entries, "nobody had to leave")
			require.True(t, n.Touch(lock, time.Hour))
		}
		swapped, err := n.CompareAndSwap(lock, []byte("holder"), make([]byte, quota/2))
		require.NoError(t, err)
		require.True(t, swapped, "others have made room")
		require.LessOrEqual(t, int64(n.Stats().Bytes), int64(quota))
	}
}

// Expired entries of a namespace at its quota go before live ones that are older.
func TestNamespace_QuotaTakesTheExpiredFirst(t *testing.T) {
	var now time.Duration
	left := map[ringcache.RemovalReason]int{}
	g := ringtest.Default(32 << 20)
	g.Elapsed = func() time.Duration { return now }
	g.OnRemove = func(_, _ []byte, r ringcache.RemovalReason) { left[r]++ }
	for _, size := range []int{1000, 20_000} { // small ones, and large ones
		c := ringtest.MustCache(t, g)
		require.Equal(t, size > 10_000, ringtest.Shared(c).IsLarge(size))
		n := c.Namespace("n")
		keys := min(400, 3_000_000/size) // so few that a bucket has one or none
		requireLive := func(msg string, lost int) {
			t.Helper()
			found := 0
			for i := range keys {
				if _, ok := n.Peek(nil, ringtest.IDKey(i)); ok { // unlike a read, it keeps nothing
					found++
				}
			}
			require.GreaterOrEqual(t, found, keys-lost, "%s: values of %d bytes", msg, size)
			require.LessOrEqual(t, left[ringcache.RemovedEvicted], lost, msg)
			clear(left)
		}
		setExpired := func(from int) {
			for i := range keys {
				require.NoError(t, n.SetWithTTL(ringtest.IDKey(from+i), make([]byte, size), time.Second))
			}
			now += 2 * time.Second
		}
		fill(t, n, keys, size)
		one := int64(n.Stats().Bytes) / int64(keys)
		quota := int64(2*keys+10)*one + int64(4*keys) // an expiry takes 4 bytes
		require.NoError(t, n.SetQuota(quota*16/15))
		setExpired(10_000)
		for i := range keys * 8 / 10 {
			require.NoError(t, n.Set(ringtest.IDKey(20_000+i), make([]byte, size)))
		}
		requireLive("a Set near the quota", keys/10) // the search is short

		require.NoError(t, n.Invalidate())
		fill(t, n, keys, size)
		setExpired(30_000)
		require.NoError(t, n.SetQuota(int64(keys)*one))
		requireLive("a lower quota", 0)
	}
}

// A dropped namespace takes no memory, and those who still have it harm nobody.
func TestNamespace_Drop(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Roomy(0))
	old := c.Namespace("n")
	require.NoError(t, old.SetQuota(1<<20))
	fill(t, old, 100, 50)
	require.NoError(t, old.Drop())
	require.NoError(t, old.Drop(), "again")
	fill(t, old, 10, 50)
	require.Zero(t, countFound(old, 100))
	require.Zero(t, old.Stats().Entries)
	require.NoError(t, old.Invalidate())
	_, ok := testhook.OfNamespace(old).Stored()
	require.False(t, ok, "it has come back")

	again := c.Namespace("n")
	require.Zero(t, countFound(again, 100))
	require.Zero(t, again.Stats().Quota)
	fill(t, again, 20, 50)
	require.Zero(t, countFound(old, 20))
	require.Equal(t, 20, countFound(again, 20))
	requireUsage(t, c, again)

	for i := range 1000 {
		n := c.Namespace(fmt.Sprint("tenant ", i))
		fill(t, n, 3, 50)
		require.NoError(t, n.Drop())
	}
	names := 0
	for range c.Namespaces() {
		names++
	}
	require.Equal(t, 1, names)
	require.NoError(t, c.Close())
	require.ErrorIs(t, again.Drop(), ringcache.ErrClosed)
}

// OnRemove is told that an invalidated entry was deleted.
func TestNamespace_OnRemoveIsToldOfInvalidated(t *testing.T) {
	reasons := map[ringcache.RemovalReason]int{}
	g := ringtest.Tiny(1, 1024, 64)
	g.OnRemove = func(_, _ []byte, reason ringcache.RemovalReason) { reasons[reason]++ }
	c := ringtest.MustCache(t, g)
	n := c.Namespace("n")
	fill(t, n, 50, 50)
	require.NoError(t, n.Invalidate())
	for i := range 500 {
		require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 50)))
	}
	require.Equal(t, 50, reasons[ringcache.RemovedDeleted])
}

// A large entry of a snapshot whose namespace is invalidated while others make way for it is not
// stored: buckets have been searched for such entries by then.
func TestNamespace_InvalidatedWhileALargeEntryIsLoaded(t *testing.T) {
	var c *ringcache.Cache
	var n *ringcache.Namespace
	invalidate := false
	g := ringtest.Tiny(8, 4096, 64)
	g.OnRemove = func(_, _ []byte, _ ringcache.RemovalReason) {
		if invalidate {
			invalidate = false
			require.NoError(t, n.Invalidate())
			c.DeleteExpired()
		}
	}
	c = ringtest.MustCache(t, g)
	n = c.Namespace("n")
	k := testhook.OfNamespace(n).AppendKey(nil, []byte("k"))
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
	require.False(t, c.Has(k))
}
