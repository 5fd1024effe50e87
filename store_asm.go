//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import "sync/atomic"

// On amd64 every store releases: who loads the word with sync/atomic sees what was
// done before. The stores of sync/atomic do more, they wait until all processors see
// them, and take a locked instruction for it.

// storeRelease sets p to v.
//
//go:noescape
func storeRelease(p *uint64, v uint64)

// addOwned adds delta to a word that nobody but the caller writes.
//
//go:noescape
func addOwned(p *atomic.Uint64, delta uint64)

// storeUnless sets p to v unless skip. It has no branch: where that cannot be
// foretold, nothing that comes after a wrong guess would be begun before skip is
// known.
func storeUnless(skip bool, p *uint64, v uint64) {
	var idle uint64
	if skip {
		p = &idle
	}
	storeRelease(p, v)
}
