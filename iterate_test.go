package ringcache

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// watched are entries that a loop has to see exactly once, whatever happens to
// others.
type watched struct {
	c    *Cache
	size map[uint32]int
}

// watch sets n entries of various sizes, and keeps those that are there then.
func watch(t *testing.T, c *Cache, n uint32, sizeOf func(id uint32) int) *watched {
	t.Helper()
	w := &watched{c, map[uint32]int{}}
	for id := range n {
		v := stamp{id: id, version: 1, size: sizeOf(id)}.value(nil)
		if err := c.Set(trafficKey(nil, id), v); err != nil {
			require.NoError(t, err)
		}
	}
	for id := range n {
		if c.Has(trafficKey(nil, id)) {
			w.size[id] = sizeOf(id)
		}
	}
	return w
}

// loop goes over all entries, calls body in each round, and reports what was
// not seen as often as it must be. Ids from others on are not watched.
func (w *watched) loop(t *testing.T, body func()) {
	t.Helper()
	seen := map[uint32]int{}
	for k, v := range w.c.All() {
		id := binary.LittleEndian.Uint32(k)
		if size, ok := w.size[id]; ok {
			seen[id]++
			if !slices.Equal(k, trafficKey(nil, id)) ||
				!(stamp{id: id, version: 1, size: size}).wrote(v) {
				assert.Fail(t, "not what was set", "key %d comes with %d bytes", id, len(v))
			}
		}
		body()
	}
	for id, size := range w.size {
		if seen[id] != 1 {
			assert.Equal(t, 1, seen[id], "the entry %d of %d bytes was seen so often", id, size)
		}
		if !w.c.Has(trafficKey(nil, id)) {
			assert.Fail(t, "it has gone: the test proves nothing", "entry %d", id)
			return
		}
	}
}

// roomyCases are shapes with room for the entries of these tests and more, in
// which they lie in small and large buckets.
func roomyCases() []geometry {
	zero := tiny(2, 256, 2000)
	zero.seed = [2]uint64{}
	return []geometry{
		tiny(1, 1024, 2000), tiny(2, 256, 8000), tiny(16, 4096, 100), zero,
		defaultGeometry(minMaxBytes),
	}
}

// mixedSize is mostly small, and now and then large in roomyCases.
func mixedSize(id uint32) int {
	if id%50 == 7 {
		return 60_000
	}
	return int(id*7%200) + selfSize
}

func TestIterate_SeesEachOnce(t *testing.T) {
	for _, g := range roomyCases() {
		t.Run(describe(g), func(t *testing.T) {
			c := mustCache(t, g)
			w := watch(t, c, 700, mixedSize)
			require.GreaterOrEqual(t, len(w.size), 70, "too few")
			if g.buckets > 2 {
				require.NotZero(t, c.shared.Arrivals.Held.Load(), "no large ones")
			}
			w.loop(t, func() {})
			require.Len(t, slices.Collect(c.Keys()), len(w.size))
		})
	}
}

// Other entries come, go and move while the loop is under way, in its body.
func TestIterate_BodyWrites(t *testing.T) {
	for _, g := range roomyCases() {
		t.Run(describe(g), func(t *testing.T) {
			c := mustCache(t, g)
			w := watch(t, c, 500, mixedSize)
			other := uint32(1 << 20)
			if g.seed == ([2]uint64{}) { // the watched would be pushed out
				w.loop(t, func() { c.Del([]byte("none")) })
				return
			}
			before := c.buckets[0].Index.Groups()
			w.loop(t, func() {
				for range 3 {
					if other > 1<<20+3000 {
						return
					}
					if err := c.Set(trafficKey(nil, other), make([]byte, other%40)); err != nil {
						require.NoError(t, err)
					}
					if other%3 == 0 {
						c.Del(trafficKey(nil, other-10))
					}
					other++
				}
			})
			if g.buckets == 1 {
				require.GreaterOrEqual(t, c.buckets[0].Index.Groups(), 2*before,
					"groups of the index, which did not grow under the loop")
			}
		})
	}
}

