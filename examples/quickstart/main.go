// Quickstart shows the basic use of a cache: set, get, and load a missing value.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
)

func main() {
	cache := ringcache.New(64 << 20) // at most 64 MB of memory
	defer cache.Close()

	_ = cache.SetWithTTL([]byte("greeting"), []byte("hello"), time.Minute)
	value, ok := cache.HasGet(nil, []byte("greeting"))
	fmt.Println(string(value), ok)

	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) { // a query, say
		return append(k, " from the database"...), time.Minute, nil
	}
	value, err := cache.GetOrLoad(context.Background(), nil, []byte("user:7"), load)
	fmt.Println(string(value), err)
}
