//go:build !(amd64 && !purego && !ringcache_heap && !race && !asan && !msan)

package ringcache

import "sync/atomic"

// storeRelease sets p to v: who loads v from p also sees what was done before.
func storeRelease(p *atomic.Uint64, v uint64) { p.Store(v) }

// addOwned adds delta to a word that nobody but the caller writes, and releases it
// as storeRelease does.
func addOwned(p *atomic.Uint64, delta uint64) { p.Store(p.Load() + delta) }
