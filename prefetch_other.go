//go:build !((amd64 || arm64) && !purego && !ringcache_heap && !race && !asan && !msan)

package ringcache

import "unsafe"

// prefetch does nothing where there is no assembly for it.
func prefetch(unsafe.Pointer) {}

// prefetchLines does nothing where there is no assembly for it.
func prefetchLines(unsafe.Pointer, int) {}

// prefetchWrite does nothing where there is no assembly for it.
func prefetchWrite(unsafe.Pointer, int) {}
