// After is the program of ../before with ringcache.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

func main() {
	cache := ringcache.New(64 << 20)
	defer cache.Close()
	entries(cache)
	expire(cache)
	conditional(cache)
	integers(cache)
	iterate(cache)
	stats(cache)
	cache.Reset()
	fmt.Println("after Clear:", cache.Len())
}

func entries(cache *ringcache.Cache) {
	if err := cache.SetWithTTL([]byte("planet"), []byte("Saturn"), time.Hour); err != nil {
		log.Print(err) // longer than a sixteenth of the bound: the key is absent
	}
	v, ok := cache.HasGet(nil, []byte("planet"))
	fmt.Printf("planet: %s %v\n", v, ok)
	_, ok = cache.HasGet(nil, []byte("moon"))
	fmt.Println("moon is missing:", !ok)

	buf := make([]byte, 0, 100) // one buffer serves all reads
	buf = cache.Get(buf[:0], []byte("planet"))
	fmt.Printf("into a buffer: %s\n", buf)
	buf = cache.Get(buf[:0], []byte("planet"))
	fmt.Printf("to a function: %s\n", buf)
	for range 2 {
		buf, _ = cache.Peek(buf[:0], []byte("planet"))
		fmt.Printf("uncounted: %s\n", buf)
	}

	values := make([][]byte, 2)
	_, _ = cache.GetBatch(nil, [][]byte{[]byte("planet"), []byte("moon")}, values)
	fmt.Printf("both: %s %v, %s %v\n", values[0], values[0] != nil, values[1], values[1] != nil)

	fmt.Println("deleted:", cache.Del([]byte("planet")), cache.Del([]byte("planet")))
}

func expire(cache *ringcache.Cache) {
	_ = cache.SetWithTTL([]byte("session"), []byte("ann"), time.Hour)
	left, ok := cache.TTL([]byte("session"))
	fmt.Println("session has an hour:", left > 3500*time.Second, ok)
	_, left, _ = cache.GetWithTTL(nil, []byte("session"))
	fmt.Println("until:", left.Round(time.Minute))
	v, left, _ := cache.GetWithTTL(make([]byte, 0, 100), []byte("session"))
	fmt.Printf("%s until: %v\n", v, left.Round(time.Minute))
	left, _ = cache.TTL([]byte("session"))
	fmt.Println("until:", left.Round(time.Minute))

	fmt.Println("touched:", cache.Touch([]byte("session"), 2*time.Hour))
	left, _ = cache.TTL([]byte("session"))
	fmt.Println("session has two hours:", left > 7000*time.Second)

	cache.Touch([]byte("session"), 0) // never expires; -1 would delete it
	left, ok = cache.TTL([]byte("session"))
	fmt.Println("session stays:", left.Seconds(), ok)
	_ = cache.SetWithTTL([]byte("config"), []byte("on"), 0) // -1 would delete the key
	left, ok = cache.TTL([]byte("config"))
	fmt.Println("config stays:", left.Seconds(), ok)
}

func conditional(cache *ringcache.Cache) {
	was, _, err := cache.SetIfAbsent(nil, []byte("job"), []byte("worker 1"), time.Minute)
	fmt.Printf("job: %q %v\n", was, err == nil)
	was, _, _ = cache.SetIfAbsent(nil, []byte("job"), []byte("worker 2"), time.Minute)
	fmt.Printf("job: %q\n", was)

	found := false
	_ = cache.Update([]byte("job"), func(e *ringcache.Entry[[]byte]) {
		was, found = bytes.Clone(e.Value), e.Present
		e.SetWithTTL([]byte("worker 3"), time.Minute)
	})
	fmt.Printf("job was: %s %v\n", was, found)

	count := func(e *ringcache.Entry[[]byte]) {
		n := uint64(0)
		if e.Present {
			n = binary.BigEndian.Uint64(e.Value)
		}
		e.SetWithTTL(binary.BigEndian.AppendUint64(e.Value[:0], n+1), time.Hour)
	}
	for range 3 {
		if err := cache.Update([]byte("visits"), count); err != nil {
			log.Print(err)
		}
	}
	fmt.Println("visits:", binary.BigEndian.Uint64(cache.Get(nil, []byte("visits"))))
}

func integers(cache *ringcache.Cache) {
	ints := ringcache.NewTyped[int64](cache, codec.Bytes[[]byte](),
		ringcache.TypedOptions{Prefix: "int:"})
	_ = ints.SetWithTTL(7, []byte("seven"), time.Hour)
	v, _, _ := ints.Get(7)
	fmt.Printf("7: %s\n", v)
	_, left, _, _ := ints.GetWithTTL(7)
	fmt.Println("until:", left.Round(time.Minute))
	fmt.Println("deleted:", ints.Del(7))
}

func iterate(cache *ringcache.Cache) {
	var all []string
	for k, v := range cache.All() {
		if !bytes.Equal(k, []byte("visits")) {
			all = append(all, fmt.Sprintf("%s=%s", k, v))
		}
	}
	slices.Sort(all)
	fmt.Println("entries:", cache.Len(), all)
}

func stats(cache *ringcache.Cache) {
	before := cache.Stats() // counters are never reset
	_ = cache.Get(nil, []byte("job"))
	_ = cache.Get(nil, []byte("moon"))
	s := cache.Stats().Sub(before)
	fmt.Println(s.GetCalls, s.GetCalls-s.Misses, s.Misses, s.HitRatio())
	fmt.Println("evicted:", s.EvictedEntries, "expired:", s.ExpiredEntries)
}
