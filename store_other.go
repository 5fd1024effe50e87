//go:build !(amd64 && !purego && !ringcache_heap && !race && !asan && !msan)

package ringcache

import "sync/atomic"

// addOwned adds delta to a word that nobody but the caller writes.
func addOwned(p *atomic.Uint64, delta uint64) { p.Store(p.Load() + delta) }

// storeUnless sets p to v unless skip.
func storeUnless(skip bool, p *uint64, v uint64) {
	if !skip {
		atomic.StoreUint64(p, v)
	}
}
