// Package ringmiddleware caches the responses of an [http.Handler] in a [ringcache.Cache]: a
// shared cache in the words of RFC 9111, to be put before any router.
//
//	cache := ringcache.New(256 << 20)
//	pages, err := ringmiddleware.New(cache, ringmiddleware.Options{})
//	...
//	http.ListenAndServe(":8080", pages.Handler(mux))
//
// The handler says with Cache-Control or Expires what may be kept and for how long, and with
// Vary which headers of the request it depends on. [Options] has a lifetime for those that say
// nothing. Of many equal requests at once, one goes to the handler.
//
// # What a client may get
//
// A response made for the same key (by default scheme, host and path with query), for the same
// values of the headers in Vary, that anyone may see who sends such a request. After a
// successful request with an unsafe method (POST, PUT, DELETE, PATCH) has been answered, or
// [Middleware.Invalidate] has returned, no request that begins later gets a response that the
// handler was asked for before. That holds for every Middleware on the same cache with the same
// prefix, and for a cache that has been Reset.
//
// The README lists what of RFC 9111 is honoured and what is not.
package ringmiddleware
