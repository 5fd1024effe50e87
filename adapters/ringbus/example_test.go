package ringbus_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringbus"
)

// Two instances of a service. The README has transports for NATS and Redis.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	transport := newHub() // within this process

	var caches []*ringcache.Cache
	var buses []*ringbus.Bus
	for range 2 {
		cache := ringcache.New(256 << 20) // at most 256 MB
		defer cache.Close()
		bus := ringbus.New(cache, transport, ringbus.Options{})
		go bus.Run(ctx)
		for !bus.Stats().Subscribed {
			time.Sleep(time.Millisecond)
		}
		caches, buses = append(caches, cache), append(buses, bus)
	}

	planet := "Saturn" // in the database
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return []byte(planet), 0, nil
	}
	read := func() {
		for _, cache := range caches {
			value, err := cache.GetOrLoad(ctx, nil, []byte("planet"), load)
			fmt.Printf("%s %v\n", value, err)
		}
	}
	read()
	planet = "Jupiter"
	fmt.Println(buses[0].Del(ctx, []byte("planet")))
	read()
	// Output:
	// Saturn <nil>
	// Saturn <nil>
	// <nil>
	// Jupiter <nil>
	// Jupiter <nil>
}
