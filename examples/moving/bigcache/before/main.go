// Before uses all of BigCache that its users call. The same program with ringcache is in ../after.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/allegro/bigcache/v3"
)

func main() {
	config := bigcache.DefaultConfig(10 * time.Minute)
	config.LifeWindow = time.Hour
	config.HardMaxCacheSize = 64 // MB; 0, the default, is no bound
	config.StatsEnabled = true   // counts for KeyMetadata
	config.Verbose = false
	config.OnRemoveWithReason = func(key string, v []byte, why bigcache.RemoveReason) {
		switch why {
		case bigcache.Deleted:
			fmt.Printf("told: %s = %s was deleted\n", key, v)
		case bigcache.Expired, bigcache.NoSpace:
			fmt.Println("not in this program")
		}
	}
	cache, err := bigcache.New(context.Background(), config.OnRemoveFilterSet(bigcache.Deleted))
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	entries(cache)
	iterate(cache)
	stats(cache)
	fmt.Println("Reset:", cache.Reset(), cache.Len())
	expire()
}

func entries(cache *bigcache.BigCache) {
	if err := cache.Set("planet", []byte("Saturn")); err != nil {
		log.Print(err) // larger than a shard
	}
	v, err := cache.Get("planet")
	fmt.Printf("planet: %s %v\n", v, err == nil)
	_, err = cache.Get("moon")
	fmt.Println("moon is missing:", errors.Is(err, bigcache.ErrEntryNotFound))

	_ = cache.Append("log", []byte("one\n")) // sets it
	_ = cache.Append("log", []byte("two\n")) // the life of the entry begins again
	v, _ = cache.Get("log")
	fmt.Printf("log: %q\n", v)

	fmt.Println("deleted:", cache.Delete("log") == nil)
	fmt.Println("deleted again:", !errors.Is(cache.Delete("log"), bigcache.ErrEntryNotFound))
}

func iterate(cache *bigcache.BigCache) {
	_ = cache.Set("star", []byte("Sirius"))
	var all []string
	for it := cache.Iterator(); it.SetNext(); {
		e, err := it.Value()
		if err != nil {
			continue // removed meanwhile
		}
		age := time.Since(time.Unix(int64(e.Timestamp()), 0))
		all = append(all, fmt.Sprintf("%s=%s %v", e.Key(), e.Value(), age < time.Minute))
	}
	slices.Sort(all)
	fmt.Println("entries:", cache.Len(), all)
}

func stats(cache *bigcache.BigCache) {
	fmt.Println("takes memory:", cache.Capacity() > 0)
	_ = cache.ResetStats()
	_, _ = cache.Get("star")
	_, _ = cache.Get("moon")
	s := cache.Stats()
	fmt.Println(s.Hits, "hit and", s.Misses, "miss since")
	fmt.Println("reads of star:", cache.KeyMetadata("star").RequestCount)
}

// An expired entry is returned until a cleaning removes it, so it has to be checked for.
func expire() {
	config := bigcache.DefaultConfig(time.Second)
	config.CleanWindow = 0
	cache, err := bigcache.New(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	_ = cache.Set("token", []byte("secret"))
	time.Sleep(3 * time.Second)
	_, info, err := cache.GetWithInfo("token")
	fmt.Println("token is valid:", err == nil && info.EntryStatus != bigcache.Expired)
}
