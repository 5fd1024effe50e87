// Package ringfiber is a Storage for the middlewares of fiber v3 in a [ringcache.Cache]. Sessions,
// responses, counters of limiters and tokens can share its bounded memory.
//
//	cache := ringcache.New(256 << 20) // 256 MB, for all middlewares together
//	app.Use(session.New(session.Config{
//		Storage: ringfiber.New(cache, ringfiber.Options{Prefix: "session:"}),
//	}))
//	app.Use(fibercache.New(fibercache.Config{ // fiber's middleware/cache
//		Storage: ringfiber.New(cache, ringfiber.Options{Prefix: "page:", Responses: true}),
//	}))
//
// A cache may drop any entry at any time. The README explains the consequences for each
// middleware, and which ones should have a separate cache.
package ringfiber
