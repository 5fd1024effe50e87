package main

import (
	"math/rand"
	"testing"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/coocood/freecache"
	"github.com/ringcache/ringcache"
)

// The benchmarks of the original for two more caches.

func BenchmarkRingCacheSet(b *testing.B) {
	cache := ringcache.New(max(b.N*maxEntrySize, 256<<10))
	defer cache.Close()
	for i := 0; i < b.N; i++ {
		_ = cache.Set([]byte(key(i)), value())
	}
}

func BenchmarkFastCacheSet(b *testing.B) {
	cache := fastcache.New(b.N * maxEntrySize)
	defer cache.Reset()
	for i := 0; i < b.N; i++ {
		cache.Set([]byte(key(i)), value())
	}
}

func BenchmarkRingCacheGet(b *testing.B) {
	b.StopTimer()
	cache := filledRingcache(b)
	b.StartTimer()
	for i := 0; i < b.N; i++ {
		cache.Get(nil, []byte(key(i)))
	}
}

func BenchmarkFastCacheGet(b *testing.B) {
	b.StopTimer()
	cache := filledFastcache(b)
	b.StartTimer()
	for i := 0; i < b.N; i++ {
		cache.Get(nil, []byte(key(i)))
	}
}

func BenchmarkRingCacheSetParallel(b *testing.B) {
	cache := ringcache.New(max(b.N*maxEntrySize, 256<<10))
	defer cache.Close()
	parallel(b, func(id, i int) { _ = cache.Set([]byte(parallelKey(id, i)), value()) })
}

func BenchmarkFastCacheSetParallel(b *testing.B) {
	cache := fastcache.New(b.N * maxEntrySize)
	defer cache.Reset()
	parallel(b, func(id, i int) { cache.Set([]byte(parallelKey(id, i)), value()) })
}

func BenchmarkRingCacheGetParallel(b *testing.B) {
	b.StopTimer()
	cache := filledRingcache(b)
	b.StartTimer()
	parallel(b, func(_, i int) { cache.Get(nil, []byte(key(i))) })
}

func BenchmarkFastCacheGetParallel(b *testing.B) {
	b.StopTimer()
	cache := filledFastcache(b)
	b.StartTimer()
	parallel(b, func(_, i int) { cache.Get(nil, []byte(key(i))) })
}

// parallel calls fn with a random number of the goroutine and a counter.
func parallel(b *testing.B, fn func(id, i int)) {
	b.RunParallel(func(pb *testing.PB) {
		id := rand.Intn(1000)
		for i := 0; pb.Next(); i++ {
			fn(id, i)
		}
	})
}

func filledRingcache(b *testing.B) *ringcache.Cache {
	cache := ringcache.New(max(b.N*maxEntrySize, 256<<10))
	b.Cleanup(func() { _ = cache.Close() })
	for i := 0; i < b.N; i++ {
		_ = cache.Set([]byte(key(i)), value())
	}
	return cache
}

func filledFastcache(b *testing.B) *fastcache.Cache {
	cache := fastcache.New(b.N * maxEntrySize)
	b.Cleanup(cache.Reset)
	for i := 0; i < b.N; i++ {
		cache.Set([]byte(key(i)), value())
	}
	return cache
}

// BenchmarkReady measures the operations alone. The original also formats a key for each of them,
// and allocates a value or lets the cache allocate one. The keys are the same, in random order.
func BenchmarkReady(b *testing.B) {
	for _, name := range []string{"RingCache", "FastCache", "BigCache", "FreeCache", "Map"} {
		b.Run(name+"Set", func(b *testing.B) { ready(b, name, false) })
		b.Run(name+"Get", func(b *testing.B) { ready(b, name, true) })
	}
}

func ready(b *testing.B, name string, reads bool) {
	b.StopTimer()
	keys := make([]string, b.N)
	for i, n := range rand.Perm(b.N) {
		keys[i] = key(n)
	}
	set, get := opened(b, name)
	v := value()
	if reads {
		for i := range b.N {
			set(key(i), v)
		}
	}
	b.StartTimer()
	for _, k := range keys {
		if !reads {
			set(k, v)
		} else if len(get(k)) != len(v) {
			b.Fatal("an entry is lost")
		}
	}
}

// opened returns the operations of a new cache with room for b.N entries. What get returns is
// valid until its next call.
func opened(b *testing.B, name string) (set func(string, []byte), get func(string) []byte) {
	var k, buf []byte
	asBytes := func(key string) []byte {
		k = append(k[:0], key...)
		return k
	}
	switch name {
	case "RingCache":
		c := ringcache.New(max(b.N*maxEntrySize, 256<<10))
		b.Cleanup(func() { _ = c.Close() })
		return func(key string, v []byte) { _ = c.Set(asBytes(key), v) },
			func(key string) []byte { buf = c.Get(buf[:0], asBytes(key)); return buf }
	case "FastCache":
		c := fastcache.New(b.N * maxEntrySize)
		b.Cleanup(c.Reset)
		return func(key string, v []byte) { c.Set(asBytes(key), v) },
			func(key string) []byte { buf = c.Get(buf[:0], asBytes(key)); return buf }
	case "BigCache":
		c := initBigCache(b.N)
		return func(key string, v []byte) { _ = c.Set(key, v) },
			func(key string) []byte { v, _ := c.Get(key); return v }
	case "FreeCache":
		c := freecache.NewCache(b.N * maxEntrySize)
		buf = make([]byte, maxEntrySize)
		return func(key string, v []byte) { _ = c.Set(asBytes(key), v, 0) },
			func(key string) []byte { v, _ := c.GetWithBuf(asBytes(key), buf); return v }
	case "Map":
		m := make(map[string][]byte, b.N)
		return func(key string, v []byte) { m[key] = append([]byte(nil), v...) },
			func(key string) []byte { return m[key] }
	}
	b.Fatal(name)
	return nil, nil
}
