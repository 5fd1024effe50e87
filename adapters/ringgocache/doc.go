// Package ringgocache is a store for [gocache] v4 in a namespace of a [ringcache.Cache], with
// bounded memory, times to live and tags.
//
//	cache := ringcache.New(256 << 20) // 256 MB
//	products := gocache.New[[]byte](ringgocache.New(cache.Namespace("products")))
//	...
//	shop := []string{"shop"}
//	err := products.Set(ctx, "1", page, store.WithExpiration(time.Hour), store.WithTags(shop))
//	...
//	err = products.Invalidate(ctx, store.WithInvalidateTags(shop))
//
// After Invalidate has returned, no value that was set earlier with one of its tags is found. The
// README compares these tags with those of gocache's stores for freecache and BigCache, and lists
// the limits.
//
// [gocache]: https://github.com/eko/gocache
package ringgocache
