package room

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

func newSmall(t *testing.T, maxBytes int) *ringcache.Cache {
	t.Helper()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// A cache below 32 MB keeps to its bound, and makes use of it.
func TestSmallCache_UsesItsBound(t *testing.T) {
	for _, maxBytes := range []int{256 << 10, 300_000, 1 << 20, 1<<20 + 1, 5 << 20, 31 << 20} {
		c := newSmall(t, maxBytes)
		value := make([]byte, 300)
		for i := range 3 * maxBytes / len(value) {
			require.NoError(t, c.Set(fmt.Appendf(nil, "key %d", i), value))
		}
		s := c.Stats()
		require.LessOrEqual(t, s.ReservedBytes, uint64(maxBytes))
		require.Greater(t, s.BytesSize, uint64(maxBytes)*4/5, "of %d bytes", maxBytes)
		require.NoError(t, c.Set([]byte("longest"), make([]byte, maxBytes/16)))
		require.True(t, c.Has([]byte("longest")), "in %d bytes", maxBytes)
		require.ErrorIs(t, c.Set([]byte("longer"), make([]byte, maxBytes/16+1)), ringcache.ErrTooLarge)
	}
}

// An empty cache takes little of the Go heap, and the less, the lower its bound is.
func TestSmallCache_HeapFollowsTheBound(t *testing.T) {
	if !chunk.OffHeap || ringtest.RaceEnabled {
		t.Skip("the cache lies on the Go heap")
	}
	const caches = 50
	for maxBytes, most := range map[int]uint64{
		256 << 10: 25 << 10, 1 << 20: 40 << 10, 512 << 20: 480 << 10,
	} {
		before := ringtest.HeapBytes()
		var all []*ringcache.Cache
		for range caches {
			all = append(all, newSmall(t, maxBytes))
		}
		// Less, if others were collected.
		require.LessOrEqual(t, ringtest.HeapBytes(), before+caches*most,
			"bytes of heap of caches of %d", maxBytes)
		runtime.KeepAlive(all)
	}
}

// The documentation states this bound. The tables of chunks grow until the cache is full.
func TestFullCache_HeapIsAsDocumented(t *testing.T) {
	if !chunk.OffHeap || ringtest.RaceEnabled {
		t.Skip("the cache lies on the Go heap")
	}
	const maxBytes = 32 << 20
	before := ringtest.HeapBytes()
	c := newSmall(t, maxBytes)
	key, value := make([]byte, 16), make([]byte, 100)
	for i := range uint64(2 * maxBytes / 120) {
		binary.LittleEndian.PutUint64(key, i)
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
	require.LessOrEqual(t, ringtest.HeapBytes(), before+(800<<10)) // less, if others were collected
	runtime.KeepAlive(c)
}

// The first entry of a small bucket takes the memory of dead records, wherever they are, not that
// of live ones, though a large bucket without dead records could give its own.
func TestRoom_FirstEntryTakesDeadBytes(t *testing.T) {
	c := ringtest.NewCache(ringtest.Tiny(8, 4096, 64)) // without a cold part, which leaves some
	t.Cleanup(func() { ringtest.CloseCache(t, c) })
	const size, each = 40_000, 8
	pool := ringtest.Shared(c).Pool
	var in [store.LargeBuckets][][]byte
	for id := uint32(0); len(slices.Concat(in[:]...)) < each*store.LargeBuckets; id++ {
		k := ringtest.TrafficKey(nil, id)
		i := int(ringtest.LargeBucketOf(c, ringtest.HashOf(c, k)).Number) - ringtest.Shared(c).Buckets
		if len(in[i]) < each {
			require.NoError(t, c.Set(k, make([]byte, size)))
			in[i] = append(in[i], k)
		}
	}
	for _, k := range slices.Concat(in[1:]...) {
		require.True(t, c.Del(k))
	}
	var taken []chunk.Ref // as other small buckets would
	for pool.Spare() >= pool.ChunkSize() {
		r, err := pool.Chunk()
		require.NoError(t, err)
		taken = append(taken, r)
	}
	require.NoError(t, c.Set([]byte("small"), make([]byte, 10)))
	require.LessOrEqual(t, pool.Used(), ringtest.Shared(c).Bound())
	require.Zero(t, ringtest.StatsOf(c).EvictedEntries)
	for _, r := range taken {
		pool.Put(r)
	}
	require.NoError(t, ringtest.Validate(c))
}

// The first entry of a small bucket waits for the lock of a large one, where the memory is, and
// does not exceed the bound.
func TestRoom_FirstEntryWaitsForLargeBucket(t *testing.T) {
	c := ringtest.NewCache(ringtest.Tiny(8, 4096, 64)) // without a cold part, which leaves some
	t.Cleanup(func() { ringtest.CloseCache(t, c) })
	pool := ringtest.Shared(c).Pool
	k, other := []byte("small"), []byte("large")
	lb := ringtest.LargeBucketOf(c, ringtest.HashOf(c, other))
	require.NoError(t, c.Set(other, make([]byte, 100_000)))
	var taken []chunk.Ref // as other small buckets would
	for pool.Spare() >= pool.ChunkSize() {
		r, err := pool.Chunk()
		require.NoError(t, err)
		taken = append(taken, r)
	}
	own, done := ringtest.BucketOf(c, ringtest.HashOf(c, k)), make(chan error, 1)
	lb.Lock()
	go func() { done <- c.Set(k, make([]byte, 10)) }()
	for waits := 0; waits < 1000 && len(done) == 0; waits++ {
		runtime.Gosched()
		if own.Mu.TryLock() {
			own.Mu.Unlock()
			waits = 0
		}
	}
	lb.Unlock()
	require.NoError(t, <-done)
	require.True(t, c.Has(k))
	require.LessOrEqual(t, pool.Used(), ringtest.Shared(c).Bound())
	for _, r := range taken {
		pool.Put(r)
	}
	require.NoError(t, ringtest.Validate(c))
}

// The index of many short entries, which are gone, leaves its memory to fewer longer ones.
func TestRoom_IndexOfShortEntriesGivesWay(t *testing.T) {
	const bound, least, most = 4 << 20, 150, 450
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(bound)
		g.Policy, g.Seed = policy, ringtest.TestSeed
		c := ringtest.MustCache(t, g)
		ringtest.FillCache(t, c, 0, bound/16, 0)
		index := c.Stats().IndexBytes
		for k := range c.Keys() {
			require.True(t, c.Del(k))
		}
		evicted, rnd := c.Stats().EvictedEntries, ringtest.NewRand(1)
		const entries = bound / 2 / ((least + most) / 2)
		for range 8 * entries {
			n := least + rnd.IntN(most-least)
			require.NoError(t, c.Set(ringtest.TrafficKey(nil, rnd.Uint32N(entries)), make([]byte, n)))
		}
		s := c.Stats()
		require.Equal(t, evicted, s.EvictedEntries, "%v: %v", policy, s)
		require.Less(t, s.IndexBytes, index/4, "%v", policy)
		require.NoError(t, ringtest.Validate(c))
	}
}

// Rewriting long entries with other lengths evicts hardly any short ones while live entries fill
// half of the memory, even in a cache of few chunks. Those evicted are evicted by their own bucket,
// of which one chunk is a noticeable part.
func TestRoom_ShortEntriesStayBesideLongOnes(t *testing.T) {
	const bound, least, most, steps = 1 << 20, 16, 40_000, 60_000
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(bound)
		g.Policy, g.Seed = policy, ringtest.TestSeed
		c := ringtest.MustCache(t, g)
		rnd, value := ringtest.NewRand(1), make([]byte, most)
		var sizes [120]int
		live := 0
		for range steps {
			i, n := rnd.IntN(len(sizes)), int(least*math.Pow(most/least, rnd.Float64()))
			live -= sizes[i]
			if sizes[i] = 0; rnd.IntN(10) == 0 || live+n > bound/2 {
				c.Del(ringtest.IDKey(i))
				continue
			}
			require.NoError(t, c.Set(ringtest.IDKey(i), value[:n]))
			sizes[i] = n
			live += n
		}
		evicted := ringtest.StatsOf(c).EvictedEntries
		t.Logf("%v: %d evicted", policy, evicted)
		require.LessOrEqual(t, evicted, uint64(steps/1000), "%v", policy)
	}
}

