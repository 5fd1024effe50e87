package neartest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

var entries = flag.Int("entries", 100_000, "entries of BenchmarkHit")

// BenchmarkHit compares each near cache with the LRU cache of its client: the time of a hit, a
// whole DoCache with building its command; the Go heap per entry; and the time of a runtime.GC.
// Run one cache at a time, such as -bench=Hit/rueidis/LRU: the garbage of one affects the other.
func BenchmarkHit(b *testing.B) {
	for _, target := range targets {
		b.Run(target.name, func(b *testing.B) {
			addr := startServer(b, target).addr()
			fillServer(b, target, addr)
			b.Run("LRU", func(b *testing.B) {
				benchmarkHits(b, target, config{addrs: []string{addr}, lruSize: 64 << 30})
			})
			b.Run("near", func(b *testing.B) {
				cache := ringcache.New(max(64<<20, *entries*330))
				b.Cleanup(func() { cache.Close() })
				benchmarkHits(b, target, config{addrs: []string{addr}, cache: cache})
			})
		})
	}
}

func benchKey(i int) string { return fmt.Sprintf("near:%011d", i) }

// fillServer writes values of 100 bytes, each of which begins with the index of another key.
func fillServer(b *testing.B, target target, addr string) {
	c := connect(b, target, config{addrs: []string{addr}, multiplex: oneConnection})
	pad := strings.Repeat("v", 92)
	words := []string{"MSET"}
	for i, next := range rand.New(rand.NewPCG(3, 4)).Perm(*entries) {
		words = append(words, benchKey(i), fmt.Sprintf("%08d%s", next, pad))
		if len(words) > 1000 || i == *entries-1 {
			require.NoError(b, c.do(ctx, words...).err)
			words = words[:1]
		}
	}
}

func benchmarkHits(b *testing.B, target target, o config) {
	o.multiplex = oneConnection
	keys := make([]string, *entries)
	for i := range keys {
		keys[i] = benchKey(i)
	}
	before := heapBytes()
	c := connect(b, target, o)
	for i := 0; i < len(keys); i += 1000 {
		_, err := c.mget(ctx, 24*hour, keys[i:min(i+1000, len(keys))]...)
		require.NoError(b, err)
	}
	perEntry := float64(heapBytes()-before) / float64(len(keys))
	start := time.Now()
	runtime.GC()
	collection := time.Since(start)

	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 1, uint64(len(keys)-1))
	for _, load := range []struct {
		name string
		next func(value string) int
	}{
		{"uniform", func(string) int { return rnd.IntN(len(keys)) }},
		{"zipf", func(string) int { return int(zipf.Uint64()) }},
		{"dependent", func(value string) int { i, _ := strconv.Atoi(value[:8]); return i }},
	} {
		b.Run(load.name, func(b *testing.B) {
			value, hit := "00000000", false
			for range b.N {
				if value, hit = c.get(keys[load.next(value)]); !hit {
					b.Fatal("a miss: the time is not that of hits")
				}
			}
			b.ReportMetric(perEntry, "heap-B/entry")
			b.ReportMetric(float64(collection.Microseconds())/1000, "ms/GC")
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
