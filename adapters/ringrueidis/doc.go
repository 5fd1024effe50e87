// Package ringrueidis keeps replies of Redis or Valkey in the process: it is a store for
// the client-side cache of [rueidis], in a [ringcache.Cache] instead of on the Go heap. The
// server reports which keys have changed (RESP3 client tracking), and no entry outlives its
// key's time to live on the server.
//
//	cache := ringcache.New(256 << 20) // for all connections together
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress:      []string{"127.0.0.1:6379"},
//		NewCacheStoreFn: ringrueidis.NewStore(cache),
//	})
//	...
//	get := client.B().Get().Key("planet").Cache()
//	planet, err := client.DoCache(ctx, get, time.Hour).ToString()
//
// # What a read may return
//
// Once the server has acknowledged a change to the client that made it, every DoCache that begins
// after a later round trip on the connection that caches the key returns that change or a later
// one.
// Without a round trip, a read may be older by the time that an invalidation takes to arrive, even
// after a write by the same client: a client may have several connections, and only DoCache uses
// that of the key. The README names the call after which a client reads its own writes. When
// rueidis gives up a connection, nothing that was cached through it is found any more. The README
// also explains what happens on a connection that dies silently.
//
// [rueidis]: https://github.com/redis/rueidis
package ringrueidis
