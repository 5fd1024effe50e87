package system

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestMemory_RefusedFromTheStart(t *testing.T) {
	var m quotaMemory
	g := ringtest.Tiny(2, 256, 64)
	g.Memory = m.memory()
	c := ringtest.MustCache(t, g)
	for _, size := range []int{0, 10, 300, g.MaxBytes / 16} {
		k := ringtest.TrafficKey(nil, uint32(size))
		for range 3 { // a lock left held would stop the second
			err := c.Set(k, make([]byte, size))
			require.ErrorIs(t, err, ringcache.ErrNoMemory, "Set of %d bytes", size)
			require.ErrorIs(t, err, ringtest.ErrRefused, "Set of %d bytes", size)
			require.False(t, c.Has(k), "%d bytes that were refused", size)
			require.False(t, c.Del(k), "%d bytes that were refused", size)
			require.Zero(t, c.Len(), "%d bytes that were refused", size)
		}
	}
	c.Reset()
	m.allowed.Store(int64(4 * g.MaxBytes))
	runShort(t, c, g)
}

// runShort checks that c works as ever.
func runShort(t *testing.T, c *ringcache.Cache, g ringtest.Shape) {
	t.Helper()
	r := &ringtest.Runner{C: c, G: g, Bound: g.MaxBytes, Life: ringtest.NewLife(false)}
	for i := range uint32(500) {
		o := ringtest.Op{Kind: ringtest.OpSet, ID: i % 50, Class: 16, Arg: uint16(i)}
		if err := r.Step(o); err != nil {
			require.NoError(t, err, "once memory is there again: set %d", i)
		}
	}
	require.NoError(t, r.Finish(), "once memory is there again")
}

// quotaMemory is memory of which the system gives so many bytes in all.
type quotaMemory struct {
	allowed atomic.Int64
	given   atomic.Int64
	asked   atomic.Int64 // calls
}

func (m *quotaMemory) memory() chunk.Memory {
	mem := ringtest.SystemMemory()
	mem.Map = func(n int) ([]byte, error) {
		m.asked.Add(1)
		if m.given.Load()+int64(n) > m.allowed.Load() {
			return nil, ringtest.ErrRefused
		}
		m.given.Add(int64(n))
		return ringtest.SystemMemory().Map(n)
	}
	mem.Headroom = 0
	return mem
}

// A cache that is refused memory goes on as one of the size that it got: no Set is refused,
// what is stored is found as long as it fits, and nothing is read that was not set. When
// there is memory again it grows to its bound.
func TestMemory_RefusedWhileFilling(t *testing.T) {
	t.Parallel()
	const got = 50 << 20
	var m quotaMemory
	m.allowed.Store(got)
	g := ringtest.Default(160 << 20)
	g.Seed = ringtest.TestSeed
	g.Memory = m.memory()
	c := ringtest.MustCache(t, g)
	ringtest.FillLimited(t, c, got)
	asked := m.asked.Load()
	for id := range uint32(2 * got / 5000) { // of another length
		s := ringtest.Stamp{ID: id, Version: 2, Size: 5000}
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), s.Value(nil)))
		v, ok := c.HasGet(nil, ringtest.TrafficKey(nil, id))
		require.True(t, ok && s.Wrote(v), "key %d", id)
	}
	require.Less(t, m.asked.Load()-asked, int64(20), "the system is asked now and then only")
	require.NoError(t, ringtest.Validate(c))
	c.Reset()
	require.NoError(t, c.Set([]byte("k"), []byte("after Reset")))
	m.allowed.Store(1 << 30)
	requireGrowsBack(t, c)
}

// requireGrowsBack sets entries until the bound in force is the one that was set, and the cache
// takes nearly all of it. Four times as many bytes as the bound must be enough. The values go to
// small buckets, whose part large ones would not take.
func requireGrowsBack(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	bound, val := uint64(ringtest.Shared(c).Bound()), make([]byte, 1000)
	var s ringcache.Stats
	for id := range uint32(4 * bound / 1000) {
		if err := c.Set(ringtest.TrafficKey(nil, id), val); err != nil {
			require.NoError(t, err)
		}
		if id%1000 == 999 {
			s = c.Stats()
			if s.EffectiveMaxBytes == s.MaxBytesSize && s.ReservedBytes > bound*9/10 {
				break
			}
		}
	}
	require.Equal(t, s.MaxBytesSize, s.EffectiveMaxBytes)
	require.Greater(t, s.ReservedBytes, bound*9/10)
	require.NoError(t, ringtest.Validate(c))
}

