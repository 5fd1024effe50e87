package system

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Addresses of a cache that was collected are not given back here, where others could
// get them, but made inaccessible: whoever reads there still, by whatever call, faults.

// faultingMemory is memory of the system whose Unmap lets nobody in. It counts those
// calls.
func faultingMemory(t *testing.T, collected *atomic.Int32) (g ringtest.Shape) {
	if !chunk.OffHeap {
		t.Skip("this build keeps the chunks on the Go heap")
	}
	g = ringtest.Tiny(4, 4096, 64)
	g.Memory.Unmap = func(b []byte) error {
		collected.Add(1)
		return unix.Mprotect(b, unix.PROT_NONE)
	}
	return g
}

// use makes n calls of every kind that reads, and some that write, and drops the cache
// in the last of them: nothing but that call keeps it.
func use(c *ringcache.Cache, seed uint64, n int) (hits int) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	keys, vals := make([][]byte, 40), make([][]byte, 40)
	for i := range keys {
		keys[i] = binary.LittleEndian.AppendUint64(nil, uint64(i))
	}
	dst := make([]byte, 0, 1<<20)
	for range n {
		k := binary.LittleEndian.AppendUint64(nil, rnd.Uint64N(2000))
		switch rnd.IntN(10) {
		case 0, 1, 2:
			_ = c.Set(k, dst[:rnd.IntN(200)])
		case 3:
			_ = c.Set(k, dst[:rnd.IntN(20_000)]) // also into large buckets
		case 4:
			_, got := c.GetBatch(dst[:0], keys, vals)
			hits += got
		case 5:
			ringtest.View(c, k, func([]byte) { hits++ })
		case 6:
			c.Del(k)
		case 7:
			for range c.Keys() {
				hits++
				break
			}
		default:
			if _, ok := c.HasGet(dst[:0], k); ok {
				hits++
			}
		}
	}
	return hits
}

// Caches are dropped without Close, in the middle of everybody's calls, and collected.
func TestFaulting_DroppedCaches(t *testing.T) {
	var collected atomic.Int32
	g := faultingMemory(t, &collected)
	var hits atomic.Int64
	for round := range 30 {
		var wg sync.WaitGroup
		c := ringtest.NewCache(g)
		for id := range uint64(4) {
			wg.Add(1)
			go func(c *ringcache.Cache) {
				defer wg.Done()
				hits.Add(int64(use(c, uint64(round)<<8|id, 1000)))
			}(c)
		}
		c = nil
		for range 5 {
			runtime.GC()
			runtime.Gosched()
		}
		wg.Wait()
	}
	awaitCollected(t, &collected, 20)
	require.Greater(t, hits.Load(), int64(1000))
}

// Caches are closed in the middle of the traffic, and collected while others go on.
func TestFaulting_ClosedCaches(t *testing.T) {
	var collected atomic.Int32
	g := faultingMemory(t, &collected)
	for round := range 30 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			var wg sync.WaitGroup
			c := ringtest.NewCache(g)
			for id := range uint64(4) {
				wg.Add(1)
				go func() {
					defer wg.Done()
					use(c, uint64(round)<<8|id, 1000)
				}()
			}
			for c.Len() < 100 {
				runtime.Gosched()
			}
			assert.NoError(t, c.Close())
			runtime.GC()
			wg.Wait()
		})
	}
	awaitCollected(t, &collected, 1)
}

// A function of the user's that refers to the cache does not keep it: the pool, which
// waits for the collector, does not lead to it.
func TestFaulting_OnRemoveMayReferToItsCache(t *testing.T) {
	var collected atomic.Int32
	for range 20 {
		g := faultingMemory(t, &collected)
		var c *ringcache.Cache
		g.OnRemove = func(ringcache.Removal) { c.Len() }
		g.Elapsed = func() time.Duration { runtime.KeepAlive(c); return 0 }
		c = ringtest.NewCache(g)
		require.NoError(t, c.Set([]byte("key"), nil))
	}
	awaitCollected(t, &collected, 10)
}

// awaitCollected collects garbage until so many caches have gone.
func awaitCollected(t *testing.T, collected *atomic.Int32, n int32) {
	t.Helper()
	require.Eventually(t, func() bool {
		runtime.GC()
		return collected.Load() >= n
	}, ringtest.HangLimit, time.Millisecond, "the caches are not collected")
}

// The last call on a cache may be the last that refers to it: it is not collected until
// the call returns. Each of many goroutines makes one on its own cache.
func TestFaulting_LastCallKeepsTheCache(t *testing.T) {
	var collected atomic.Int32
	g := faultingMemory(t, &collected)
	k, v := []byte("key"), make([]byte, 10_000)
	for _, last := range map[string]func(c *ringcache.Cache){
		"Get":  func(c *ringcache.Cache) { c.Get(nil, k) },
		"View": func(c *ringcache.Cache) { ringtest.View(c, k, func([]byte) { runtime.GC() }) },
		"Set":  func(c *ringcache.Cache) { _ = c.Set(k, v) },
		"GetBatch": func(c *ringcache.Cache) {
			c.GetBatch(nil, [][]byte{k, k}, make([][]byte, 2))
		},
		"All": func(c *ringcache.Cache) {
			for range c.All() {
				runtime.GC()
			}
		},
	} {
		for range 10 {
			c := ringtest.NewCache(g)
			assert.NoError(t, c.Set(k, v))
			var wg sync.WaitGroup
			wg.Add(1)
			go func(c *ringcache.Cache) {
				defer wg.Done()
				last(c)
			}(c)
			c = nil
			runtime.GC()
			wg.Wait()
		}
	}
	awaitCollected(t, &collected, 1)
}
