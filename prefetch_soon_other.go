//go:build !(amd64 && !purego && !ringcache_heap && !race && !asan && !msan)

package ringcache

import "unsafe"

// prefetchSoon is prefetchWrite where there is no assembly for it.
func prefetchSoon(p unsafe.Pointer, n int, _ uint) { prefetchWrite(p, n) }
