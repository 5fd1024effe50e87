package fastcache

import (
	"encoding/binary"
	"math/rand"
	"os"
	"strconv"
	"testing"
)

// Benchmarks of what fastcache's own leave out: lookups that wait for each other, and a cache that
// does not fit in the CPU cache. They use only what both packages export.

// clientKey is the key of entry i; the first bytes of its value are the number of the next entry.
func clientKey(dst []byte, i uint64) []byte {
	dst = append(dst[:0], "entry---"...)
	return binary.LittleEndian.AppendUint64(dst, i)
}

// clientCache returns a cache of n entries of 16 bytes and valueLen bytes, which form one cycle in
// random order, with room for all of them.
func clientCache(b *testing.B, n, valueLen int) *Cache {
	c := New(2 * n * (16 + valueLen + 24))
	order := rand.New(rand.NewSource(1)).Perm(n)
	var key []byte
	value := make([]byte, valueLen)
	for i, entry := range order {
		binary.LittleEndian.PutUint64(value, uint64(order[(i+1)%n]))
		key = clientKey(key, uint64(entry))
		c.Set(key, value)
	}
	b.Cleanup(c.Reset)
	return c
}

// clientSizes runs fn for a cache that fits in the CPU cache, and for a large one.
func clientSizes(b *testing.B, fn func(b *testing.B, c *Cache, n int)) {
	large, err := strconv.Atoi(os.Getenv("SUITE_ENTRIES"))
	if err != nil {
		b.Fatal(err)
	}
	small := clientCache(b, 1<<16, 8)
	b.Run("small", func(b *testing.B) { fn(b, small, 1<<16) })
	big := clientCache(b, large, 100)
	b.Run("large", func(b *testing.B) { fn(b, big, large) })
}

// In BenchmarkClientDependent the next key is the value of the last one.
func BenchmarkClientDependent(b *testing.B) {
	clientSizes(b, func(b *testing.B, c *Cache, n int) {
		b.RunParallel(func(pb *testing.PB) {
			next := rand.Uint64() % uint64(n)
			var key, value []byte
			for pb.Next() {
				key = clientKey(key, next)
				value = c.Get(value[:0], key)
				if len(value) < 8 {
					panic("an entry is lost")
				}
				next = binary.LittleEndian.Uint64(value)
			}
		})
	})
}

// In BenchmarkClientRandom all keys are known in advance.
func BenchmarkClientRandom(b *testing.B) {
	clientSizes(b, func(b *testing.B, c *Cache, n int) {
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewSource(rand.Int63()))
			var key, value []byte
			for pb.Next() {
				key = clientKey(key, r.Uint64()%uint64(n))
				if value = c.Get(value[:0], key); len(value) < 8 {
					panic("an entry is lost")
				}
			}
		})
	})
}

// BenchmarkClientOverwrite sets random keys to new values of the same length.
func BenchmarkClientOverwrite(b *testing.B) {
	clientSizes(b, func(b *testing.B, c *Cache, n int) {
		length := len(c.Get(nil, clientKey(nil, 0)))
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewSource(rand.Int63()))
			var key []byte
			value := make([]byte, length)
			for pb.Next() {
				key = clientKey(key, r.Uint64()%uint64(n))
				c.Set(key, value)
			}
		})
	})
}