// Each place in a growing index: the loop begins and goes on while any number
// of homes have moved.
func TestIterate_WhileHomesMove(t *testing.T) {
	c := mustCache(t, tiny(1, 4096, 2000))
	w := watch(t, c, 2000, func(uint32) int { return selfSize })
	b := &c.buckets[0]
	x := &b.Index
	next := uint32(1 << 20)
	growths := 0
	for growths < 3 {
		if err := c.Set(trafficKey(nil, next), nil); err != nil {
			require.NoError(t, err)
		}
		next++
		for x.Growing() {
			growths++
			n := 0
			w.loop(t, func() {
				if n++; n%40 == 0 {
					b.lock()
					x.Move(1, b.Windows(), b.Crowd)
					b.unlock()
				}
			})
		}
	}
}

// An index that is made anew, smaller, does not disturb a loop either.
func TestIterate_WhileIndexShrinks(t *testing.T) {
	c := mustCache(t, tiny(1, 4096, 2000))
	w := watch(t, c, 1500, func(uint32) int { return selfSize })
	b := &c.buckets[0]
	require.NoError(t, b.GrowIndex(40))
	pages, n := b.Index.Pages(), 0
	w.loop(t, func() {
		if n++; n == 700 {
			b.lock()
			quota := c.shared.Quota.Swap(int64(24 * c.shared.Pool.PageSize()))
			b.ShrinkIndex()
			c.shared.Quota.Store(quota)
			b.unlock()
		}
	})
	require.Less(t, b.Index.Pages(), pages, "the index was not made anew")
}

// Two entries with the same 24 hash bits, on either side of a step's end.
func TestIterate_EqualHashBits(t *testing.T) {
	c := mustCache(t, tiny(1, 4096, 2000))
	w := watch(t, c, 40_000, func(uint32) int { return 0 })
	hashes := map[uint64]int{}
	for id := range w.size {
		hashes[index.HashOf(c.shared.Hash(trafficKey(nil, id)))]++
	}
	require.Less(t, len(hashes), len(w.size), "no equal hash bits: the test proves little")
	// One key a step, as far as the hashes allow.
	b := &c.buckets[0]
	var s store.Keys
	total := 0
	for at, n := uint64(0), 0; at < store.HashesEnd; n++ {
		next := b.NextKeys(&s, at)
		require.Greater(t, next, at, "the cursor")
		at = next
		total += len(s.Ends)
		require.LessOrEqual(t, len(s.Ends), store.StepRecords+7*32, "keys in a step")
	}
	require.Equal(t, len(w.size), total, "keys in all steps")
}

// However long keys are, a step copies few of them, and none is left out.
func TestIterate_LongKeys(t *testing.T) {
	c := mustCache(t, tiny(1, 64<<10, 64))
	const want = 40
	for i := range want {
		k := make([]byte, record.MaxKey)
		k[0] = byte(i)
		if err := c.Set(k, nil); err != nil {
			require.NoError(t, err)
		}
	}
	var s store.Keys
	total, steps := 0, 0
	for at := uint64(0); at < store.HashesEnd; steps++ {
		at = c.buckets[0].NextKeys(&s, at)
		total += len(s.Ends)
		require.LessOrEqual(t, len(s.Bytes), store.StepBytes+record.MaxKey, "bytes of keys in a step")
	}
	require.Equal(t, want, total)
	require.Equal(t, want, c.Len())
	require.GreaterOrEqual(t, steps, want/2)
}

// A step cannot end between keys of one hash, however long they are.
func TestIterate_LongKeysOfOneHash(t *testing.T) {
	g := tiny(1, 64<<10, 64)
	g.seed = [2]uint64{}
	c := mustCache(t, g)
	const want = 20
	for i := range want {
		k := make([]byte, record.MaxKey)
		k[0] = byte(i)
		if err := c.Set(k, nil); err != nil {
			require.NoError(t, err)
		}
	}
	seen := map[byte]int{}
	for k := range c.Keys() {
		seen[k[0]]++
		require.Equal(t, 1, seen[k[0]], "key %d", k[0])
	}
	require.Len(t, seen, want)
}