// Entries of 50 bytes to 12 KB that are rewritten with other lengths and deleted are hardly ever
// evicted while they fill 0.7 of the memory: some buckets need a third more than others, which have
// more dead bytes and give way.
func TestRoom_MixedLengthsStay(t *testing.T) {
	const least, most, header = 50, 12_000, 12
	mean := header + (most-least)/math.Log(most/least)
	for _, bound := range []int{4 << 20, 16 << 20} {
		for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
			g := ringtest.Default(bound)
			g.Policy, g.Seed = policy, ringtest.TestSeed
			c := ringtest.MustCache(t, g)
			rnd, value := ringtest.NewRand(1), make([]byte, most)
			entries := int(0.7 * float64(bound) / mean)
			steps := 20 * entries
			for n := range steps {
				k := ringtest.IDKey(rnd.IntN(entries))
				if n < entries {
					k = ringtest.IDKey(n)
				}
				if rnd.IntN(20) == 0 {
					c.Del(k)
					continue
				}
				n := int(least * math.Pow(most/least, rnd.Float64()))
				require.NoError(t, c.Set(k, value[:n]))
			}
			evicted := ringtest.StatsOf(c).EvictedEntries
			t.Logf("%d MB, %v: %d evicted in %d steps", bound>>20, policy, evicted, steps)
			require.LessOrEqual(t, evicted, uint64(steps/500), "%d MB, %v", bound>>20, policy)
			require.NoError(t, ringtest.Validate(c))
		}
	}
}

