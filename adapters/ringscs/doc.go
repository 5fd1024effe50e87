// Package ringscs is a store for [scs] v2 that keeps sessions in a [ringcache.Cache]: in bounded
// memory, which other code can share. It supports iteration.
//
//	cache := ringcache.New(256 << 20) // 256 MB
//	sessions := scs.New()
//	sessions.Store = ringscs.New(cache, ringscs.Options{Prefix: "session:"})
//
// A cache may drop any session at any time, which logs its user out. The README explains how to
// size the cache to prevent this.
//
// [scs]: https://github.com/alexedwards/scs
package ringscs
