//go:build (amd64 || arm64) && !purego

// Package prefetch asks the processor for cache lines before they are needed.
//
// A prefetch has no result, changes nothing and cannot fault, whatever the address is. So the
// address may have been read without a lock and be out of date: at worst, an unneeded line is
// fetched. On processors without such an instruction, and with the tag purego, the functions do
// nothing.
package prefetch

import "unsafe"

// LineSize is the size of a cache line on the processors that matter most.
const LineSize = 64

// Line asks for the cache line at p.
//
//go:noescape
func Line(p unsafe.Pointer)

// Lines asks for n cache lines, n > 0, the first of them at p.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)

// ForWrite asks for n cache lines, n > 0, the first of them at p, to be written.
//
//go:noescape
func ForWrite(p unsafe.Pointer, n int)
