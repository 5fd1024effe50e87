package room

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// agedCache is a cache in which a Set takes a time that the test knows, and whose evictions
// tell how long entries really stayed.
type agedCache struct {
	*ringcache.Cache
	age  time.Duration
	next uint64
	last map[uint64]uint64 // when a key was set, of those there
	each time.Duration     // for one Set

	lives []uint64 // for how many Sets those stayed that were evicted
}

func newAgedCache(t testing.TB, g ringtest.Shape) *agedCache {
	a := &agedCache{last: map[uint64]uint64{}, each: 10 * time.Millisecond}
	g.Elapsed = func() time.Duration { return a.age }
	g.OnRemove = func(k, _ []byte, why ringcache.RemovalReason) {
		id := binary.LittleEndian.Uint64(k)
		if why == ringcache.RemovedEvicted {
			a.lives = append(a.lives, a.next-a.last[id])
		}
	}
	a.Cache = ringtest.MustCache(t, g)
	return a
}

// set sets n new keys.
func (a *agedCache) set(t testing.TB, n, size int) {
	t.Helper()
	value := make([]byte, size)
	for range n {
		a.age += a.each
		a.next++
		a.last[a.next] = a.next
		if err := a.Set(binary.LittleEndian.AppendUint64(nil, a.next), value); err != nil {
			require.NoError(t, err)
		}
	}
}

// stay returns for how many Sets most of the entries stay that are evicted while n more are
// set: the median, since a few come by way of main.
func (a *agedCache) stay(t testing.TB, n, size int) int {
	t.Helper()
	a.lives = nil
	a.set(t, n, size)
	slices.Sort(a.lives)
	return int(a.lives[len(a.lives)/2])
}

// requireAge checks an age in Sets, and the same one in time.
func (a *agedCache) requireAge(t testing.TB, want int, sets uint64, in time.Duration) {
	t.Helper()
	require.InEpsilon(t, want, sets, 0.1, "in Sets")
	require.InDelta(t, float64(sets)*a.each.Seconds(), in.Seconds(),
		0.01*in.Seconds()+clock.Tick.Seconds(), "in time")
}

// The ages are those at which entries are evicted, whatever the policy and the size of
// values: what nobody reads leaves small, or main where there is only that.
func TestSizing_AgesAreThoseOfEvictions(t *testing.T) {
	t.Parallel()
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		for name, size := range map[string]int{"short": 50, "of a chunk": 3000, "large": 20_000} {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				g := ringtest.Tiny(16, 1024, 256)
				g.Policy = p
				a := newAgedCache(t, g)
				a.set(t, 100, size)
				require.Equal(t, ringcache.Sizing{}, a.Sizing(), "nothing was evicted yet")
				a.set(t, 3*g.MaxBytes/size, size)
				want := a.stay(t, g.MaxBytes/size, size)
				z := a.Sizing()
				if p == ringcache.PolicyFIFO {
					require.Zero(t, z.SmallAge)
					require.Zero(t, z.SmallAgeSets)
					a.requireAge(t, want, z.MainAgeSets, z.MainAge)
					require.InEpsilon(t, a.Len(), z.MainAgeSets, 0.1)
					return
				}
				a.requireAge(t, want, z.SmallAgeSets, z.SmallAge)
			})
		}
	}
}

// A main ring that hardly moves is as old as it is, not as it was when it last moved.
func TestSizing_MainThatStandsStillAges(t *testing.T) {
	a := newAgedCache(t, ringtest.Tiny(16, 1024, 64))
	a.set(t, 30_000, 50)
	before := a.Sizing()
	a.set(t, 10_000, 50)
	after := a.Sizing()
	require.NotZero(t, before.MainAgeSets)
	require.Greater(t, after.MainAgeSets, before.MainAgeSets+5000)
	require.Greater(t, after.MainAge, before.MainAge+5000*a.each)
	// Main takes a little of small's memory now and then, as no other is idle.
	require.InEpsilon(t, before.SmallAgeSets, after.SmallAgeSets, 0.1)
}

// A large main ring stands still for more Sets than 32 bits can count.
func TestSizing_AgeOfBillionsOfSets(t *testing.T) {
	a := newAgedCache(t, ringtest.Tiny(16, 1024, 64))
	a.set(t, 30_000, 50)
	require.NotZero(t, a.Sizing().MainAgeSets)
	ringtest.Shared(a.Cache).Arrivals.Stored.Add(5 << 30)
	require.GreaterOrEqual(t, a.Sizing().MainAgeSets, uint64(5<<30))
}

