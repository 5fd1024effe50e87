//go:build (amd64 || arm64) && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import "unsafe"

// prefetch asks the processor to bring the cache line at p into its caches. It
// reads nothing and cannot fault, whatever p is.
//
//go:noescape
func prefetch(p unsafe.Pointer)

// prefetchLines asks for n cache lines, n > 0, the first of them at p.
//
//go:noescape
func prefetchLines(p unsafe.Pointer, n int)

// prefetchWrite asks for n cache lines, n > 0, the first of them at p, to be
// written to.
//
//go:noescape
func prefetchWrite(p unsafe.Pointer, n int)
