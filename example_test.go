package ringcache_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/ringcache/ringcache"
)

func Example() {
	cache := ringcache.New(256 << 20) // 256 MB, index included
	defer cache.Close()

	if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
		log.Print(err) // not stored; the key is now absent
	}
	value, ok := cache.HasGet(nil, []byte("planet"))
	fmt.Printf("%s %v\n", value, ok)
	// Output: Saturn true
}

// Most programs read through a cache: a missing value is computed, and stored
// for the next time.
func Example_readThrough() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	square := func(dst []byte, n int) []byte {
		key := fmt.Appendf(nil, "square of %d", n)
		if v, ok := cache.HasGet(dst, key); ok {
			return v
		}
		v := fmt.Appendf(nil, "%d", n*n)
		_ = cache.Set(key, v) // if it is not stored, it is computed again
		return append(dst, v...)
	}
	for range 3 {
		fmt.Printf("%s\n", square(nil, 12))
	}

	var s ringcache.Stats
	cache.UpdateStats(&s)
	fmt.Println(s.GetCalls, "lookups,", s.Misses, "missed")
	// Output:
	// 144
	// 144
	// 144
	// 3 lookups, 1 missed
}

// Get appends, so one buffer serves many reads without an allocation, and a
// value can be appended to bytes that are already there.
func ExampleCache_Get_appendToDst() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("a"), []byte("first"))
	_ = cache.Set([]byte("b"), []byte("second"))

	buf := make([]byte, 0, 64)
	for _, k := range []string{"a", "b", "c"} {
		buf = cache.Get(buf[:0], []byte(k))
		fmt.Printf("%s: %q\n", k, buf)
	}
	fmt.Printf("%s\n", cache.Get([]byte("value="), []byte("b")))
	fmt.Println(cache.Get(nil, []byte("c")) == nil)
	// Output:
	// a: "first"
	// b: "second"
	// c: ""
	// value=second
	// true
}

// HasGet tells an empty value from a miss.
func ExampleCache_HasGet() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("empty"), nil)

	v, ok := cache.HasGet(nil, []byte("empty"))
	fmt.Println(len(v), ok)
	v, ok = cache.HasGet(nil, []byte("absent"))
	fmt.Println(len(v), ok)
	// Output:
	// 0 true
	// 0 false
}

func ExampleCache_GetBatch() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("one"), []byte("un"))
	_ = cache.Set([]byte("three"), []byte("trois"))

	keys := [][]byte{[]byte("one"), []byte("two"), []byte("three")}
	vals := make([][]byte, len(keys))
	buf := make([]byte, 0, 1024) // with room for all values: no allocation
	buf, hits := cache.GetBatch(buf, keys, vals)

	fmt.Printf("%d hits in %q\n", hits, buf)
	for i, v := range vals {
		if v == nil {
			fmt.Printf("%s is not there\n", keys[i])
			continue
		}
		fmt.Printf("%s: %s\n", keys[i], v)
	}
	// Output:
	// 2 hits in "untrois"
	// one: un
	// two is not there
	// three: trois
}

// SetBatch stores many entries at once; GetBatch reads them.
func ExampleCache_SetBatch() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	keys := [][]byte{[]byte("one"), []byte("two"), []byte("one")}
	vals := [][]byte{[]byte("un"), []byte("deux"), []byte("uno")}
	if err := cache.SetBatch(keys, vals); err != nil {
		log.Print(err) // at least one of them is not stored
	}
	fmt.Printf("%s %s\n", cache.Get(nil, []byte("one")), cache.Get(nil, []byte("two")))
	// Output: uno deux
}

// All yields every entry, in no particular order. Key and value are buffers of the
// loop: clone them to keep them.
func ExampleCache_All() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("one"), []byte("un"))
	_ = cache.Set([]byte("two"), []byte("deux"))
	_ = cache.Set([]byte("three"), []byte("trois"))

	var pairs []string
	for key, value := range cache.All() {
		pairs = append(pairs, fmt.Sprintf("%s=%s", key, value))
	}
	slices.Sort(pairs)
	fmt.Println(pairs)
	// Output: [one=un three=trois two=deux]
}

// The body of a loop may use the cache, here to delete all keys with a certain
// prefix.
func ExampleCache_Keys() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	for _, k := range []string{"user/1", "user/2", "page/1"} {
		_ = cache.Set([]byte(k), nil)
	}

	for key := range cache.Keys() {
		if bytes.HasPrefix(key, []byte("user/")) {
			cache.Del(key)
		}
	}
	fmt.Println(cache.Len(), cache.Has([]byte("page/1")))
	// Output: 1 true
}

