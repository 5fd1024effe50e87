package room

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// An entry of 20 KB stays for a while in a cache that is full of short ones, even if it is the only
// large one: the large buckets give up dead bytes for small ones, but live entries only beyond
// their share.
func TestRoom_OneLargeEntryStays(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, 300_000, 260)
	require.NoError(t, c.Set([]byte("large"), make([]byte, 20_000)))
	ringtest.FillCache(t, c, 300_000, 304_000, 260)
	require.True(t, c.Has([]byte("large")))
}

// Large entries that are set in a full cache of short ones hardly push out each other: together
// they are what was stored last, and large buckets may hold 7/8 of their share of that.
func TestRoom_LargeEntriesKeepEachOther(t *testing.T) {
	const bound, short = 128 << 20, 100
	for _, size := range []int{64<<10 - 100, 200_000, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			c := ringtest.MustCache(t, ringtest.Default(bound))
			ringtest.FillCache(t, c, 0, bound/short, short)
			n := max(2<<20/size, 8)
			for round := range 5 {
				for i := range n {
					require.NoError(t, c.Set(fmt.Append(nil, "large", round*n+i), make([]byte, size)))
				}
				found := 0
				for i := range n {
					if c.Has(fmt.Append(nil, "large", round*n+i)) {
						found++
					}
				}
				require.GreaterOrEqual(t, found, n-n/4, "of %d", n)
			}
		})
	}
}

// A few entries of megabytes that are written again and again push out no short ones, even if those
// are in large buckets too, because of what was stored lately.
func TestRoom_ShortEntriesBesideHugeOnes(t *testing.T) {
	const bound, keys, huge = 16 << 20, 27_400, 6 // their bytes are 0.7 of the bound
	g := ringtest.Default(bound)
	g.Seed = ringtest.TestSeed
	c := ringtest.MustCache(t, g)
	r, v := ringtest.NewRand(1), make([]byte, bound/16)
	for n := range 120_000 {
		k, size := r.IntN(keys), 100+r.IntN(300)
		if n%50 == 0 {
			k, size = 1<<28+r.IntN(huge), len(v)/4+r.IntN(len(v)/2)
		}
		require.NoError(t, c.Set(ringtest.IDKey(k), v[:size]))
	}
	// A few may leave if the longest ones come one after the other.
	require.LessOrEqual(t, ringtest.StatsOf(c).EvictedEntries, uint64(20))
}

// Resize leaves short entries in small buckets, however many of the Sets of late were large.
func TestRoom_ShortEntriesStayInSmallBuckets(t *testing.T) {
	const entries = 200_000
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, entries, 50)
	inSmall := func() (n int) {
		for i := range ringtest.Shared(c).Buckets {
			n += ringtest.Nth(c, i).Sizes().Entries
		}
		return n
	}
	for i := range 8000 {
		require.NoError(t, c.Set(fmt.Append(nil, "large", i%20), make([]byte, 200_000+i%3)))
	}
	require.Equal(t, entries, inSmall())
	require.NoError(t, c.Resize(60<<20))
	require.Equal(t, entries, inSmall())
}

// Small entries that have expired need no memory: large entries get it, though they are rare.
func TestRoom_LargeEntriesGetTheMemoryOfExpiredOnes(t *testing.T) {
	now := time.Minute
	g := ringtest.Default(64 << 20)
	g.Elapsed = func() time.Duration { return now }
	c := ringtest.MustCache(t, g)
	for i := range 180_000 { // 54 MB
		require.NoError(t, c.SetWithTTL(ringtest.IDKey(i), make([]byte, 280), time.Hour))
	}
	now += 2 * time.Hour
	require.Positive(t, c.DeleteExpired())
	for i := range 1_000_000 { // most of what is stored is small
		require.NoError(t, c.Set(ringtest.IDKey(i%100), make([]byte, 280)))
	}
	const large = 40
	for i := range large { // 20 MB
		require.NoError(t, c.Set(fmt.Append(nil, "large", i), make([]byte, 500_000)))
	}
	found := 0
	for i := range large {
		if c.Has(fmt.Append(nil, "large", i)) {
			found++
		}
	}
	require.Equal(t, large, found)
}

