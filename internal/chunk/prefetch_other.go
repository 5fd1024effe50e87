//go:build !((amd64 || arm64) && !purego)

package chunk

import "unsafe"

// Prefetch and PrefetchWrite do nothing in this build: see prefetch.go.
func Prefetch(unsafe.Pointer, int)      {}
func PrefetchWrite(unsafe.Pointer, int) {}
