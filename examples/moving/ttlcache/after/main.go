// After is the program of ../before with ringcache.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
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
	cache, c := newCache(ringcache.Options{MaxBytes: 1 << 20, TTL: time.Hour})
	defer cache.Close()
	times(c)
	conditional(c)
	iterate(cache, c)
	load(c)
	counts(cache, c)
	cache.Reset()
	fmt.Println("after DeleteAll:", cache.Len())
	touch()
	told()
}

func times(c *view) {
	show := func(key string) {
		v, left, ok, _ := c.GetWithTTL(key)
		if !ok {
			fmt.Println(key, "is missing")
			return
		}
		fmt.Println(key, v, left.Round(time.Minute), false)
	}
	_ = c.Set("a", "ann")
	_ = c.SetWithTTL("b", "bob", 5*time.Minute)
	_ = c.SetWithTTL("c", "cyd", 0) // until it is evicted; -1 would delete it

	_ = c.Update("b", func(e *ringcache.Entry[string]) { e.Set("ben") }) // keeps its expiry
	for _, key := range []string{"a", "b", "c", "d"} {
		show(key)
	}
	left, ok := c.TTL("b") // the remaining time
	fmt.Println("ttl of b:", left.Round(time.Minute), ok, c.Has("d"))
}

func conditional(c *view) {
	getOrSet := func(key, v string, ttl time.Duration) (string, bool) {
		was, stored, err := c.SetIfAbsent(key, v, ttl)
		if stored || err != nil {
			return v, false
		}
		return was, true
	}
	v, there := getOrSet("a", "amy", time.Hour)
	fmt.Println("a:", v, there)
	v, there = getOrSet("e", "eve", time.Minute)
	fmt.Println("e:", v, there)
	v, _ = c.GetOrLoad(context.Background(), "f",
		func(context.Context, string) (string, time.Duration, error) { // called under no lock
			return "fay", time.Hour, nil
		})
	fmt.Println("f:", v)
	v, there, _ = c.GetAndDel("e")
	fmt.Println("e was:", v, there)
	v, _, _ = c.Get("a")
	swapped, _ := c.CompareAndSwap("a", v, v) // if the value is still v
	fmt.Println("a is unchanged:", swapped, true)
}

func iterate(cache *ringcache.Cache, c *view) {
	keys := slices.Sorted(c.Keys())
	fmt.Println(cache.Len(), keys, len(keys))
	letters := 0
	for range 2 {
		for _, v := range c.All() {
			letters += len(v)
		}
	}
	fmt.Println("letters, twice:", letters)
	c.Del("f")
}

func load(c *view) {
	calls := 0
	loader := func(_ context.Context, key string) (string, time.Duration, error) {
		calls++
		if key == "nobody" {
			return "", time.Minute, ringcache.ErrAbsent // is not asked for again for a minute
		}
		return "loaded " + key, 10 * time.Minute, nil
	}
	for _, key := range []string{"g", "g", "nobody"} {
		v, err := c.GetOrLoad(context.Background(), key, loader)
		switch {
		case errors.Is(err, ringcache.ErrAbsent):
			fmt.Println("no", key)
		case err != nil:
			log.Print(err)
		default:
			fmt.Println(v)
		}
	}
	fmt.Println("loads:", calls)
}

func counts(cache *ringcache.Cache, c *view) {
	before := cache.Stats()
	_, _, _ = c.Get("a")
	_, _, _ = c.Get("missing")
	s := cache.Stats().Sub(before)
	fmt.Println(s.GetCalls-s.Misses, "hit,", s.Misses, "miss")
}

// Get extends the expiry only with ExpireAfterAccess, and then not each time: an entry may expire
// half of the idle time after its last read. Touch sets it each time.
func touch() {
	const ttl = time.Hour
	cache, c := newCache(ringcache.Options{MaxBytes: 1 << 20, TTL: ttl})
	defer cache.Close()
	_ = c.Set("session", "ann")
	time.Sleep(300 * time.Millisecond)
	before, _ := c.TTL("session")
	c.Touch("session", ttl)
	after, _ := c.TTL("session")
	fmt.Println("extended:", after > before)
	fmt.Println("touched:", c.Touch("session", ttl))

	idle, c := newCache(ringcache.Options{MaxBytes: 1 << 20, ExpireAfterAccess: time.Second})
	defer idle.Close()
	_ = c.Set("session", "ann")
	time.Sleep(1500 * time.Millisecond)
	fmt.Println("idle:", c.Has("session"))
	idle.DeleteExpired()
	fmt.Println("removed:", idle.Len())
}

// OnRemove is called by the goroutine whose call removed the entry: here the one that calls
// DeleteExpired now and then.
func told() {
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
	cache, c := newCache(ringcache.Options{
		MaxBytes: 1 << 20,
		OnRemove: func(r ringcache.Removal) {
			if r.Reason == ringcache.RemovedExpired || r.Reason == ringcache.RemovedDeleted {
				note("gone " + string(r.Key))
			}
		},
	})
	defer cache.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				cache.DeleteExpired()
			case <-stop:
				return
			}
		}
	}()
	set := func(key, v string, ttl time.Duration) { // in place of OnInsertion and OnUpdate
		event := "inserted "
		_ = c.Update(key, func(e *ringcache.Entry[string]) {
			if e.SetWithTTL(v, ttl); e.Present {
				event = "updated "
			}
		})
		note(event + key)
	}
	set("y", "yan", time.Hour)
	set("y", "yul", 100*time.Millisecond)
	set("x", "xia", time.Hour)
	gone.Wait()
	slices.Sort(events)
	fmt.Println(events)
}
