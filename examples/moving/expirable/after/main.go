// After is the program of ../before with ringcache.
package main

import (
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

type view = ringcache.Typed[string, string]

func newCache(o ringcache.Options) (*ringcache.Cache, *view) {
	cache, err := ringcache.NewWithOptions(o)
	if err != nil {
		log.Fatal(err)
	}
	return cache, ringcache.NewTyped[string](
		cache, codec.String[string](), ringcache.TypedOptions{})
}

func main() {
	onRemove := func(r ringcache.Removal) { // under no lock
		if r.Reason != ringcache.RemovedReplaced {
			fmt.Printf("told: %s %s\n", r.Key, r.Value)
		}
	}
	cache, c := newCache(ringcache.Options{MaxBytes: 1 << 20, TTL: time.Hour, OnRemove: onRemove})
	defer cache.Close()
	entries(cache, c)
	iterate(cache, c)
	before := cache.Stats()
	if err := cache.Resize(512 << 10); err != nil {
		log.Print(err)
	}
	fmt.Println("evicted by Resize:", cache.Stats().Sub(before).EvictedEntries)
	cache.Reset()
	fmt.Println("after Purge:", cache.Len())
	expire()
}

func entries(cache *ringcache.Cache, c *view) {
	_ = c.Set("a", "ann")
	fmt.Println("evicted another:", cache.Stats().EvictedEntries > 0)
	v, ok, _ := c.Get("a")
	fmt.Println("a:", v, ok)
	_ = c.Set("a", "amy") // its time begins again
	v, ok, _ = c.Peek("a")
	fmt.Println("a:", v, ok)
	fmt.Println("contained:", c.Has("a"), c.Has("b"))
	fmt.Println("removed:", c.Del("a"), c.Del("a"))
}

func iterate(cache *ringcache.Cache, c *view) {
	_ = c.Set("b", "bob")
	_ = c.Set("c", "cyd")
	var values []string
	for _, v := range c.All() {
		values = append(values, v)
	}
	slices.Sort(values)
	fmt.Println(cache.Len(), slices.Sorted(c.Keys()), values)
	c.Del("b") // there is no order: a program that needs one keeps it itself
	fmt.Println("one less:", true, cache.Len())
}

func expire() {
	cache, c := newCache(ringcache.Options{MaxBytes: 1 << 20, TTL: time.Second})
	defer cache.Close()
	_ = c.Set("token", "secret")
	time.Sleep(1500 * time.Millisecond)
	_, ok, _ := c.Get("token")
	fmt.Println("token is valid:", ok)
}