// While a cache is filled, entries move on from small, and none is evicted.
func TestSizing_NotKnownWhileItFills(t *testing.T) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(16, 1024, 64)
		g.Policy = p
		a := newAgedCache(t, g)
		for a.Stats().EvictedEntries == 0 {
			z := a.Sizing()
			require.Equal(t, ringcache.Sizing{}, z, "%v, with %d entries", p, a.Len())
			a.set(t, 50, 50)
		}
		a.set(t, 50_000, 50)
		require.NotZero(t, a.Sizing().MainAgeSets, "%v", p)

		a.Reset()
		a.set(t, 500, 50)
		z := a.Sizing()
		require.Zero(t, z.SmallAge+z.MainAge, "%v: after Reset", p)
		require.Zero(t, z.SmallAgeSets+z.MainAgeSets, "%v: after Reset", p)
		a.set(t, 50_000, 50)
		require.NotZero(t, a.Sizing().MainAgeSets, "%v", p)

		require.NoError(t, a.Close())
		require.Equal(t, ringcache.Sizing{}, a.Sizing(), "%v: after Close", p)
	}
}

// The ages follow the bound.
func TestSizing_Resize(t *testing.T) {
	ringtest.SkipUnderRace(t) // one goroutine does it
	t.Parallel()
	g := ringtest.Default(64 << 20)
	g.Policy = ringcache.PolicyFIFO
	a := newAgedCache(t, g)
	for _, bound := range []int{64 << 20, 32 << 20, 48 << 20} {
		require.NoError(t, a.Resize(bound))
		a.set(t, 150_000, 1000)
		z := a.Sizing()
		a.requireAge(t, a.Len(), z.MainAgeSets, z.MainAge)
	}
}

// What a file brings is older than the cache knows, so nothing is known until it has gone,
// and then it is right.
func TestSizing_File(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("there are no files on the heap")
	}
	g := ringtest.Tiny(16, 1024, 64)
	g.Policy = ringcache.PolicyFIFO
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.MustOpen(t, g, path)
	value := make([]byte, 50)
	set := func(c *ringcache.Cache, from, n uint64) {
		for id := range n {
			require.NoError(t, c.Set(binary.LittleEndian.AppendUint64(nil, from+id), value))
		}
	}
	set(c, 0, 50_000)
	held := c.Len()
	require.NotZero(t, c.Sizing().MainAgeSets)
	require.NoError(t, c.Close())

	c = ringtest.MustOpen(t, g, path)
	require.Equal(t, held, c.Len())
	require.Zero(t, c.Sizing().MainAgeSets)
	set(c, 50_000, uint64(held)/2)
	require.Zero(t, c.Sizing().MainAgeSets)
	set(c, 100_000, uint64(held))
	require.InEpsilon(t, held, c.Sizing().MainAgeSets, 0.1, "the first one")
}

// Ages make sense while others set.
func TestSizing_Concurrent(t *testing.T) {
	g := ringtest.Tiny(16, 1024, 32)
	g.Policy = ringcache.PolicyFIFO
	c := ringtest.MustCache(t, g)
	var wg sync.WaitGroup
	var total atomic.Uint64
	for i := range uint64(2) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for id := range uint64(60_000) {
				key := binary.LittleEndian.AppendUint64(nil, id<<1|i)
				assert.NoError(t, c.Set(key, make([]byte, 100)))
				total.Add(1)
			}
		}()
	}
	for done := false; !done; {
		z, n := c.Sizing(), total.Load()+2
		done = n >= 120_000
		assert.LessOrEqual(t, z.MainAgeSets, n)
		assert.Less(t, z.MainAge, time.Hour)
	}
	wg.Wait()
	require.InEpsilon(t, c.Len(), c.Sizing().MainAgeSets, 0.1)
}

// What was deleted, or has expired, is not remembered: no larger cache would have it.
func TestStats_NearMisses_NotOfWhatWasRemoved(t *testing.T) {
	c, age := ringtest.TimedCache(t, ringtest.Tiny(1, 1024, 64))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(100) {
		require.NoError(t, c.SetWithTTL(key(id), nil, time.Second*time.Duration(id%2)))
	}
	for id := range uint64(50) {
		c.Del(key(id))
	}
	*age += time.Minute
	c.DeleteExpired()
	for id := range uint64(100) {
		c.Has(key(id))
	}
	s := c.Stats()
	require.EqualValues(t, 75, s.Misses)
	require.Zero(t, s.Policy.NearMisses)
	require.Zero(t, s.Policy.Ghosts)
}

// A key that is loaded is looked for twice, and missed once.
func TestStats_NearMisses_OfLoads(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(3000) {
		require.NoError(t, c.Set(key(id), make([]byte, 100)))
	}
	load, _ := ringtest.Gives("value")
	near := uint64(0)
	for id := range uint64(3000) {
		var f store.Found
		h := ringtest.Shared(c).Hash(key(id))
		if !ringtest.BucketOf(c, h).Find(&f, key(id), h) && f.Ghost {
			near++
		}
		var err error
		if id%2 == 0 {
			_, err = c.GetOrLoad(t.Context(), nil, key(id), load)
		} else {
			_, _, err = c.GetOrLoadBatch(t.Context(), nil, [][]byte{key(id)}, make([][]byte, 1),
				new(ringtest.Echo).Load)
		}
		require.NoError(t, err)
		require.Equal(t, near, c.Stats().Policy.NearMisses, "key %d", id)
	}
	require.NotZero(t, near)
}

