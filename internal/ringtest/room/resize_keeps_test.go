package room

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A smaller bound drops no entry that has room below it, and those that were read lately go last.

// keepsFloor are the shares of the entries that Resize may evict, by the share of the new bound
// that live entries have, and the share of those that were read lately.
type keepsFloor struct{ live, evicted, read float64 }

// Nothing is evicted up to a share of 0.7, and 0.05 at 0.9, where the new bound has four chunks for
// each bucket or more, of 4 KB or more.
var (
	keepsFloors = []keepsFloor{{0.5, 0, 0}, {0.7, 0, 0}, {0.9, 0.05, 0.01}}

	// Of caches made with less than 32 MB, to be lowered: the page of an index is an eighth of what
	// each bucket has. The worst case is the one from 4 MB to 512 KB.
	keepsFloorsTiny = []keepsFloor{{0.5, 0, 0}, {0.7, 0.035, 0}, {0.9, 0.15, 0}}

	// Of values of 1 to 200 KB. The worst case is the one from 1 GB to 128 MB.
	keepsFloorsLarge = []keepsFloor{{0.5, 0, 0}, {0.7, 0, 0}, {0.9, 0.19, 0.2}}

	// Of values of 50 bytes to 12 KB. Nearly all of the bytes are in large buckets, and most of the
	// chunks of small buckets have only a few short records, which are evicted first.
	keepsFloorsMixed = []keepsFloor{{0.5, 0, 0}, {0.7, 0.002, 0.002}, {0.9, 0.27, 0.25}}
)

// keepsFloorsOf returns the floors for values of these lengths in a cache of that bound.
func keepsFloorsOf(sizes [2]int, from int) []keepsFloor {
	switch {
	case sizes[1] > 1<<16:
		return keepsFloorsLarge
	case sizes[1] > 1<<10:
		return keepsFloorsMixed
	case from < 32<<20:
		return keepsFloorsTiny
	}
	return keepsFloors
}

// keepsBounds are bounds in KB from which and to which a cache is resized.
func keepsBounds() [][2]int {
	bounds := [][2]int{{1 << 10, 256}, {4 << 10, 512}, {64 << 10, 8 << 10}}
	if *ringtest.LongRun {
		bounds = append(bounds, [][2]int{{16 << 10, 2 << 10}, {64 << 10, 16 << 10},
			{64 << 10, 32 << 10}, {256 << 10, 32 << 10}, {1 << 20, 128 << 10}}...)
	}
	return bounds
}

func TestRoom_ResizeKeeps(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	for _, policy := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		for _, sizes := range [][2]int{{50, 550}, {50, 12 << 10}, {1 << 10, 200 << 10}} {
			for _, kb := range keepsBounds() {
				if sizes[1] > kb[1]<<10/16 {
					continue // too long
				}
				if sizes[0] < 1<<10 && sizes[1] > 1<<10 && kb[1] > kb[0]/4 {
					continue // Sets evict some before the cache is resized
				}
				name := fmt.Sprintf("%v/%d to %d/%d to %d KB", policy, sizes[0], sizes[1], kb[0], kb[1])
				t.Run(name, func(t *testing.T) { resizeKeeps(t, policy, sizes, kb[0]<<10, kb[1]<<10) })
			}
		}
	}
}

// resizeKeeps makes a cache smaller for each share of live entries.
func resizeKeeps(t *testing.T, policy ringcache.Policy, sizes [2]int, from, to int) {
	for _, floor := range keepsFloorsOf(sizes, from) {
		k := newKeeper(t, policy, sizes, from, int(floor.live*float64(to)))
		k.resize(to)
		full := k.refill(from, to)
		t.Logf("live %.1f: evicted %d of %d, %d of %d that were read; %d if filled at the new bound",
			floor.live, k.lost, k.n, k.readLost, k.read, full)
		assert.LessOrEqual(t, k.lost, int(floor.evicted*float64(k.n)),
			"evicted of %d, with %.1f of the bound live", k.n, floor.live)
		if policy == ringcache.PolicyS3FIFO { // FIFO takes no notice of reads
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
	rnd            *rand.Rand
	policy         ringcache.Policy
	sizes          [2]int
	value          []byte
	n, read        int
	lost, readLost int
}

func newKeeper(
	t *testing.T, policy ringcache.Policy, sizes [2]int, bound, live int,
) *keeper {
	g := ringtest.Default(bound)
	g.Policy, g.Seed = policy, ringtest.TestSeed
	k := &keeper{t: t, c: ringtest.MustCache(t, g), rnd: ringtest.NewRand(uint64(live)),
		policy: policy, sizes: sizes, value: make([]byte, sizes[1])}
	k.fill(live)
	for range 3 {
		for i := range k.n {
			k.set(i)
		}
	}
	for k.bytes() > live {
		for range 1 + k.n/500 {
			k.n--
			require.True(t, k.c.Del(keptKey(k.n)))
		}
	}
	k.fill(live)
	for i := 0; i < k.n; i += 10 {
		for range 2 {
			require.True(t, k.c.Has(keptKey(i)))
		}
		k.read++
	}
	require.Zero(t, k.c.Stats().EvictedEntries, "evicted before the cache was resized")
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

// refill returns how many entries of these lengths are evicted by Sets if the cache is empty when
// it is made smaller.
func (k *keeper) refill(from, to int) int {
	g := ringtest.Default(from)
	g.Policy, g.Seed = k.policy, ringtest.TestSeed
	k.c = ringtest.MustCache(k.t, g)
	require.NoError(k.t, k.c.Resize(to))
	for i := range k.n {
		k.set(i)
	}
	defer ringtest.CloseCache(k.t, k.c)
	return int(k.c.Stats().EvictedEntries)
}

// resize makes the cache smaller, and counts what is lost.
func (k *keeper) resize(to int) {
	ringtest.MustResize(k.t, k.c, to)
	for i := range k.n {
		if _, ok := k.c.Peek(k.value[:0], keptKey(i)); !ok {
			k.lost++
			if i%10 == 0 {
				k.readLost++
			}
		}
	}
	require.EqualValues(k.t, k.lost, k.c.Stats().EvictedEntries)
	ringtest.CloseCache(k.t, k.c)
}

// bytes returns the bytes of the live records.
func (k *keeper) bytes() int { return int(k.c.Stats().BytesSize) }

func keptKey(i int) []byte { return fmt.Appendf(nil, "kept %d", i) }
