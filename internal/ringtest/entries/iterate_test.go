package entries

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

func TestIterate_SeesEachOnce(t *testing.T) {
	for _, g := range ringtest.RoomyCases() {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			c := ringtest.MustCache(t, g)
			w := ringtest.Watch(t, c, 700, ringtest.MixedSize)
			require.GreaterOrEqual(t, len(w.Size), 70, "too few")
			if g.Buckets > 2 {
				require.NotZero(t, ringtest.Shared(c).Arrivals.Held.Load(), "no large ones")
			}
			w.Loop(t, func() {})
			require.Len(t, slices.Collect(c.Keys()), len(w.Size))
		})
	}
}

// Other entries come, go and move while the loop is under way, in its body.
func TestIterate_BodyWrites(t *testing.T) {
	for _, g := range ringtest.RoomyCases() {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			c := ringtest.MustCache(t, g)
			w := ringtest.Watch(t, c, 500, ringtest.MixedSize)
			other := uint32(1 << 20)
			if g.Seed == ([2]uint64{}) { // the watched would be pushed out
				w.Loop(t, func() { c.Del([]byte("none")) })
				return
			}
			before := ringtest.Nth(c, 0).Index.Groups()
			w.Loop(t, func() {
				for range 3 {
					if other > 1<<20+3000 {
						return
					}
					if err := c.Set(ringtest.TrafficKey(nil, other), make([]byte, other%40)); err != nil {
						require.NoError(t, err)
					}
					if other%3 == 0 {
						c.Del(ringtest.TrafficKey(nil, other-10))
					}
					other++
				}
			})
			if g.Buckets == 1 {
				require.GreaterOrEqual(t, ringtest.Nth(c, 0).Index.Groups(), 2*before,
					"groups of the index, which did not grow under the loop")
			}
		})
	}
}

// Two entries with the same 24 hash bits, on either side of a step's end.
func TestIterate_EqualHashBits(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 2000))
	w := ringtest.Watch(t, c, 40_000, func(uint32) int { return 0 })
	hashes := map[uint64]int{}
	for id := range w.Size {
		hashes[index.HashOf(ringtest.HashOf(c, ringtest.TrafficKey(nil, id)))]++
	}
	require.Less(t, len(hashes), len(w.Size), "no equal hash bits: the test proves little")
	// One key a step, as far as the hashes allow.
	b := ringtest.Nth(c, 0)
	var s store.Keys
	total := 0
	for at, n := uint64(0), 0; at < store.HashesEnd; n++ {
		next := s.Next(b.Store, at)
		require.Greater(t, next, at, "the cursor")
		at = next
		total += len(s.Ends)
		require.LessOrEqual(t, len(s.Ends), store.StepRecords+7*32, "keys in a step")
	}
	require.Equal(t, len(w.Size), total, "keys in all steps")
}

// However long keys are, a step copies few of them, and none is left out.
func TestIterate_LongKeys(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 64<<10, 64))
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
		at = s.Next(ringtest.Nth(c, 0).Store, at)
		total += len(s.Ends)
		require.LessOrEqual(t, len(s.Bytes), store.StepBytes+record.MaxKey, "bytes of keys in a step")
	}
	require.Equal(t, want, total)
	require.Equal(t, want, c.Len())
	require.GreaterOrEqual(t, steps, want/2)
}

// A step cannot end between keys of one hash, however long they are.
func TestIterate_LongKeysOfOneHash(t *testing.T) {
	g := ringtest.Tiny(1, 64<<10, 64)
	g.Seed = [2]uint64{}
	c := ringtest.MustCache(t, g)
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
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	w := ringtest.Watch(t, c, 300, ringtest.MixedSize)
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
	w.Loop(t, func() {
		if rounds++; rounds%50 == 0 {
			w.Loop(t, func() {})
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
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	w := ringtest.Watch(t, c, 300, func(uint32) int { return ringtest.SelfSize })
	n := 0
	for range c.All() {
		if n++; n == 1 {
			for id := range w.Size {
				c.Del(ringtest.TrafficKey(nil, id))
			}
		}
	}
	require.Equal(t, 1, n, "all others were deleted then")
}

func TestIterate_Closed(t *testing.T) {
	c := ringtest.NewCache(ringtest.Tiny(16, 4096, 100))
	ringtest.Watch(t, c, 100, ringtest.MixedSize)
	n := 0
	for range c.All() {
		if n++; n == 3 {
			ringtest.CloseCache(t, c)
		}
	}
	require.LessOrEqual(t, n, 3, "the cache was closed at the third")
	for range c.Keys() {
		require.Fail(t, "the cache is closed")
	}
}

// A loop is no lookup: it counts nothing and keeps nothing alive.
func TestIterate_LeavesNoTrace(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(16, 4096, 100))
	for id := range uint32(300) {
		if err := c.Set(ringtest.TrafficKey(nil, id), make([]byte, ringtest.MixedSize(id))); err != nil {
			require.NoError(t, err)
		}
	}
	var before, after ringcache.Stats
	c.UpdateStats(&before)
	for range c.All() {
	}
	c.UpdateStats(&after)
	require.Equal(t, before, after)
	ringtest.EachBucket(c, func(b ringtest.Bucket) {
		b.Index.Each(func(slot, _ uint64) {
			require.Zero(t, index.Freq(slot))
		})
	})
}

// Goroutines set, delete and read other keys, some with evictions, while others
// loop.
func TestIterate_Concurrent(t *testing.T) {
	for _, g := range []ringtest.Shape{
		ringtest.Tiny(2, 256, 8000), ringtest.Tiny(16, 4096, 400), ringtest.Default(ringtest.MinBytes),
	} {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			c := ringtest.MustCache(t, g)
			w := ringtest.Watch(t, c, 400, ringtest.MixedSize)
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
						if err := c.Set(ringtest.TrafficKey(nil, id),
							make([]byte, ringtest.MixedSize(id+i))); err != nil {
							assert.NoError(t, err)
							return
						}
						c.Del(ringtest.TrafficKey(nil, first+(i*7)%700))
						c.Has(ringtest.TrafficKey(nil, id))
					}
				}()
			}
			for range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range 5 {
						w.Loop(t, func() {})
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
	tr := ringtest.NewTraffic(t, ringtest.Tiny(16, 4096, 16))
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
			for k, v := range tr.C.All() {
				id := binary.LittleEndian.Uint32(k)
				if s, err := ringtest.ReadStamp(v); err != nil || s.ID != id {
					done <- fmt.Errorf("key %d: %v, %v", id, s, err)
					return
				}
			}
		}
	}()
	tr.Run(t, 1, ringtest.ConcurrentSteps())
	close(stop)
	assert.NoError(t, <-done)
}