// Entries of 50 bytes to 12 KB come from a snapshot as long as they fill up to 0.7 of the memory,
// whatever the cache that wrote it: some buckets need a third more than others.
func TestRoom_MixedLengthsAreRestored(t *testing.T) {
	bounds := []int{4 << 20, 16 << 20}
	if *ringtest.LongRun {
		bounds = append(bounds, 64<<20)
	}
	for _, bound := range bounds {
		for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
			for _, times := range []int{1, 4} { // as large is the cache that writes
				for _, live := range []float64{0.5, 0.65, 0.7} {
					name := fmt.Sprintf("%d MB, %v, of %d, %v", bound>>20, policy, times*bound>>20, live)
					t.Run(name, func(t *testing.T) { restoreMixed(t, bound, policy, times, live) })
				}
			}
		}
	}
}

// restoreMixed restores a snapshot of a cache that is several times as large as those that read it,
// a fresh one, one that has half the entries, a loaded one, and a loaded one in a file.
func restoreMixed(t *testing.T, bound int, policy ringcache.Policy, times int, live float64) {
	const least, most, header = 50, 12_000, 12
	shaped := func(seed uint64, bytes int) *ringcache.Cache {
		g := ringtest.Default(bytes)
		g.Policy, g.Seed = policy, [2]uint64{seed, ringtest.TestSeed[1]}
		return ringtest.MustCache(t, g)
	}
	from, fresh, half := shaped(2, times*bound), shaped(102, bound), shaped(102, bound)
	rest := shaped(2, times*bound)
	rnd, value := ringtest.NewRand(1), make([]byte, most)
	entries := int(live * float64(bound) / (header + (most-least)/math.Log(most/least)))
	for n := range entries {
		v := value[:int(least*math.Pow(most/least, rnd.Float64()))]
		require.NoError(t, from.Set(ringtest.IDKey(n), v))
		require.NoError(t, []*ringcache.Cache{half, rest}[n%2].Set(ringtest.IDKey(n), v))
	}
	require.Equal(t, entries, from.Len())
	for to, c := range map[*ringcache.Cache]*ringcache.Cache{fresh: from, half: rest} {
		var file bytes.Buffer
		_, err := c.WriteSnapshot(&file)
		require.NoError(t, err)
		_, err = to.ReadSnapshot(&file)
		require.NoError(t, err)
		require.NoError(t, ringtest.Validate(to))
	}
	_, path := ringtest.SnapshotOf(t, from)
	o := ringcache.Options{MaxBytes: bound, Policy: policy}
	loaded, _ := ringtest.MustLoadInto(t, path, o)
	o.File = filepath.Join(ringtest.DirInMemory(t), "file")
	inFile, _ := ringtest.MustLoadInto(t, path, o)
	lost := 0
	if live > 0.5 {
		lost = entries / 1000
	}
	for i, c := range []*ringcache.Cache{fresh, half, loaded, inFile} {
		require.LessOrEqual(t, entries-c.Len(), lost, "lost by cache %d, of %d", i, entries)
	}
}

