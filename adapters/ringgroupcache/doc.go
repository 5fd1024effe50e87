// Package ringgroupcache is a [ringcache.Cache] for groupcache-go: each process of a cluster keeps
// its part of the values in bounded memory off the Go heap.
//
//	daemon, err := groupcache.ListenAndServe(ctx, address, groupcache.Options{
//		CacheFactory: ringgroupcache.Factory(ringcache.Options{}),
//	})
//
// Processes find the owner of a key by a consistent hash, and ask it for the value. It loads the
// value once for all of them. See [groupcache-go].
//
// [groupcache-go]: https://github.com/groupcache/groupcache-go
package ringgroupcache
