//go:build !(amd64 || 386 || s390x)

package torn

import "sync/atomic"

// Fence keeps the loads before it before the loads behind it: an atomic
// read-modify-write, of a word of its own, does.
func Fence() {
	var word atomic.Uint32
	word.Add(1)
}
