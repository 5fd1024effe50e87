package room

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// A smaller bound drops no entry that has room below it, and those that were read lately go last:
// by Resize, when a file is opened, and when a snapshot is loaded.

// keepsFloor are the shares of the entries that may be evicted, by the share of the new bound
// that live entries have, and the share of those that were read lately.
type keepsFloor struct{ live, evicted, read float64 }

// Nothing is evicted up to a share of 0.7, and 0.05 at 0.9, down to an eighth of the bound.
var keepsFloors = []keepsFloor{{0.5, 0, 0}, {0.7, 0, 0}, {0.9, 0.05, 0.01}}

// The ways in which a cache gets a smaller bound.
const (
	byResize  = "Resize"
	byOpening = "opening of its file" // which does not tell what was read
	byLoad    = "Load"
)

// keepsBounds are bounds in KB from which and to which a cache is resized.
func keepsBounds() [][2]int {
	bounds := [][2]int{{2 << 10, 256}, {4 << 10, 512}, {16 << 10, 2 << 10}, {64 << 10, 8 << 10}}
	if *ringtest.LongRun {
		bounds = append(bounds, [][2]int{{1 << 10, 256}, {64 << 10, 32 << 10}, {256 << 10, 32 << 10},
			{1 << 20, 128 << 10}}...)
	}
	return bounds
}

func TestRoom_SmallerBoundKeeps(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		for _, sizes := range [][2]int{{50, 550}, {50, 12 << 10}, {1 << 10, 200 << 10}} {
			for _, kb := range keepsBounds() {
				if sizes[1] > kb[1]<<10/40 {
					continue // a single value is more than what may be free
				}
				if sizes[0] < 1<<10 && sizes[1] > 1<<10 && kb[1] > kb[0]/4 {
					continue // Sets evict some before the cache is resized
				}
				if !*ringtest.LongRun && sizes[1] < 100<<10 && kb[0] > 16<<10 {
					continue // it takes many entries
				}
				for _, way := range keepsWays(kb[0]) {
					name := fmt.Sprintf("%s/%v/%d to %d/%d to %d KB",
						way, policy, sizes[0], sizes[1], kb[0], kb[1])
					t.Run(name, func(t *testing.T) { keeps(t, way, policy, sizes, kb[0]<<10, kb[1]<<10) })
				}
			}
		}
	}
}

// keepsWays returns the ways for a cache that was made with so many KB.
func keepsWays(kb int) []string {
	fileUpTo := 16 << 10 // the disk is slow
	if *ringtest.LongRun {
		fileUpTo = 256 << 10
	}
	switch {
	case kb < 16<<10 && !*ringtest.LongRun:
		return []string{byResize}
	case !chunk.OffHeap || kb > fileUpTo:
		return []string{byResize, byLoad}
	}
	return []string{byResize, byOpening, byLoad}
}

// keeps makes a cache smaller for each share of live entries.
func keeps(t *testing.T, way string, policy ringcache.Policy, sizes [2]int, from, to int) {
	for _, floor := range keepsFloors {
		k := newKeeper(t, way, policy, sizes, from, int(floor.live*float64(to)))
		require.Zero(t, k.c.Stats().EvictedEntries, "evicted before the cache was made smaller")
		k.shrink(to)
		t.Logf("live %.1f: evicted %d of %d, %d of %d that were read",
			floor.live, k.lost, k.n, k.readLost, k.read)
		most := int(floor.evicted * float64(k.n))
		if sizes[0] < 1<<10 && sizes[1] > 1<<10 {
			most = max(most, k.n/5000) // sizes of both kinds fill some buckets unevenly
		}
		assert.LessOrEqual(t, k.lost, most,
			"evicted of %d, with %.1f of the bound live", k.n, floor.live)
		if policy == ringcache.PolicyS3FIFO && way != byOpening { // FIFO takes no notice of reads
			assert.LessOrEqual(t, k.readLost, int(floor.read*float64(k.read)),
				"evicted of %d that were read, with %.1f of the bound live", k.read, floor.live)
		}
	}
}

// keeper is a cache whose entries were set again with other lengths, and of which a tenth was read
// lately.
type keeper struct {
	t              *testing.T
	c              *ringcache.Cache
	way, dir       string
	rnd            *rand.Rand
	shape          ringtest.Shape
	sizes          [2]int
	value          []byte
	n, read        int
	lost, readLost int
}

