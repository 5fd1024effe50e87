package ringrueidis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

// The example needs a server, so it is compiled but not run; neartest runs similar code.
func ExampleNewStore() {
	cache := ringcache.New(256 << 20) // at most 256 MB, for all connections together
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:     []string{"127.0.0.1:6379"},
		NewCacheStoreFn: ringrueidis.NewStore(cache),
	})
	if err != nil {
		log.Fatal(err)
	}
	get := client.B().Get().Key("planet").Cache()
	planet, err := client.DoCache(context.Background(), get, time.Hour).ToString()
	fmt.Println(planet, err)
}
