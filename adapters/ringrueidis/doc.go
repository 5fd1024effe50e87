// Package ringrueidis keeps replies of Redis or Valkey near: it is a store for the
// client-side cache of [rueidis], in a [ringcache.Cache] instead of on the Go heap. The
// server says which keys have changed (RESP3 client tracking), and no entry outlives its
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
// A change that the server has acknowledged to whoever made it is seen by each DoCache
// that begins after a later round trip on the connection of the key. Without such a round
// trip, a read may be older by the time that an invalidation takes to arrive, also after a
// write by the same client. From the moment on that rueidis gives up a connection,
// nothing that it has cached is found any more. The README has the details, and what a
// connection that is dead without a sign means.
//
// [rueidis]: https://github.com/redis/rueidis
package ringrueidis