// Entries from a snapshot that fits take the place of dead ones before that of live ones.
func TestRoom_RestoredBesideDeadBytes(t *testing.T) {
	const bound, size, entries = 4 << 20, 10, 60_000 // which fill half of the memory
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(bound)
		g.Policy, g.Seed = policy, ringtest.TestSeed
		c, from := ringtest.MustCache(t, g), ringtest.MustCache(t, g)
		for n := range entries {
			to := []*ringcache.Cache{c, from}[n%2]
			require.NoError(t, to.Set(ringtest.IDKey(n), make([]byte, size)))
		}
		for n := range 2 * bound / size {
			k := ringtest.IDKey(entries + n%20)
			require.NoError(t, c.Set(k, make([]byte, size)))
			require.True(t, c.Del(k))
		}
		require.Equal(t, entries/2, c.Len())
		var file bytes.Buffer
		_, err := from.WriteSnapshot(&file)
		require.NoError(t, err)
		_, err = c.ReadSnapshot(&file)
		require.NoError(t, err)
		require.LessOrEqual(t, entries-c.Len(), entries/200, "lost with %v", policy)
		require.NoError(t, ringtest.Validate(c))
	}
}

// Short entries that take the place of long ones get the memory that the large buckets hold for
// dead bytes, even if the small buckets have so little at first that their indexes can't grow.
func TestRoom_ShortEntriesFollowLongOnes(t *testing.T) {
	const bound, long, short, header = 2 << 20, 8000, 20, 27
	for seed := range uint64(20) {
		g := ringtest.Default(bound)
		g.Seed = [2]uint64{seed, ringtest.TestSeed[1]}
		c := ringtest.MustCache(t, g)
		rnd, value := ringtest.NewRand(seed), make([]byte, long)
		olds, news := bound/2/(long+header), bound/2/(short+header)
		for n := range 40 * olds {
			if k := ringtest.IDKey(rnd.IntN(olds)); n > 0 && rnd.IntN(20) == 0 {
				c.Del(k)
			} else {
				require.NoError(t, c.Set(k, value[:long-rnd.IntN(1000)]))
			}
		}
		before := ringtest.StatsOf(c).EvictedEntries
		for n := range news {
			if n*olds/news != (n-1)*olds/news {
				c.Del(ringtest.IDKey(n * olds / news))
			}
			require.NoError(t, c.Set(ringtest.IDKey(olds+n), value[:short]))
		}
		evicted := ringtest.StatsOf(c).EvictedEntries - before
		t.Logf("seed %d: %d of %d evicted", seed, evicted, news)
		require.LessOrEqual(t, evicted, uint64(news/50), "seed %d", seed)
		require.NoError(t, ringtest.Validate(c))
	}
}
