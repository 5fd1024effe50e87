// Package ringrueidis stores the client-side cache of [rueidis] in a [ringcache.Cache]. Redis or
// Valkey reports which keys have changed (client tracking), and entries expire with their key at
// the latest, except with ToStaticTTL.
//
//	cache := ringcache.New(256 << 20) // for all connections together
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress:     []string{"127.0.0.1:6379"},
//		NewCacheStoreFn: ringrueidis.NewStore(cache),
//	})
//	...
//	get := client.B().Get().Key("planet").Cache()
//	planet, err := client.DoCache(ctx, get, time.Hour).ToString()
//
// # What a read may return
//
// Once the server has acknowledged a change, and the connection that caches the key has made
// another round trip, later calls of DoCache normally return that change or a later one. Before
// that, a read may miss a change whose invalidation is on the way, even a write of your own on
// another connection. Entries of a connection that rueidis gives up are never found again. The
// README shows how to read your own writes, and the exceptions.
//
// [rueidis]: https://github.com/redis/rueidis
package ringrueidis
