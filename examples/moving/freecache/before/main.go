// Before uses all of freecache that its users call. The same program with ringcache is in ../after.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/coocood/freecache"
)

func main() {
	cache := freecache.NewCache(64 << 20)
	entries(cache)
	expire(cache)
	conditional(cache)
	integers(cache)
	iterate(cache)
	stats(cache)
	cache.Clear()
	fmt.Println("after Clear:", cache.EntryCount())
}

func entries(cache *freecache.Cache) {
	if err := cache.Set([]byte("planet"), []byte("Saturn"), 3600); err != nil {
		log.Print(err) // longer than 1/1024 of the size: an older value stays
	}
	v, err := cache.Get([]byte("planet"))
	fmt.Printf("planet: %s %v\n", v, err == nil)
	_, err = cache.Get([]byte("moon"))
	fmt.Println("moon is missing:", errors.Is(err, freecache.ErrNotFound))

	v, _ = cache.GetWithBuf([]byte("planet"), make([]byte, 100))
	fmt.Printf("into a buffer: %s\n", v)
	_ = cache.GetFn([]byte("planet"), func(v []byte) error { // under a lock
		fmt.Printf("to a function: %s\n", v)
		return nil
	})
	_ = cache.PeekFn([]byte("planet"), func(v []byte) error {
		fmt.Printf("uncounted: %s\n", v)
		return nil
	})
	v, _ = cache.Peek([]byte("planet")) // even an expired one
	fmt.Printf("uncounted: %s\n", v)

	values, errs := cache.MultiGet([][]byte{[]byte("planet"), []byte("moon")})
	fmt.Printf("both: %s %v, %s %v\n", values[0], errs[0] == nil, values[1], errs[1] == nil)

	fmt.Println("deleted:", cache.Del([]byte("planet")), cache.Del([]byte("planet")))
}

func expire(cache *freecache.Cache) {
	_ = cache.Set([]byte("session"), []byte("ann"), 3600)
	left, err := cache.TTL([]byte("session"))
	fmt.Println("session has an hour:", left > 3500, err == nil)
	_, at, _ := cache.GetWithExpiration([]byte("session"))
	fmt.Println("until:", time.Until(time.Unix(int64(at), 0)).Round(time.Minute))
	v, at, _ := cache.GetWithExpirationAndBuf([]byte("session"), make([]byte, 100))
	fmt.Printf("%s until: %v\n", v, time.Until(time.Unix(int64(at), 0)).Round(time.Minute))
	_, at, _ = cache.PeekWithExpiration([]byte("session"))
	fmt.Println("until:", time.Until(time.Unix(int64(at), 0)).Round(time.Minute))

	fmt.Println("touched:", cache.Touch([]byte("session"), 7200) == nil)
	left, _ = cache.TTL([]byte("session"))
	fmt.Println("session has two hours:", left > 7000)

	_ = cache.Touch([]byte("session"), -1) // never expires
	left, err = cache.TTL([]byte("session"))
	fmt.Println("session stays:", left, err == nil)
	_ = cache.Set([]byte("config"), []byte("on"), -1) // never expires, as with 0
	left, err = cache.TTL([]byte("config"))
	fmt.Println("config stays:", left, err == nil)
}

func conditional(cache *freecache.Cache) {
	was, err := cache.GetOrSet([]byte("job"), []byte("worker 1"), 60)
	fmt.Printf("job: %q %v\n", was, errors.Is(err, freecache.ErrNotFound) || err == nil)
	was, _ = cache.GetOrSet([]byte("job"), []byte("worker 2"), 60)
	fmt.Printf("job: %q\n", was)

	was, found, _ := cache.SetAndGet([]byte("job"), []byte("worker 3"), 60)
	fmt.Printf("job was: %s %v\n", was, found)

	count := func(v []byte, found bool) (next []byte, replace bool, seconds int) {
		n := uint64(0)
		if found {
			n = binary.BigEndian.Uint64(v)
		}
		return binary.BigEndian.AppendUint64(nil, n+1), true, 3600 // the hour begins again
	}
	for range 3 {
		if _, _, err := cache.Update([]byte("visits"), count); err != nil {
			log.Print(err)
		}
	}
	v, _ := cache.Get([]byte("visits"))
	fmt.Println("visits:", binary.BigEndian.Uint64(v))
}

func integers(cache *freecache.Cache) {
	_ = cache.SetInt(7, []byte("seven"), 3600)
	v, _ := cache.GetInt(7)
	fmt.Printf("7: %s\n", v)
	_, at, _ := cache.GetIntWithExpiration(7)
	fmt.Println("until:", time.Until(time.Unix(int64(at), 0)).Round(time.Minute))
	fmt.Println("deleted:", cache.DelInt(7))
}

func iterate(cache *freecache.Cache) {
	var all []string
	it := cache.NewIterator()
	for e := it.Next(); e != nil; e = it.Next() {
		if !bytes.Equal(e.Key, []byte("visits")) {
			all = append(all, fmt.Sprintf("%s=%s", e.Key, e.Value))
		}
	}
	slices.Sort(all)
	fmt.Println("entries:", cache.EntryCount(), all)
}

func stats(cache *freecache.Cache) {
	cache.ResetStatistics()
	_, _ = cache.Get([]byte("job"))
	_, _ = cache.Get([]byte("moon"))
	fmt.Println(cache.LookupCount(), cache.HitCount(), cache.MissCount(), cache.HitRate())
	fmt.Println("evicted:", cache.EvacuateCount(), "expired:", cache.ExpiredCount())
	// Not in ringcache: OverwriteCount, TouchedCount, AverageAccessTime.
}
