//go:build (amd64 || arm64) && !purego

package chunk

import "unsafe"

// How the processor is asked for cache lines before they are needed.
//
// A prefetch has no result, changes nothing and cannot fault, whatever the address is. So the
// address may have been read without a lock and be out of date: at worst, an unneeded line is
// fetched. On processors without such an instruction, and with the tag purego, the functions do
// nothing (prefetch_other.go).

// Prefetch asks for n cache lines, n > 0, the first of them at p.
//
//go:noescape
func Prefetch(p unsafe.Pointer, n int)

// PrefetchWrite asks for n cache lines, n > 0, the first of them at p, to be written.
//
//go:noescape
func PrefetchWrite(p unsafe.Pointer, n int)