// Of long entries of very different lengths, and short ones, that are rewritten with other lengths,
// hardly any is evicted while live entries leave 2/5 of the memory, however uneven the large
// buckets are.
func TestRoom_UnevenLargeEntriesStay(t *testing.T) {
	const bound, longest, steps = 32 << 20, 32 << 20 / 17, 60_000
	g := ringtest.Default(bound)
	g.Seed = ringtest.TestSeed
	c := ringtest.MustCache(t, g)
	r, v := ringtest.NewRand(1), make([]byte, longest)
	draw := func(least, most float64) int { return int(least * math.Pow(most/least, r.Float64())) }
	sizes, live := map[int]int{}, [2]int{} // of short and long entries
	for range steps {
		kind := r.IntN(2)
		k, n := r.IntN(15_000), draw(50, 4000)
		if kind == 1 {
			k, n = -1-r.IntN(120), draw(8192, longest)
		}
		if live[kind]-sizes[k]+n > bound*29/100 {
			continue
		}
		require.NoError(t, c.Set(ringtest.IDKey(k), v[:n]))
		live[kind] += n - sizes[k]
		sizes[k] = n
	}
	require.Greater(t, min(live[0], live[1]), bound/4)
	require.LessOrEqual(t, c.Stats().EvictedEntries, uint64(steps/1000))
}

// A large entry that is written again with the same length takes no memory from short ones, nor
// does its bucket in stock.
func TestRoom_RewrittenLargeEntryEvictsFew(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	const full = 500_000
	ringtest.FillCache(t, c, 0, full, 100)
	for i := range 300 {
		ringtest.FillCache(t, c, full+100*i, 100, 100)
		before := c.Stats().EvictedEntries
		require.NoError(t, c.Set([]byte("large"), make([]byte, 1<<20)))
		evicted := c.Stats().EvictedEntries - before
		if i > 0 {
			require.Less(t, evicted, uint64(2000), "by Set %d", i)
		}
	}
}

// Where all records are large, they have all of the memory, and S3-FIFO finds a part of a loop that
// is ten times as long as the cache.
func TestRoom_LoopOfLargeEntries(t *testing.T) {
	const bound, size, rounds = 16 << 20, 20_000, 40
	g := ringtest.Default(bound)
	g.Seed = ringtest.TestSeed
	c := ringtest.MustCache(t, g)
	const keys = 10 * bound / size
	hits := 0
	for i := range rounds * keys {
		if k := ringtest.IDKey(i % keys); c.Has(k) {
			hits++
		} else {
			require.NoError(t, c.Set(k, make([]byte, size)))
		}
	}
	t.Logf("hits: %.1f %%", 100*float64(hits)/(rounds*keys))
	require.Greater(t, hits, rounds*keys/20)
}

// All large buckets give up dead bytes for short entries, in a cache of two small buckets too.
func TestRoom_DeadLargeEntriesOfATinyCache(t *testing.T) {
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 10, Policy: policy})
		require.NoError(t, err)
		rnd, value := ringtest.NewRand(1), make([]byte, 16<<10)
		for i := range uint32(500) {
			require.NoError(t, c.Set(ringtest.TrafficKey(nil, i%10), value[:13_000+rnd.IntN(2000)]))
		}
		for i := range uint32(10) {
			c.Del(ringtest.TrafficKey(nil, i))
		}
		before := c.Stats().EvictedEntries
		for range 20_000 { // up to 0.6 of the bound is live
			k := ringtest.TrafficKey(nil, uint32(100+rnd.IntN(600)))
			require.NoError(t, c.Set(k, value[:1+rnd.IntN(400)]))
		}
		require.Equal(t, before, c.Stats().EvictedEntries, policy)
		ringtest.CloseCache(t, c)
	}
}

