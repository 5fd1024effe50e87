// Before uses all of ttlcache that its users call. The same program with ringcache is in ../after.
package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

type (
	cache = ttlcache.Cache[string, string]
	item  = ttlcache.Item[string, string]
)

func main() {
	c := ttlcache.New(
		ttlcache.WithTTL[string, string](time.Hour),
		ttlcache.WithCapacity[string, string](1000),
		ttlcache.WithMaxCost(1<<20, func(i ttlcache.CostItem[string, string]) uint64 {
			return uint64(len(i.Key) + len(i.Value))
		}),
		ttlcache.WithDisableTouchOnHit[string, string](),
		ttlcache.WithVersion[string, string](true),
	)
	go c.Start() // removes expired items
	defer c.Stop()
	times(c)
	conditional(c)
	iterate(c)
	load(c)
	counts(c)
	c.DeleteAll()
	fmt.Println("after DeleteAll:", c.Len())
	touch()
	told()
}

func times(c *cache) {
	show := func(key string) {
		i := c.Get(key)
		if i == nil {
			fmt.Println(key, "is missing")
			return
		}
		left := time.Duration(0)
		if !i.ExpiresAt().IsZero() {
			left = time.Until(i.ExpiresAt()).Round(time.Minute)
		}
		fmt.Println(i.Key(), i.Value(), left, i.IsExpired())
	}
	c.Set("a", "ann", ttlcache.DefaultTTL)
	c.Set("b", "bob", 5*time.Minute)
	c.Set("c", "cyd", ttlcache.NoTTL) // for good
	c.Set("b", "ben", ttlcache.PreviousOrDefaultTTL)
	for _, key := range []string{"a", "b", "c", "d"} {
		show(key)
	}
	fmt.Println("ttl of b:", c.Get("b").TTL(), c.Has("b"), c.Has("d"))
}

func conditional(c *cache) {
	i, there := c.GetOrSet("a", "amy")
	fmt.Println("a:", i.Value(), there)
	i, there = c.GetOrSet("e", "eve", ttlcache.WithTTL[string, string](time.Minute))
	fmt.Println("e:", i.Value(), there)
	i, _ = c.GetOrSetFunc("f", func() string { return "fay" }) // called under a lock
	fmt.Println("f:", i.Value())
	i, there = c.GetAndDelete("e")
	fmt.Println("e was:", i.Value(), there)
	version := c.Get("a").Version()
	fmt.Println("a is unchanged:", c.Get("a").Version() == version, c.Get("a").Cost() > 0)
}

func iterate(c *cache) {
	keys := c.Keys()
	slices.Sort(keys)
	fmt.Println(c.Len(), keys, len(c.Items()))
	letters := 0
	count := func(i *item) bool {
		letters += len(i.Value())
		return true
	}
	c.Range(count)
	c.RangeBackwards(count)
	fmt.Println("letters, twice:", letters)
	c.Delete("f")
}

func load(c *cache) {
	calls := 0
	loader := ttlcache.LoaderFunc[string, string](func(c *cache, key string) *item {
		calls++
		if key == "nobody" {
			return nil // is asked for again
		}
		return c.Set(key, "loaded "+key, 10*time.Minute)
	})
	shared := ttlcache.NewSuppressedLoader(loader, nil) // one call for all callers
	for _, key := range []string{"g", "g", "nobody"} {
		if i := c.Get(key, ttlcache.WithLoader[string, string](shared)); i != nil {
			fmt.Println(i.Value())
		} else {
			fmt.Println("no", key)
		}
	}
	fmt.Println("loads:", calls)
}

func counts(c *cache) {
	before := c.Metrics()
	c.Get("a")
	c.Get("missing")
	m := c.Metrics()
	fmt.Println(m.Hits-before.Hits, "hit,", m.Misses-before.Misses, "miss")
}

// Get extends the expiry, unless that is disabled.
func touch() {
	c := ttlcache.New(ttlcache.WithTTL[string, string](time.Hour))
	at := c.Set("session", "ann", ttlcache.DefaultTTL).ExpiresAt()
	time.Sleep(300 * time.Millisecond)
	fmt.Println("extended:", c.Get("session").ExpiresAt().After(at))
	c.Touch("session")
	fmt.Println("touched:", c.Has("session"))

	c = ttlcache.New(ttlcache.WithTTL[string, string](time.Second)) // idle
	c.Set("session", "ann", ttlcache.DefaultTTL)
	time.Sleep(1500 * time.Millisecond)
	fmt.Println("idle:", c.Has("session"))
	c.DeleteExpired()
	fmt.Println("removed:", c.Len())
}

// Functions are called in goroutines of their own, soon after an item expires.
func told() {
	c := ttlcache.New[string, string]()
	go c.Start()
	defer c.Stop()
	var gone sync.WaitGroup
	gone.Add(4)
	var mu sync.Mutex
	var events []string
	note := func(event string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, event)
		gone.Done()
	}
	c.OnInsertion(func(_ context.Context, i *item) { note("inserted " + i.Key()) })
	c.OnUpdate(func(_ context.Context, i *item) { note("updated " + i.Key()) })
	c.OnEviction(func(_ context.Context, why ttlcache.EvictionReason, i *item) {
		if why == ttlcache.EvictionReasonExpired || why == ttlcache.EvictionReasonDeleted {
			note("gone " + i.Key())
		}
	})
	c.Set("y", "yan", time.Hour)
	c.Set("y", "yul", 100*time.Millisecond)
	c.Set("x", "xia", time.Hour)
	gone.Wait()
	slices.Sort(events)
	fmt.Println(events)
}
