// Before uses all of go-cache that its users call. The same program with ringcache is in ../after.
package main

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/patrickmn/go-cache"
)

type session struct{ User string }

func main() {
	gob.Register(session{})
	c := cache.New(time.Hour, 10*time.Minute)
	entries(c)
	conditional(c)
	counters(c)
	files(c)
	c.Flush()
	fmt.Println("after Flush:", c.ItemCount())
	told()
}

func entries(c *cache.Cache) {
	c.Set("a", session{"ann"}, cache.DefaultExpiration) // for an hour
	c.SetDefault("b", session{"bob"})                   // for an hour
	c.Set("c", session{"cyd"}, 5*time.Minute)
	c.Set("d", session{"dan"}, cache.NoExpiration) // for good
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		v, at, ok := c.GetWithExpiration(key)
		s, _ := v.(session)
		left := time.Duration(0)
		if !at.IsZero() {
			left = time.Until(at)
		}
		fmt.Println(key, s.User, left.Round(time.Minute), ok)
	}
	v, ok := c.Get("a")
	if ok {
		fmt.Println("a is", v.(session).User)
	}
	c.Delete("c")
	users := 0
	for _, item := range c.Items() {
		if !item.Expired() {
			users += len(item.Object.(session).User)
		}
	}
	fmt.Println("items:", c.ItemCount(), "letters:", users)
}

func conditional(c *cache.Cache) {
	fmt.Println("added:", c.Add("a", session{"amy"}, time.Hour) == nil)
	fmt.Println("added:", c.Add("f", session{"fay"}, time.Hour) == nil)
	fmt.Println("replaced:", c.Replace("a", session{"amy"}, time.Hour) == nil)
	fmt.Println("replaced:", c.Replace("g", session{"gus"}, time.Hour) == nil)
}

func counters(c *cache.Cache) {
	visits := cache.New(cache.NoExpiration, 0)
	_ = visits.Add("ann", int64(0), time.Hour) // starts again after an hour
	n, err := visits.IncrementInt64("ann", 2)
	fmt.Println("visits:", n, err == nil)
	n, err = visits.DecrementInt64("ann", 1)
	fmt.Println("visits:", n, err == nil)
	_ = visits.Increment("ann", 5)
	_ = visits.Decrement("ann", 3)
	v, _ := visits.Get("ann")
	fmt.Println("visits:", v)
	fmt.Println("missing:", visits.Increment("bob", 1) != nil)
	visits.SetDefault("mean", 1.5)
	mean, _ := visits.IncrementFloat64("mean", 0.25)
	fmt.Println("mean:", mean)
}

func files(c *cache.Cache) {
	dir, err := os.MkdirTemp("", "moving")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "cache")
	fmt.Println("saved:", c.SaveFile(name))
	loaded := cache.New(time.Hour, 0)
	fmt.Println("loaded:", loaded.LoadFile(name), loaded.ItemCount())

	var buf bytes.Buffer
	fmt.Println("saved:", c.Save(&buf))
	loaded = cache.NewFrom(time.Hour, 0, map[string]cache.Item{"a": {Object: session{"mine"}}})
	fmt.Println("loaded:", loaded.Load(&buf), loaded.ItemCount())
	v, _ := loaded.Get("a") // an item that is there stays
	fmt.Println("a is", v.(session).User)
}

// OnEvicted is called at the next cleanup after an item expires, by the goroutine that New starts.
func told() {
	c := cache.New(cache.NoExpiration, 50*time.Millisecond)
	var gone sync.WaitGroup
	gone.Add(2)
	var mu sync.Mutex
	var users []string
	c.OnEvicted(func(key string, v any) {
		mu.Lock()
		users = append(users, v.(session).User)
		mu.Unlock()
		gone.Done()
	})
	c.Set("x", session{"xia"}, time.Hour)
	c.Delete("x")
	c.Set("y", session{"yan"}, 100*time.Millisecond)
	gone.Wait()
	fmt.Println("told:", users)
	c.DeleteExpired() // at once
	fmt.Println("items:", c.ItemCount())
}