func TestIterate_EarlyBreakAndNesting(t *testing.T) {
	c := mustCache(t, tiny(16, 4096, 100))
	w := watch(t, c, 300, mixedSize)
	for stop := range 5 {
		n := 0
		for range c.All() {
			if n == stop {
				break
			}
			n++
		}
		for range c.Keys() {
			break
		}
	}
	rounds := 0
	w.loop(t, func() {
		if rounds++; rounds%50 == 0 {
			w.loop(t, func() {})
		}
	})
	all := c.All() // one iterator may serve many loops, side by side
	for outer := range all {
		key := slices.Clone(outer)
		for range all {
		}
		require.Equal(t, key, outer, "a loop changed the key of another")
	}
	func() {
		defer func() { _ = recover() }()
		for range c.All() {
			panic("mine")
		}
	}()
	c.Reset() // would hang if a lock were left held
	for k := range c.All() {
		require.Fail(t, "the cache is empty", "saw %q", k)
	}
}

// The body may delete what the loop has taken, and what it has not.
func TestIterate_BodyDeletes(t *testing.T) {
	c := mustCache(t, tiny(16, 4096, 100))
	w := watch(t, c, 300, func(uint32) int { return selfSize })
	n := 0
	for range c.All() {
		if n++; n == 1 {
			for id := range w.size {
				c.Del(trafficKey(nil, id))
			}
		}
	}
	require.Equal(t, 1, n, "all others were deleted then")
}

func TestIterate_Closed(t *testing.T) {
	c := newCache(tiny(16, 4096, 100))
	watch(t, c, 100, mixedSize)
	n := 0
	for range c.All() {
		if n++; n == 3 {
			closeCache(t, c)
		}
	}
	require.LessOrEqual(t, n, 3, "the cache was closed at the third")
	for range c.Keys() {
		require.Fail(t, "the cache is closed")
	}
}

// A loop is no lookup: it counts nothing and keeps nothing alive.
func TestIterate_LeavesNoTrace(t *testing.T) {
	c := mustCache(t, tiny(16, 4096, 100))
	for id := range uint32(300) {
		if err := c.Set(trafficKey(nil, id), make([]byte, mixedSize(id))); err != nil {
			require.NoError(t, err)
		}
	}
	var before, after Stats
	c.UpdateStats(&before)
	for range c.All() {
	}
	c.UpdateStats(&after)
	require.Equal(t, before, after)
	c.each(func(b *bucket) {
		b.Index.Each(func(slot, _ uint64) {
			require.Zero(t, index.Freq(slot))
		})
	})
}

// Goroutines set, delete and read other keys, some with evictions, while others
// loop.
func TestIterate_Concurrent(t *testing.T) {
	for _, g := range []geometry{
		tiny(2, 256, 8000), tiny(16, 4096, 400), defaultGeometry(minMaxBytes),
	} {
		t.Run(describe(g), func(t *testing.T) {
			c := mustCache(t, g)
			w := watch(t, c, 400, mixedSize)
			var wg, writers sync.WaitGroup
			stop := make(chan struct{})
			for n := range uint32(3) {
				writers.Add(1)
				go func() {
					defer writers.Done()
					first := (n + 1) << 20
					for i := uint32(0); ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						// Not so many that the rings come round, however slow a loop
						// is: then the watched could be dropped.
						if i >= 3000 {
							runtime.Gosched()
							continue
						}
						id := first + i%700
						if err := c.Set(trafficKey(nil, id), make([]byte, mixedSize(id+i))); err != nil {
							assert.NoError(t, err)
							return
						}
						c.Del(trafficKey(nil, first+(i*7)%700))
						c.Has(trafficKey(nil, id))
					}
				}()
			}
			for range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range 5 {
						w.loop(t, func() {})
					}
				}()
			}
			wg.Wait()
			close(stop)
			writers.Wait()
		})
	}
}

// In a cache that evicts, every pair is one that was set, and no key of a key
// set that stands still comes twice.
func TestIterate_WhileEvicting(t *testing.T) {
	tr := newTraffic(t, tiny(16, 4096, 16))
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			for k, v := range tr.c.All() {
				id := binary.LittleEndian.Uint32(k)
				if s, err := readStamp(v); err != nil || s.id != id {
					done <- fmt.Errorf("key %d: %v, %v", id, s, err)
					return
				}
			}
		}
	}()
	tr.run(t, 1, concurrentSteps())
	close(stop)
	assert.NoError(t, <-done)
}
