// Before uses all of ristretto that its users call. The same program with ringcache is in ../after.
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

type user struct{ Name string }

func main() {
	var exits int
	c, err := ristretto.NewCache(&ristretto.Config[string, user]{
		NumCounters:            10_000,
		MaxCost:                1 << 20,
		BufferItems:            64,
		Metrics:                true,
		IgnoreInternalCost:     true,
		TtlTickerDurationInSec: 1,
		Cost:                   func(u user) int64 { return int64(len(u.Name)) }, // where Set says 0
		ShouldUpdate:           func(cur, prev user) bool { return cur.Name != prev.Name },
		OnEvict:                func(*ristretto.Item[user]) {}, // and of every value that Clear removes
		OnReject:               func(*ristretto.Item[user]) {},
		OnExit:                 func(user) { exits++ }, // of every value that leaves
	})
	if err != nil {
		log.Fatal(err)
	}
	entries(c)
	times(c)
	bounds(c)
	c.Clear()
	_, ok := c.Get("a")
	fmt.Println("after Clear:", ok)
	c.Close()
	fmt.Println("told of all:", exits >= 5)
}

func entries(c *ristretto.Cache[string, user]) {
	fmt.Println("set:", c.Set("a", user{"ann"}, 3))
	c.Wait() // for the value to be applied, or dropped
	u, ok := c.Get("a")
	fmt.Println("a:", u.Name, ok)
	_, ok = c.Get("b")
	fmt.Println("b:", ok)
	c.Set("b", user{"bob"}, 0)
	c.Wait()
	c.Set("b", user{"ben"}, 0)
	c.Wait()
	u, _ = c.Get("b")
	fmt.Println("b:", u.Name)

	letters := 0
	c.IterValues(func(u user) (stop bool) {
		letters += len(u.Name)
		return false
	})
	fmt.Println("letters:", letters)
	c.Del("b")
	c.Wait()
	_, ok = c.Get("b")
	fmt.Println("b:", ok)
	fmt.Println(c.Metrics.Hits(), "hits,", c.Metrics.Misses(), "misses")
}

func times(c *ristretto.Cache[string, user]) {
	c.SetWithTTL("hour", user{"cyd"}, 3, time.Hour)
	c.SetWithTTL("good", user{"dan"}, 3, 0) // never expires
	c.SetWithTTL("past", user{"eve"}, 3, -time.Second)
	c.Wait()
	for _, key := range []string{"hour", "good", "past"} {
		left, ok := c.GetTTL(key)
		fmt.Println(key, left.Round(time.Minute), ok)
	}
	c.SetWithTTL("hour", user{"cem"}, 3, -time.Second) // nothing happens
	c.Wait()
	u, ok := c.Get("hour")
	fmt.Println("hour:", u.Name, ok)
}

func bounds(c *ristretto.Cache[string, user]) {
	c.UpdateMaxCost(2 << 20)
	fmt.Println("bound:", c.MaxCost(), "free:", c.RemainingCost() > 1<<20)
}
