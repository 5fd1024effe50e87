// Package ringmiddleware caches the responses of an [http.Handler] in a [ringcache.Cache]. It is a
// shared cache as defined by RFC 9111, to be put in front of any router.
//
//	cache := ringcache.New(256 << 20)
//	pages, err := ringmiddleware.New(cache, ringmiddleware.Options{})
//	...
//	http.ListenAndServe(":8080", pages.Handler(mux))
//
// With Cache-Control or Expires the handler states which responses may be stored and for how long,
// and with Vary which request headers a response depends on. [Options].TTL is the lifetime of
// responses that state none. A stale response with a validator is asked for under a condition, and
// stays if the handler answers 304. Concurrent equal requests share one call of the handler.
//
// # Guarantees
//
// A client gets only responses that were made for the same key (by default scheme, host and path
// with query) and the same values of the headers in Vary, and that may be shared with every client
// that sends such a request. After a successful request with an unsafe method (POST, PUT, DELETE,
// PATCH) has been answered, or [Middleware.Invalidate], [Middleware.InvalidateTag] or
// [Middleware.InvalidatePrefix] has returned, no request that begins later gets one of the removed
// responses, or one from an earlier call of the handler. This holds for every Middleware on the
// same cache with the same prefix, and after the cache has been Reset.
//
// The README lists the supported and unsupported parts of RFC 9111.
package ringmiddleware
