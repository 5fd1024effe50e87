//go:build !((amd64 || arm64) && !purego)

// Package prefetch does nothing in this build. See prefetch.go.
package prefetch

import "unsafe"

// LineSize is the size of a cache line on the processors that matter most.
const LineSize = 64

// Line does nothing.
func Line(unsafe.Pointer) {}

// Lines does nothing.
func Lines(unsafe.Pointer, int) {}

// ForWrite does nothing.
func ForWrite(unsafe.Pointer, int) {}
