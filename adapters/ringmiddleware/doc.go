// Package ringmiddleware caches the responses of an [http.Handler] in a [ringcache.Cache]. It is a
// shared cache as defined by RFC 9111, for use in front of any router.
//
//	cache := ringcache.New(256 << 20)
//	pages, err := ringmiddleware.New(cache, ringmiddleware.Options{})
//	...
//	http.ListenAndServe(":8080", pages.Handler(mux))
//
// The handler's Cache-Control or Expires header says which responses may be stored and for how
// long; Vary says which request headers a response depends on. [Options].TTL is for responses that
// state no lifetime. Concurrent equal requests can share one call of the handler.
//
// # Guarantees
//
// Clients share responses only for the same key (by default the URL) and the same values of the
// headers in Vary. Once a successful POST, PUT, DELETE or PATCH has been answered, or an Invalidate
// method has returned, no later request gets a response that they cover from an earlier call of the
// handler. This holds for all Middlewares with the same cache and prefix, and after a Reset of the
// cache, but a snapshot may restore such responses.
//
// The README lists supported and unsupported parts of RFC 9111.
package ringmiddleware
