// Package ringscs keeps the sessions of [scs] in a [ringcache.Cache]: in bounded memory off the
// Go heap, which other users can share. It is a store of scs v2 that can be iterated over.
//
//	cache := ringcache.New(256 << 20) // at most 256 MB
//	sessions := scs.New()
//	sessions.Store = ringscs.New(cache, ringscs.Options{Prefix: "session:"})
//
// A cache may drop any session at any time, and its user is logged out then. The README says
// how to size a cache so that it does not.
//
// [scs]: https://github.com/alexedwards/scs
package ringscs