// A hit is no near miss, though the small bucket still has a ghost of the key: its value has
// become a large one.
func TestStats_NearMisses_NotOfHits(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(8, 1024, 64))
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	for id := range uint64(20_000) {
		require.NoError(t, c.Set(key(id), make([]byte, 100)))
	}
	ghosts := 0
	for id := range uint64(20_000) {
		var f store.Found
		h := ringtest.Shared(c).Hash(key(id))
		if b := ringtest.BucketOf(c, h); b.Find(&f, key(id), h) || !f.Ghost {
			continue
		}
		ghosts++
		require.NoError(t, c.Set(key(id), make([]byte, 20_000)))
		before := c.Stats()
		require.True(t, c.Has(key(id)))
		_, hits := c.GetBatch(nil, [][]byte{key(id)}, make([][]byte, 1))
		require.Equal(t, 1, hits)
		s := c.Stats()
		require.Equal(t, before.Misses, s.Misses)
		require.Equal(t, before.Policy.NearMisses, s.Policy.NearMisses)
	}
	require.Greater(t, ghosts, 10, "too few for a test")
}

func TestStats_Gain(t *testing.T) {
	for _, tt := range []struct {
		s        ringcache.Stats
		by, gain float64
	}{
		{ringcache.Stats{}, 0, 0},
		{ringcache.Stats{GetCalls: 200, EntriesCount: 40,
			Policy: ringcache.PolicyStats{NearMisses: 5, Ghosts: 20}},
			0.5, 0.025},
		// one came between the two
		{ringcache.Stats{GetCalls: 4, Policy: ringcache.PolicyStats{NearMisses: 5}}, 0, 1},
		{ringcache.Stats{Policy: ringcache.PolicyStats{NearMisses: 5, Ghosts: 7}}, 7, 0},
	} {
		assert.Equal(t, tt.by, tt.s.LargerBy(), "%+v", tt.s)
		assert.Equal(t, tt.gain, tt.s.Gain(), "%+v", tt.s)
	}
}

// The estimate is held against a cache that is really larger by so much. The bounds are what
// the documentation of Gain says; docs/decisions/0033 has more loads.
func TestStats_GainIsThatOfALargerCache(t *testing.T) {
	ringtest.SkipUnderRace(t) // one goroutine does it
	t.Parallel()
	loads := map[string]func() func() uint64{
		"uniform": func() func() uint64 {
			r := ringtest.NewRand(5)
			return func() uint64 { return r.Uint64N(20_000) }
		},
		"skewed":            func() func() uint64 { return skewed(1, 60_000) },
		"skewed with scans": func() func() uint64 { return withScans(skewed(2, 60_000)) },
		"moving": func() func() uint64 {
			i, next := uint64(0), skewed(3, 30_000)
			return func() uint64 { i++; return next() + i/20 }
		},
	}
	for name, load := range loads {
		for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
			const chunks = 64
			s, hits := readThrough(t, p, chunks, load())
			_, more := readThrough(t, p, int(chunks*(1+s.LargerBy())+0.5), load())
			want := float64(more-hits) / float64(s.GetCalls)
			t.Logf("%-17s %-8v larger by %.2f: %.2f points, estimated %.2f, %.2f of it",
				name, p, s.LargerBy(), 100*want, 100*s.Gain(), s.Gain()/want)
			least, most := 0.2, 1.1
			if p == ringcache.PolicyFIFO {
				least, most = 0.6, 1.3
			}
			assert.Greater(t, want, 0.01, "%s, %v: nothing to estimate", name, p)
			assert.GreaterOrEqual(t, s.Gain()/want, least, "%s, %v", name, p)
			assert.LessOrEqual(t, s.Gain()/want, most, "%s, %v", name, p)
		}
	}
}

// readThrough makes requests, Get and on a miss Set, and returns the statistics of their
// second half, with gauges of the end.
func readThrough(
	t *testing.T, p ringcache.Policy, chunks int, next func() uint64,
) (s ringcache.Stats, hits int) {
	t.Helper()
	const requests = 300_000
	g := ringtest.Tiny(8, 1024, chunks)
	g.Policy = p
	c := ringtest.MustCache(t, g)
	key, value, dst := make([]byte, 8), make([]byte, 100), make([]byte, 0, 100)
	var half ringcache.Stats
	for i := range requests {
		if i == requests/2 {
			half, hits = c.Stats(), 0
		}
		binary.LittleEndian.PutUint64(key, next())
		if _, ok := c.HasGet(dst, key); ok {
			hits++
		} else if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
	return c.Stats().Sub(half), hits
}
