// Compare compares the near cache with the LRU cache of rueidis: the time of a hit, the Go
// heap per entry in bytes, and the time of a runtime.GC.
//
//	go run ./cmd/compare                     # needs redis-server or valkey-server
//	go run ./cmd/compare -entries 100000 -rounds 3
package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/nearcompare"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

const ttl = 24 * time.Hour

var target = nearcompare.Target{
	Client:   "rueidis",
	Programs: []string{"redis-server", "valkey-server"},
	Connect:  connect,
}

func main() { nearcompare.Main(target) }

func connect(addr string, cache *ringcache.Cache) (nearcompare.Client, error) {
	o := rueidis.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		PipelineMultiplex: -1, // one connection
		CacheSizeEachConn: 64 << 30,
	}
	if cache != nil {
		o.NewCacheStoreFn = ringrueidis.NewStore(cache)
	}
	r, err := rueidis.NewClient(o)
	return client{r}, err
}

// client is a nearcompare.Client.
type client struct{ r rueidis.Client }

func (c client) Close() { c.r.Close() }

func (c client) Set(keys, values []string) error {
	var cmds rueidis.Commands
	for i, key := range keys {
		cmds = append(cmds, c.r.B().Set().Key(key).Value(values[i]).Build())
	}
	for _, res := range c.r.DoMulti(context.Background(), cmds...) {
		if err := res.Error(); err != nil {
			return err
		}
	}
	return nil
}

func (c client) Fill(keys []string) error {
	var cmds []rueidis.CacheableTTL
	for _, key := range keys {
		cmds = append(cmds, rueidis.CT(c.r.B().Get().Key(key).Cache(), ttl))
	}
	for _, res := range c.r.DoMultiCache(context.Background(), cmds...) {
		if err := res.Error(); err != nil {
			return err
		}
	}
	return nil
}

func (c client) Get(key string) (value string, hit bool, err error) {
	res := c.r.DoCache(context.Background(), c.r.B().Get().Key(key).Cache(), ttl)
	value, err = res.ToString()
	return value, res.IsCacheHit(), err
}