// Buckets that come late, when others have all memory, get their share of it: from buckets
// that nobody sets anything in too.
func TestMemory_RefusedToBucketsThatComeLate(t *testing.T) {
	const got, size = 8 << 20, 200
	var m quotaMemory
	m.allowed.Store(got)
	g := ringtest.Default(64 << 20)
	g.Seed = ringtest.TestSeed
	g.Memory = m.memory()
	c := ringtest.MustCache(t, g)
	early, late := 0, 0
	set := func(id uint32, mine func(bucket uint64) bool) int {
		k := ringtest.TrafficKey(nil, id)
		if !mine(ringtest.HashOf(c, k) % uint64(ringtest.Shared(c).Buckets)) {
			return 0
		}
		require.NoError(t, c.Set(k, make([]byte, size)))
		require.True(t, c.Has(k))
		return 1
	}
	isEarly := func(bucket uint64) bool { return bucket < 100 }
	isLate := func(bucket uint64) bool { return bucket >= 100 }
	for id := uint32(0); !ringtest.Shared(c).Pool.Limited(); id++ {
		early += set(id, isEarly)
	}
	require.Less(t, c.Stats().EffectiveMaxBytes, uint64(got+got/8))
	require.Greater(t, early*size, got/2)
	for id := range uint32(4 * got / size) {
		late += set(id+1<<30, isLate)
	}
	held, most := 0, 0
	for i := range ringtest.Shared(c).Buckets {
		b := ringtest.Nth(c, i)
		require.NotZero(t, b.Sizes().Entries, "bucket %d", i)
		held += b.Sizes().Held
		if isEarly(uint64(i)) {
			most = max(most, b.Sizes().Held)
		}
	}
	require.Greater(t, late, 1000)
	require.LessOrEqual(t, most, 2*held/ringtest.Shared(c).Buckets+2*g.ChunkSize,
		"what idle buckets keep")
	require.Zero(t, c.Stats().Refused.NoMemory)
	require.NoError(t, ringtest.Validate(c))
}

// With Options.File, pages of indexes are not the file's: where the system refuses them, a
// bucket without one gets one of another's.
func TestMemory_RefusedToIndexesOfAFile(t *testing.T) {
	t.Parallel()
	if !chunk.OffHeap {
		t.Skip("this build has no Options.File")
	}
	var m quotaMemory
	m.allowed.Store(1 << 20)
	g := ringtest.Default(ringtest.MinBytes)
	g.Memory = m.memory()
	c := ringtest.MustOpen(t, g, filepath.Join(t.TempDir(), "cache"))
	defer ringtest.CloseCache(t, c)
	for id := range uint32(800_000) {
		k := ringtest.TrafficKey(nil, id)
		if id > 600_000 || ringtest.HashOf(c, k)%uint64(ringtest.Shared(c).Buckets) < 100 {
			require.NoError(t, c.Set(k, make([]byte, 10)))
			require.True(t, c.Has(k))
		}
	}
	require.EqualValues(t, ringtest.MinBytes, c.Stats().EffectiveMaxBytes,
		"the file is refused nothing")
	require.LessOrEqual(t, c.Stats().IndexBytes, uint64(1<<20))
	require.NoError(t, ringtest.Validate(c))
}

// Values that would take more than half of the memory that there is are refused, and drop
// nothing else; all others are stored, large or not, by whichever call.
func TestMemory_RefusedToLargeValues(t *testing.T) {
	t.Parallel()
	const got = 12 << 20
	var m quotaMemory
	m.allowed.Store(got)
	g := ringtest.Default(256 << 20)
	g.Memory = m.memory()
	c := ringtest.MustCache(t, g)
	for id := range uint32(5000) {
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, 1000)))
	}
	require.ErrorIs(t, c.Set([]byte("of 12 MB"), make([]byte, 12<<20)), ringcache.ErrNoMemory)
	require.Equal(t, 5000, c.Len(), "what is refused drops nothing")
	for id := range uint32(2000) {
		k, v := ringtest.TrafficKey(nil, id), make([]byte, 10_000+int(id)*7%30_000)
		require.NoError(t, c.Set(k, v))
		require.True(t, c.Has(k))
	}
	require.Less(t, c.Stats().EffectiveMaxBytes, uint64(got)+1)
	require.Greater(t, c.Stats().BytesSize, uint64(got/3)) // a chunk is two thirds of a bucket
	n, k := c.Len(), []byte("of 12 MB")
	require.NoError(t, c.Set(k, []byte("older")))
	require.ErrorIs(t, c.Set(k, make([]byte, 12<<20)), ringcache.ErrNoMemory)
	require.False(t, c.Has(k))
	require.GreaterOrEqual(t, c.Len(), n-1)
	require.Equal(t, uint64(2), c.Stats().Refused.NoMemory)
	require.NoError(t, c.Set(k, make([]byte, 4<<20)))
	require.Len(t, c.Get(nil, k), 4<<20)
	requireCalls(t, c)
	require.NoError(t, ringtest.Validate(c))
	m.allowed.Store(1 << 30)
	require.NoError(t, c.Resize(64<<20))
	requireGrowsBack(t, c)
	require.NoError(t, c.Resize(200<<20))
	requireGrowsBack(t, c)
}

