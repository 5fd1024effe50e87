// Compare compares the near cache with the LRU cache of valkey-go: the time of a hit, the
// Go heap per entry in bytes, and the time of a runtime.GC.
//
//	go run ./cmd/compare                     # needs valkey-server
//	go run ./cmd/compare -entries 100000 -rounds 3
package main

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/nearcompare"
	"github.com/ringcache/ringcache/adapters/ringvalkey"
)

const ttl = 24 * time.Hour

var target = nearcompare.Target{
	Client:   "valkey-go",
	Programs: []string{"valkey-server"},
	Connect:  connect,
}

func main() { nearcompare.Main(target) }

func connect(addr string, cache *ringcache.Cache) (nearcompare.Client, error) {
	o := valkey.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		PipelineMultiplex: -1, // one connection
		CacheSizeEachConn: 64 << 30,
	}
	if cache != nil {
		o.NewCacheStoreFn = ringvalkey.NewStore(cache)
	}
	r, err := valkey.NewClient(o)
	return client{r}, err
}

// client is a nearcompare.Client.
type client struct{ r valkey.Client }

func (c client) Close() { c.r.Close() }

func (c client) Set(keys, values []string) error {
	var cmds valkey.Commands
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
	var cmds []valkey.CacheableTTL
	for _, key := range keys {
		cmds = append(cmds, valkey.CT(c.r.B().Get().Key(key).Cache(), ttl))
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
