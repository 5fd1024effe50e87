// Before uses all of golang-lru's package expirable that its users call. The same program with
// ringcache is in ../after.
package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
)

func main() {
	onEvict := func(key, value string) { fmt.Println("told:", key, value) } // under a lock
	c := expirable.NewLRU(1000, onEvict, time.Hour)
	entries(c)
	iterate(c)
	fmt.Println("evicted by Resize:", c.Resize(500))
	c.Purge()
	fmt.Println("after Purge:", c.Len())
	expire()
}

func entries(c *expirable.LRU[string, string]) {
	fmt.Println("evicted another:", c.Add("a", "ann"))
	v, ok := c.Get("a")
	fmt.Println("a:", v, ok)
	c.Add("a", "amy") // its time begins again
	v, ok = c.Peek("a")
	fmt.Println("a:", v, ok)
	fmt.Println("contained:", c.Contains("a"), c.Contains("b"))
	fmt.Println("removed:", c.Remove("a"), c.Remove("a"))
}

func iterate(c *expirable.LRU[string, string]) {
	c.Add("b", "bob")
	c.Add("c", "cyd")
	keys, values := c.Keys(), c.Values()
	slices.Sort(keys)
	slices.Sort(values)
	fmt.Println(c.Len(), keys, values)
	key, _, _ := c.GetOldest()
	oldest, _, ok := c.RemoveOldest()
	fmt.Println("one less:", key == oldest && ok, c.Len())
}

func expire() {
	c := expirable.NewLRU[string, string](0, nil, time.Second)
	c.Add("token", "secret")
	time.Sleep(1500 * time.Millisecond)
	_, ok := c.Get("token")
	fmt.Println("token is valid:", ok)
}