func newKeeper(
	t *testing.T, way string, policy ringcache.Policy, sizes [2]int, bound, live int,
) *keeper {
	g := ringtest.Default(bound)
	g.Policy, g.Seed = policy, ringtest.TestSeed
	k := &keeper{t: t, way: way, dir: t.TempDir(), rnd: ringtest.NewRand(uint64(live)), shape: g,
		sizes: sizes, value: make([]byte, sizes[1])}
	if bound <= 16<<20 {
		k.dir = ringtest.DirInMemory(t)
	}
	if way == byOpening {
		k.c = ringtest.MustOpen(t, g, filepath.Join(k.dir, "cache"))
	} else {
		k.c = ringtest.MustCache(t, g)
	}
	k.fill(live)
	for range 3 {
		for i := range k.n {
			k.set(i)
		}
	}
	for k.bytes() > live {
		for range 1 + k.n/500 {
			k.n--
			k.c.Del(keptKey(k.n))
		}
	}
	k.fill(live)
	for i := 0; i < k.n; i += 10 {
		for range 2 {
			k.c.Has(keptKey(i))
		}
		k.read++
	}
	return k
}

// fill sets new keys until the live records have so many bytes.
func (k *keeper) fill(live int) {
	for k.bytes() < live {
		for range 1 + k.n/500 {
			k.set(k.n)
			k.n++
		}
	}
}

// set sets a key to a value of another length.
func (k *keeper) set(i int) {
	least, most := float64(k.sizes[0]), float64(k.sizes[1])
	n := least + k.rnd.Float64()*(most-least)
	if most > 100*least { // as many short values as long ones
		n = least * math.Pow(most/least, k.rnd.Float64())
	}
	if err := k.c.Set(keptKey(i), k.value[:int(n)]); err != nil {
		require.NoError(k.t, err)
	}
}

// shrink makes the cache smaller, and counts what is lost.
func (k *keeper) shrink(to int) {
	k.shape.MaxBytes = to
	switch file := filepath.Join(k.dir, "snapshot"); k.way {
	case byResize:
		ringtest.MustResize(k.t, k.c, to)
	case byOpening:
		ringtest.CloseCache(k.t, k.c)
		k.c = ringtest.MustOpen(k.t, k.shape, filepath.Join(k.dir, "cache"))
	case byLoad:
		require.NoError(k.t, k.c.SaveToFile(file))
		ringtest.CloseCache(k.t, k.c)
		var report ringcache.LoadReport
		var err error
		k.c, report, err = ringcache.Load(file, k.shape.Options)
		require.NoError(k.t, errors.Join(err, report.Err))
	}
	for i := range k.n {
		if _, ok := k.c.Peek(k.value[:0], keptKey(i)); !ok {
			k.lost++
			if i%10 == 0 {
				k.readLost++
			}
		}
	}
	if k.way != byLoad { // which leaves some out
		require.EqualValues(k.t, k.lost, k.c.Stats().EvictedEntries)
	}
	ringtest.CloseCache(k.t, k.c)
}

// bytes returns the bytes of the live records.
func (k *keeper) bytes() int { return int(k.c.Stats().BytesSize) }

func keptKey(i int) []byte { return fmt.Appendf(nil, "kept %d", i) }

// Most bytes of large buckets are dead when the values of a cache that is no longer sparse move to
// small ones, which need that memory at once: fewer than half of the bytes are live.
func TestRoom_DeadLargeBytesGiveWay(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	k := newKeeper(t, byResize, ringcache.PolicyFIFO, [2]int{50, 12 << 10}, 64<<20, 29<<20)
	evicted := int(k.c.Stats().EvictedEntries)
	t.Logf("evicted %d of %d", evicted, k.n)
	require.LessOrEqual(t, evicted, k.n/25)
}

// A bucket whose live entries take more than its share keeps them as long as a quarter of the
// memory is free of live entries, though dead ones fill it.
func TestRoom_UnevenBucketKeeps(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	c := resizable(t, 64<<20)
	var keys [][]byte
	var in [store.BucketCount]int
	for id := uint32(0); in[0] < 130; id++ {
		k := ringtest.TrafficKey(nil, id)
		i := ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number
		if in[i] < 72 || i == 0 {
			in[i]++
			keys = append(keys, k)
		}
	}
	rnd, value := ringtest.NewRand(1), make([]byte, 80_000)
	for round := range 8 {
		for i, k := range keys {
			require.NoError(t, c.Set(k, value[:50+rnd.IntN(1950)]))
			if i%400 == 0 {
				require.NoError(t, c.Set(keptKey(i), value[:20_000+rnd.IntN(60_000)]))
			}
		}
		s := c.Stats()
		require.Zero(t, s.EvictedEntries, "in round %d, %d of %d bytes live", round, s.BytesSize,
			s.MaxBytesSize)
	}
	held, share := ringtest.Nth(c, 0).Sizes().Held, 64<<20/store.BucketCount
	require.Greater(t, held, share, "the bucket is not above its share: the test proves nothing")
}