// requireCalls checks that calls that store something do.
func requireCalls(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	ctx, v := context.Background(), make([]byte, 3000)
	n := c.Namespace("n")
	for i := range 2000 {
		k := fmt.Append(nil, "call ", i)
		require.NoError(t, c.SetBatch([][]byte{k}, [][]byte{v}))
		require.NoError(t, c.Update(k, ringtest.Append(v[:i])))
		require.Len(t, c.Get(nil, k), len(v)+i)
		require.True(t, c.Touch(k, time.Hour))
		ok, err := ringtest.SetIfAbsent(c, fmt.Append(k, "a"), v)
		require.True(t, ok && err == nil)
		ok, err = c.CompareAndSwap(fmt.Append(k, "a"), v, v[:100])
		require.True(t, ok && err == nil)
		ok, err = c.SetIfChanged(fmt.Append(k, "a"), v[:200])
		require.True(t, ok && err == nil)
		require.NoError(t, n.Set(k, v))
		require.True(t, n.Has(k))
		_, err = c.GetOrLoad(ctx, nil, fmt.Append(k, "l"),
			func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil })
		require.NoError(t, err)
		require.True(t, c.Has(fmt.Append(k, "l")))
	}
}

// Snapshots are loaded into a cache that is refused memory, and made of one.
func TestMemory_RefusedToASnapshot(t *testing.T) {
	var m quotaMemory
	m.allowed.Store(10 << 20)
	g := ringtest.Default(64 << 20)
	g.Memory = m.memory()
	whole, c := ringtest.MustCache(t, ringtest.Default(64<<20)), ringtest.MustCache(t, g)
	for id := range uint32(20_000) {
		require.NoError(t, whole.Set(ringtest.TrafficKey(nil, id), make([]byte, 500+id%3000)))
	}
	var b bytes.Buffer
	_, err := whole.WriteSnapshot(&b)
	require.NoError(t, err)
	_, err = c.ReadSnapshot(&b)
	require.NoError(t, err)
	require.Greater(t, c.Stats().BytesSize, uint64(5<<20))
	require.NoError(t, ringtest.Validate(c))
}

// Any number of goroutines at once, when the system begins to refuse.
func TestMemory_RefusedToMany(t *testing.T) {
	var m quotaMemory
	m.allowed.Store(6 << 20)
	g := ringtest.Default(64 << 20)
	g.Memory = m.memory()
	c := ringtest.MustCache(t, g)
	var all sync.WaitGroup
	var failed atomic.Int64
	sets := uint32(5000)
	if ringtest.RaceEnabled { // where a search of all buckets takes milliseconds
		sets = 1000
	}
	for w := range uint32(8) {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range sets {
				size := 200 + i%3000
				if i%100 == 0 {
					size = 50_000
				}
				if c.Set(ringtest.TrafficKey(nil, w<<16|i), make([]byte, size)) != nil {
					failed.Add(1)
				}
			}
		}()
	}
	all.Wait()
	require.True(t, ringtest.Shared(c).Pool.Limited())
	require.Zero(t, failed.Load())
	require.NoError(t, ringtest.Validate(c))
}

// A bucket that holds all memory, with a few expired entries, gives some to the others, whose Sets
// find it.
func TestMemory_ExpiredEntriesElsewhere(t *testing.T) {
	for _, size := range []int{30, 3000, 30_000} {
		var m quotaMemory
		m.allowed.Store(2 << 20)
		g := ringtest.Tiny(2, 4096, 2048)
		g.Memory = m.memory()
		c, age := ringtest.TimedCache(t, g)
		*age = time.Minute
		number := func(id uint32) uint32 {
			_, h := ringtest.KeyOf(c, ringtest.TrafficKey(nil, id))
			return uint32(ringtest.BucketOf(c, h).Number)
		}
		id := uint32(0)
		for n := 0; !ringtest.Shared(c).Pool.Limited(); id++ {
			if number(id) == 0 {
				n++
				k := ringtest.TrafficKey(nil, id)
				require.NoError(t, c.SetWithTTL(k, make([]byte, 20), time.Duration(1/(1+n%50))*time.Second))
			}
		}
		*age += 2 * time.Second
		for end := id + 400; id < end; id++ {
			if number(id) != 0 {
				require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, size)), size)
			}
		}
		require.NoError(t, ringtest.Validate(c))
	}
}