// Entries that are gone, but were not found yet, give way to new ones of another size before live
// ones do.
func TestRoom_GoneEntriesGiveWayToTheOtherKind(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	const bound, short, long = 16 << 20, 260, 16 << 20 / 50
	for name, goes := range map[string]func(c *ringcache.Cache, k, v []byte) error{
		"dropped": func(c *ringcache.Cache, k, v []byte) error { return c.Namespace("n").Set(k, v) },
		"expired": func(c *ringcache.Cache, k, v []byte) error { return c.SetWithTTL(k, v, time.Second) },
	} {
		for _, first := range []int{short, long} {
			now := time.Minute
			g := ringtest.Default(bound)
			g.Seed, g.Policy = ringtest.TestSeed, ringcache.PolicyFIFO
			g.Elapsed = func() time.Duration { return now }
			c := ringtest.MustCache(t, g)
			id := uint32(0)
			fill := func(set func(k, v []byte) error, size int, share float64) {
				for range int(share * bound / float64(size+45)) {
					id++
					require.NoError(t, set(ringtest.TrafficKey(nil, id), make([]byte, size)))
				}
			}
			fill(c.Set, short, 0.05)
			stay := id
			fill(func(k, v []byte) error { return goes(c, k, v) }, first, 0.7)
			now += 2 * time.Second
			require.NoError(t, c.DropNamespace("n"))
			fill(c.Set, short+long-first, 0.4)
			for i := range stay {
				require.True(t, c.Has(ringtest.TrafficKey(nil, i+1)), "%s, first %d", name, first)
			}
			require.LessOrEqual(t, int(c.Stats().EvictedEntries), 3, "%s, first %d", name, first)
		}
	}
}

// Records of all lengths that are overwritten with others and deleted: while live ones take half of
// the bound, hardly any is evicted, however many dead bytes the large buckets have.
func TestRoom_RecordsOfAllLengths(t *testing.T) {
	for _, tc := range []struct {
		made, bound int
		seed        uint64
	}{
		{1 << 20, 1 << 20, 1}, {9 << 20, 9 << 20, 1},
		// Few buckets, whose long records are nearly large, and are promoted.
		{1 << 20, 9 << 20, 1}, {1 << 20, 12 << 20, 2}, {1 << 20, 16 << 20, 9},
	} {
		g, bound := ringtest.Default(tc.made), tc.bound
		g.Seed = ringtest.TestSeed
		g.Seed[0] += tc.seed * 977 // another secret
		c := ringtest.MustCache(t, g)
		ringtest.MustResize(t, c, bound)
		r, v := ringtest.NewRand(tc.seed), make([]byte, bound/16)
		lengths, keys := map[int]int{}, []int{}
		live, written, sets := 0, 0, 0
		for ; written < 30*bound; sets++ {
			n := 16
			for n <= len(v)/4 && r.IntN(3) > 0 { // most are short, most bytes in long ones
				n *= 2
			}
			n += r.IntN(n)
			k := sets
			if len(keys) > 0 && r.IntN(2) == 0 {
				k = keys[r.IntN(len(keys))]
			} else {
				keys = append(keys, k)
			}
			for live -= lengths[k]; live+n > bound*45/100; {
				at := r.IntN(len(keys))
				if id := keys[at]; id != k {
					c.Del(ringtest.IDKey(id))
					live -= lengths[id]
					delete(lengths, id)
					keys[at] = keys[len(keys)-1]
					keys = keys[:len(keys)-1]
				}
			}
			require.NoError(t, c.Set(ringtest.IDKey(k), v[:n]))
			lengths[k] = n
			live += n
			written += n
		}
		t.Logf("%d Sets in %d bytes: %d evicted", sets, bound, c.Stats().EvictedEntries)
		require.LessOrEqual(t, c.Stats().EvictedEntries, uint64(sets/5000))
		require.NoError(t, ringtest.Validate(c))
	}
}

// Short entries that never change lie next to each other after a turn of the ring. A long one that
// is set there passes them all, rather than dropping some, as long as dead bytes are behind them.
func TestRoom_ShortEntriesBesideChangingPages(t *testing.T) {
	const bound, counters, pages = 16 << 20, 175_000, 200
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(bound)
		g.Seed, g.Policy = ringtest.TestSeed, policy
		c := ringtest.MustCache(t, g)
		for i := range counters {
			require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 8)))
		}
		r, page, ids := ringtest.NewRand(1), make([]byte, 16_000), [pages]int{}
		for i := range 15_000 {
			at := r.IntN(pages)
			c.Del(ringtest.IDKey(ids[at]))
			ids[at] = -1 - i
			require.NoError(t, c.Set(ringtest.IDKey(ids[at]), page[:8000+r.IntN(8000)]))
		}
		s := c.Stats()
		t.Logf("%v: %d evicted; %d bytes live", policy, s.EvictedEntries, s.BytesSize)
		require.LessOrEqual(t, s.EvictedEntries, uint64(counters/1000), policy)
	}
}
