// After is the program of ../before with ringcache.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

type session struct{ User string }

// sessions are a view of a cache with values of one type.
type sessions = ringcache.Typed[string, session]

// newSessions returns a cache with a default expiration, and its view.
func newSessions(ttl time.Duration) (*ringcache.Cache, *sessions) {
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 64 << 20, TTL: ttl})
	if err != nil {
		log.Fatal(err)
	}
	return cache, viewOf(cache)
}

func viewOf(cache *ringcache.Cache) *sessions {
	return ringcache.NewTyped[string](cache, codec.JSON[session](), ringcache.TypedOptions{})
}

func main() {
	cache, c := newSessions(time.Hour)
	defer cache.Close()
	entries(cache, c)
	conditional(c)
	counters(cache)
	files(cache)
	cache.Reset()
	fmt.Println("after Flush:", cache.Len())
	told()
}

func entries(cache *ringcache.Cache, c *sessions) {
	_ = c.Set("a", session{"ann"}) // for an hour
	_ = c.Set("b", session{"bob"}) // for an hour
	_ = c.SetWithTTL("c", session{"cyd"}, 5*time.Minute)
	_ = c.SetWithTTL("d", session{"dan"}, 0) // until it is evicted; -1 would delete it
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		s, left, ok, _ := c.GetWithTTL(key)
		fmt.Println(key, s.User, left.Round(time.Minute), ok)
	}
	s, ok, _ := c.Get("a")
	if ok {
		fmt.Println("a is", s.User)
	}
	c.Del("c")
	users := 0
	for _, s := range c.All() {
		users += len(s.User)
	}
	fmt.Println("items:", cache.Len(), "letters:", users)
}

func conditional(c *sessions) {
	add := func(key, user string) bool {
		_, stored, err := c.SetIfAbsent(key, session{user}, time.Hour)
		return stored && err == nil
	}
	fmt.Println("added:", add("a", "amy"))
	fmt.Println("added:", add("f", "fay"))
	replace := func(key, user string) (done bool) {
		err := c.Update(key, func(e *ringcache.Entry[session]) {
			if done = e.Present; done {
				e.SetWithTTL(session{user}, time.Hour)
			}
		})
		return done && err == nil
	}
	fmt.Println("replaced:", replace("a", "amy"))
	fmt.Println("replaced:", replace("g", "gus"))
}

func counters(cache *ringcache.Cache) {
	visits := ringcache.NewTyped[string](cache.Namespace("visits"), codec.JSON[int64](),
		ringcache.TypedOptions{})
	_, _, _ = visits.SetIfAbsent("ann", 0, time.Hour) // starts again after an hour
	add := func(key string, by int64) (n int64, ok bool) {
		err := visits.Update(key, func(e *ringcache.Entry[int64]) {
			if ok = e.Present; ok { // as in go-cache, where a missing key is an error
				n = e.Value + by
				e.Set(n) // keeps the expiry
			}
		})
		return n, ok && err == nil
	}
	for _, by := range []int64{2, -1} {
		n, ok := add("ann", by)
		fmt.Println("visits:", n, ok)
	}
	_, _ = add("ann", 5)
	_, _ = add("ann", -3)
	v, _, _ := visits.Get("ann")
	fmt.Println("visits:", v)
	_, ok := add("bob", 1)
	fmt.Println("missing:", !ok)

	means := ringcache.NewTyped[string](cache.Namespace("means"), codec.JSON[float64](),
		ringcache.TypedOptions{})
	_ = means.Set("mean", 1.5)
	var mean float64
	_ = means.Update("mean", func(e *ringcache.Entry[float64]) {
		mean = e.Value + 0.25
		e.Set(mean)
	})
	fmt.Println("mean:", mean)
	cache.Namespace("visits").Reset()
	cache.Namespace("means").Reset()
}

func files(cache *ringcache.Cache) {
	dir, err := os.MkdirTemp("", "moving")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cache")
	fmt.Println("saved:", cache.SaveToFile(path))
	loaded, report, err := ringcache.Load(path, ringcache.Options{MaxBytes: 64 << 20, TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("loaded:", report.Err, loaded.Len())
	loaded.Close()

	var buf bytes.Buffer
	_, err = cache.WriteSnapshot(&buf)
	fmt.Println("saved:", err)
	other, c := newSessions(time.Hour)
	defer other.Close()
	_ = c.SetBatch([]string{"a"}, []session{{"mine"}})
	_, err = other.ReadSnapshot(&buf)
	fmt.Println("loaded:", err, other.Len())
	s, _, _ := c.Get("a") // an entry that is there stays
	fmt.Println("a is", s.User)
}

// OnRemove is called for an expired entry by a later Set, or by DeleteExpired, which a goroutine
// calls here now and then, so that it is soon.
func told() {
	var gone sync.WaitGroup
	gone.Add(2)
	var mu sync.Mutex
	var users []string
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 64 << 20,
		OnRemove: func(r ringcache.Removal) {
			if r.Reason != ringcache.RemovedDeleted && r.Reason != ringcache.RemovedExpired {
				return // evicted, replaced or reset
			}
			var s session
			_ = json.Unmarshal(r.Value, &s) // as the codec of the view does
			mu.Lock()
			users = append(users, s.User)
			mu.Unlock()
			gone.Done()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
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

	c := viewOf(cache)
	_ = c.SetWithTTL("x", session{"xia"}, time.Hour)
	c.Del("x")
	_ = c.SetWithTTL("y", session{"yan"}, 100*time.Millisecond)
	gone.Wait()
	fmt.Println("told:", users)
	cache.DeleteExpired() // at once
	fmt.Println("items:", cache.Len())
}