// An error means that the key is now absent: an older value is removed too.
func ExampleCache_Set_errors() {
	cache := ringcache.New(32 << 20) // values of up to 2 MB
	defer cache.Close()

	k := []byte("report")
	fmt.Println(cache.Set(k, []byte("short")), cache.Has(k))

	err := cache.Set(k, make([]byte, 3<<20))
	fmt.Println(err)
	fmt.Println(errors.Is(err, ringcache.ErrTooLarge), cache.Has(k))
	// Output:
	// <nil> true
	// ringcache: set entry: value of 3145728 bytes, at most 2097152: entry too large
	// true false
}

func ExampleCache_Del() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("k"), []byte("v"))

	fmt.Println(cache.Del([]byte("k")), cache.Has([]byte("k")))
	fmt.Println(cache.Del([]byte("k")))
	// Output:
	// true false
	// false
}

// UpdateStats adds, so one Stats can be the sum of several caches.
func ExampleCache_UpdateStats() {
	users, pages := ringcache.New(32<<20), ringcache.New(64<<20)
	defer users.Close()
	defer pages.Close()
	_ = users.Set([]byte("ada"), []byte("1815"))
	_ = pages.Set([]byte("/"), []byte("welcome"))
	users.Has([]byte("ada"))
	pages.Has([]byte("/missing"))

	var s ringcache.Stats
	users.UpdateStats(&s)
	pages.UpdateStats(&s)
	// A record is a header of 3 bytes, the key and the value.
	fmt.Printf("%d entries, %d bytes of %d MB\n", s.EntriesCount, s.BytesSize, s.MaxBytesSize>>20)
	fmt.Printf("hit ratio %.0f %%\n", 100*float64(s.GetCalls-s.Misses)/float64(s.GetCalls))
	// Output:
	// 2 entries, 21 bytes of 96 MB
	// hit ratio 50 %
}

func ExampleNewWithOptions() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 128 << 20,
		Policy:   ringcache.PolicyFIFO,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	fmt.Println(cache.Len())

	_, err = ringcache.NewWithOptions(ringcache.Options{MaxBytes: 128 << 20, TTLJitter: 10})
	fmt.Println(err)
	fmt.Println(errors.Is(err, ringcache.ErrInvalidOptions))
	// Output:
	// 0
	// ringcache: check options: TTLJitter is 10, must be at least 0 and below 1: invalid options
	// true
}

// A program that knows how many entries it will store may say so: the index then has
// room for them from the start.
func ExampleOptions_expected() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes:        256 << 20,
		ExpectedEntries: 1_000_000,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	fmt.Println(cache.Set([]byte("k"), []byte("v")), cache.Len())

	_, err = ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 20, ExpectedEntries: -1})
	fmt.Println(err)
	// Output:
	// <nil> 1
	// ringcache: check options: ExpectedEntries is -1, must be at least 0: invalid options
}

// Reset empties a cache that is to be used again.
func ExampleCache_Reset() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("k"), []byte("v"))

	cache.Reset()
	fmt.Println(cache.Len())
	fmt.Println(cache.Set([]byte("k"), []byte("again")), cache.Len())
	// Output:
	// 0
	// <nil> 1
}

// Resize adjusts a cache to the memory that the program may use.
func ExampleCache_Resize() {
	cache := ringcache.New(256 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("k"), []byte("v"))

	fmt.Println(cache.Resize(32<<20), cache.Has([]byte("k")))
	fmt.Println(cache.Resize(512 << 20))

	err := cache.Resize(256) // not megabytes
	fmt.Println(err)
	fmt.Println(errors.Is(err, ringcache.ErrInvalidOptions))
	// Output:
	// <nil> true
	// <nil>
	// ringcache: resize cache: MaxBytes is 256 bytes, must be from 33554432 to 4398046511104 for the size it was made with: invalid options
	// true
}

// Close may be called while others use the cache: they miss from then on.
func ExampleCache_Close() {
	cache := ringcache.New(32 << 20)
	_ = cache.Set([]byte("k"), []byte("v"))

	fmt.Println(cache.Close())
	fmt.Println(cache.Has([]byte("k")))
	fmt.Println(errors.Is(cache.Set([]byte("k"), []byte("v")), ringcache.ErrClosed))
	fmt.Println(cache.Close())
	// Output:
	// <nil>
	// false
	// true
	// <nil>
}
