// Package ringfiber keeps what fiber's middlewares store (sessions, responses, counters of
// limiters, tokens) in a [ringcache.Cache]: in bounded memory off the Go heap, which several of
// them can share. It is a Storage of fiber v3.
//
//	cache := ringcache.New(256 << 20) // at most 256 MB, for all middlewares together
//	app.Use(session.New(session.Config{
//		Storage: ringfiber.New(cache, ringfiber.Options{Prefix: "session:"}),
//	}))
//	app.Use(fibercache.New(fibercache.Config{ // fiber's middleware/cache
//		Storage: ringfiber.New(cache, ringfiber.Options{Prefix: "page:", Responses: true}),
//	}))
//
// A cache may drop any entry at any time. The README says what that means for each middleware,
// and which should have a separate cache.
package ringfiber
