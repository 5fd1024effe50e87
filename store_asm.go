//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import "sync/atomic"

// storeRelease sets p to v: who loads v from p also sees what was done before.
// Unlike p.Store, it does not wait until all processors see v, and so takes no
// locked instruction: on amd64 every store releases, as on other platforms only
// those of sync/atomic do.
//
//go:noescape
func storeRelease(p *atomic.Uint64, v uint64)

// addOwned adds delta to a word that nobody but the caller writes, and releases it
// as storeRelease does.
//
//go:noescape
func addOwned(p *atomic.Uint64, delta uint64)
