package ringgroupcache_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"
	"github.com/groupcache/groupcache-go/v3/transport/peer"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgroupcache"
)

func Example() {
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	daemon, err := groupcache.ListenAndServe(ctx, "127.0.0.1:0", groupcache.Options{
		CacheFactory: ringgroupcache.Factory(ringcache.Options{}),
		HashFn:       xxhash.Sum64, // distributes similar keys better than the default
		Logger:       quiet,
		Transport:    transport.NewHttpTransport(transport.HttpTransportOptions{Logger: quiet}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer daemon.Shutdown(ctx)
	// All processes use the same list, in any order, and get a new one when it changes.
	if err := daemon.SetPeers(ctx, []peer.Info{{Address: daemon.ListenAddress()}}); err != nil {
		log.Fatal(err)
	}

	load := func(_ context.Context, key string, dest transport.Sink) error {
		fmt.Println("loading", key)
		return dest.SetString("the value of "+key, time.Now().Add(time.Hour))
	}
	products, err := daemon.NewGroup("products", 256<<20, groupcache.GetterFunc(load))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		var value string
		if err := products.Get(ctx, "saturn", transport.StringSink(&value)); err != nil {
			log.Fatal(err)
		}
		fmt.Println(value)
	}
	// Output:
	// loading saturn
	// the value of saturn
	// the value of saturn
}
