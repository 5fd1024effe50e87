// Package ringgroupcache is a cache for groupcache-go in a [ringcache.Cache]: each process of a
// cluster stores its part of the values in bounded memory, usually off the Go heap.
//
//	daemon, err := groupcache.ListenAndServe(ctx, address, groupcache.Options{
//		CacheFactory: ringgroupcache.Factory(ringcache.Options{}),
//	})
//
// Processes find the owner of a key by consistent hashing and request the value from it. The owner
// loads the value for all of them. See [groupcache-go].
//
// [groupcache-go]: https://github.com/groupcache/groupcache-go
package ringgroupcache
