// After is the program of ../before with ringcache.
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

type user struct{ Name string }

type users = ringcache.Typed[string, user]

func main() {
	var exits int
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 1 << 20,
		OnRemove: func(r ringcache.Removal) { exits++ }, // for any reason; r.Reason tells which
	})
	if err != nil {
		log.Fatal(err)
	}
	c := ringcache.NewTyped[string](cache, codec.JSON[user](), ringcache.TypedOptions{})
	entries(cache, c)
	times(c)
	bounds(cache)
	cache.Reset()
	_, ok, _ := c.Get("a")
	fmt.Println("after Clear:", ok)
	cache.Close()
	fmt.Println("told of all:", exits >= 5)
}

func entries(cache *ringcache.Cache, c *users) {
	fmt.Println("set:", c.Set("a", user{"ann"}) == nil) // is there when it returns
	u, ok, _ := c.Get("a")
	fmt.Println("a:", u.Name, ok)
	_, ok, _ = c.Get("b")
	fmt.Println("b:", ok)
	_ = c.Set("b", user{"bob"})
	_ = c.Update("b", func(e *ringcache.Entry[user]) {
		if e.Value.Name != "ben" { // in place of ShouldUpdate
			e.Set(user{"ben"})
		}
	})
	u, _, _ = c.Get("b")
	fmt.Println("b:", u.Name)

	letters := 0
	for _, u := range c.All() {
		letters += len(u.Name)
	}
	fmt.Println("letters:", letters)
	c.Del("b")
	_, ok, _ = c.Get("b")
	fmt.Println("b:", ok)
	s := cache.Stats()
	fmt.Println(s.GetCalls-s.Misses, "hits,", s.Misses, "misses")
}

func times(c *users) {
	_ = c.SetWithTTL("hour", user{"cyd"}, time.Hour)
	_ = c.SetWithTTL("good", user{"dan"}, 0) // until it is evicted
	for _, key := range []string{"hour", "good", "past"} {
		left, ok := c.TTL(key)
		fmt.Println(key, left.Round(time.Minute), ok)
	}
	const ttl = -time.Second
	if ttl >= 0 { // a negative one would delete the key
		_ = c.SetWithTTL("hour", user{"cem"}, ttl)
	}
	u, ok, _ := c.Get("hour")
	fmt.Println("hour:", u.Name, ok)
}

func bounds(cache *ringcache.Cache) {
	if err := cache.Resize(2 << 20); err != nil {
		log.Print(err)
	}
	s := cache.Stats()
	fmt.Println("bound:", s.MaxBytesSize, "free:", s.MaxBytesSize-s.ReservedBytes > 1<<20)
}
